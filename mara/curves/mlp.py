"""Recorder of multilayer perceptrons on tabular data.

All runs of a group train side by side: every layer is one batched product. Runs share the examples and
nothing else: each has its own initial weights, order of examples, dropout and label noise.

Shapes: R runs, B examples of a step (padded to the largest batch size), n examples, F features, O outputs,
N = 200 points.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from mara.curves.corpus import POINTS
from mara.curves.datasets import BUILDERS, Dataset, load_dataset
from mara.curves.optimizers import draw_settings
from mara.curves.plan import group_recipes, group_rng
from mara.curves.recipes import Recipe, Recorded, run_seed
from mara.curves.training import Shape, StackedWeights, shuffled_passes, train

GROUPS_PER_DATASET = 7
STEPS_PER_UNIT = (1, 2, 4, 8)
BATCH_SIZES = (8, 16, 32, 64)


@dataclass(frozen=True)
class Architecture:
    """Shape of a perceptron; depth 0 is a linear model."""

    depth: int
    width: int
    activation: Callable[[Tensor], Tensor] = torch.relu
    residual: bool = False
    normalised: bool = False
    """Standardise the activations of each hidden layer, without learned scale."""

    @property
    def costly(self) -> bool:
        """Whether a step takes so long that a unit has two at most."""
        return self.width > 64 or self.depth * self.width > 100


ARCHITECTURES = {
    "linear": Architecture(0, 0),
    "mlp-1x16-tanh": Architecture(1, 16, torch.tanh),
    "mlp-1x64-relu": Architecture(1, 64),
    "mlp-1x200-relu": Architecture(1, 200),
    "mlp-2x24-relu": Architecture(2, 24),
    "mlp-2x64-tanh": Architecture(2, 64, torch.tanh),
    "mlp-2x96-silu": Architecture(2, 96, functional.silu),
    "mlp-3x32-gelu": Architecture(3, 32, functional.gelu),
    "mlp-4x32-relu": Architecture(4, 32),
    "mlp-5x20-tanh": Architecture(5, 20, torch.tanh),
    "mlp-3x12-sigmoid": Architecture(3, 12, torch.sigmoid),
    "residual-4x32-relu": Architecture(4, 32, residual=True),
    "normalised-3x48-relu": Architecture(3, 48, normalised=True),
}


def recipes() -> list[Recipe]:
    """Seven architectures on each data set."""
    listed = []
    for dataset in BUILDERS:
        regression = not load_dataset(dataset).classification
        chosen = group_rng(f"{dataset}/mlp").permutation(list(ARCHITECTURES))[:GROUPS_PER_DATASET]
        for architecture in sorted(chosen):
            steps = int(group_rng(f"{dataset}/{architecture}/unit").choice(STEPS_PER_UNIT))
            if ARCHITECTURES[architecture].costly:
                steps = min(steps, 2)
            listed += group_recipes(
                dataset, str(architecture), functools.partial(_settings, steps, -0.5 if regression else 0.0)
            )
    return listed


def _settings(steps: int, shift: float, rng: np.random.Generator) -> dict[str, Any]:
    """Draw the configuration of one run; the squared error gets lower learning rates by ``shift`` decades."""
    return {
        **draw_settings(rng, shift),
        "steps_per_unit": steps,
        "batch_size": int(rng.choice(BATCH_SIZES)),
        "dropout": float(rng.choice([0.0, 0.0, 0.1, 0.3])),
        "label_noise": float(rng.choice([0.0, 0.0, 0.0, 0.1, 0.25])),
    }


def record(batch: list[Recipe]) -> Recorded:
    """Train all runs of a group together."""
    data = load_dataset(batch[0].dataset)
    model = StackedPerceptron(ARCHITECTURES[batch[0].group.split("/")[1]], data, batch)
    labels = torch.stack([noisy_labels(data, recipe) for recipe in batch])
    inputs = torch.from_numpy(data.train_x)
    steps = batch[0].config["steps_per_unit"] * (POINTS - 1)
    order, weights = example_order(batch, len(inputs), steps)
    runs = torch.arange(len(batch))[:, None]
    held_x = torch.from_numpy(data.validation_x).expand(len(batch), -1, -1)
    held_y = torch.from_numpy(data.validation_y).expand(len(batch), *data.validation_y.shape)

    def start() -> Tensor:
        output = model(inputs.expand(len(batch), -1, -1))
        return example_loss(output, labels, data.classification).mean(1)

    def step_loss(step: int) -> Tensor:
        chosen = order[:, step]
        output = model(inputs[chosen], training=True)
        return (example_loss(output, labels[runs, chosen], data.classification) * weights).sum(1)

    def validate() -> Tensor:
        return example_loss(model(held_x), held_y, data.classification).mean(1)

    return train(batch, model.weights, start, step_loss, validate)


class StackedPerceptron:
    """R perceptrons of one shape."""

    def __init__(self, architecture: Architecture, data: Dataset, batch: Sequence[Recipe]) -> None:
        """Draw weights that keep the size of activations; biases start at zero."""
        self._architecture = architecture
        widths = [data.train_x.shape[1], *[architecture.width] * architecture.depth, data.outputs]
        shapes: list[Shape] = []
        for inputs, outputs in itertools.pairwise(widths):
            shapes += [((inputs, outputs), (3 / inputs) ** 0.5), ((1, outputs), 0.0)]
        self.weights = StackedWeights(shapes, batch)
        self._kept = 1 - torch.tensor([recipe.config.get("dropout", 0.0) for recipe in batch])[:, None, None]
        self._generators = [
            torch.Generator().manual_seed(run_seed(recipe, "dropout"))
            if recipe.config.get("dropout")
            else None
            for recipe in batch
        ]

    def __call__(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Outputs (R, B, O) for inputs (R, B, F)."""
        hidden = inputs
        for layer in range(self._architecture.depth):
            weights, bias = self.weights.leaves[2 * layer : 2 * layer + 2]
            after = torch.baddbmm(bias, hidden, weights)
            if self._architecture.normalised:
                after = functional.layer_norm(after, after.shape[-1:])
            after = self._architecture.activation(after)
            if training:
                after = self._drop(after)
            hidden = hidden + after if self._architecture.residual and layer else after
        weights, bias = self.weights.leaves[-2:]
        return torch.baddbmm(bias, hidden, weights)

    def _drop(self, hidden: Tensor) -> Tensor:
        """Dropout at each run's own rate, from its own generator."""
        if not any(self._generators):
            return hidden
        kept = torch.ones_like(hidden)
        for run, generator in enumerate(self._generators):
            if generator is not None:
                kept[run].bernoulli_(float(self._kept[run]), generator=generator).div_(self._kept[run])
        return hidden * kept


def noisy_labels(data: Dataset, recipe: Recipe) -> Tensor:
    """One run's training labels (n,) or (n, O): a share of classes redrawn, or noise added to targets."""
    share = recipe.config["label_noise"]
    rng = np.random.default_rng(run_seed(recipe, "labels"))
    if data.classification:
        wrong = rng.random(len(data.train_y)) < share
        return torch.from_numpy(np.where(wrong, rng.integers(data.outputs, size=len(wrong)), data.train_y))
    noise = 2 * share * rng.normal(size=data.train_y.shape)
    return torch.from_numpy((data.train_y + noise).astype(np.float32))


def example_order(batch: Sequence[Recipe], examples: int, steps: int) -> tuple[Tensor, Tensor]:
    """Which examples each step of each run sees.

    Returns:
        (R, steps, B) indices, shuffled passes over the examples, and the weights (R, B) of a step's examples:
        one over the run's batch size, 0 for padding.
    """
    sizes = [recipe.config["batch_size"] for recipe in batch]
    order = np.zeros((len(batch), steps, max(sizes)), dtype=np.int64)
    weights: NDArray[np.float32] = np.zeros((len(batch), max(sizes)), dtype=np.float32)
    for run, (recipe, size) in enumerate(zip(batch, sizes, strict=True)):
        order[run, :, :size] = shuffled_passes(recipe, examples, steps, size)
        weights[run, :size] = 1 / size
    return torch.from_numpy(order), torch.from_numpy(weights)


def example_loss(output: Tensor, target: Tensor, classification: bool) -> Tensor:
    """Loss (R, B) of each example: cross-entropy in nats, or the squared error averaged over the outputs."""
    if classification:
        return output.logsumexp(-1) - output.gather(-1, target[..., None])[..., 0]
    return (output - target).square().mean(-1)
