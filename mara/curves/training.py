"""Training many runs of one architecture side by side.

All runs' weights lie in one matrix, so that an optimizer step is a few operations for all of them.

Shapes: R runs, P parameters of one run, N = 200 points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mara.curves.corpus import POINTS
from mara.curves.optimizers import StackedOptimizer, learning_rates
from mara.curves.recipes import Recipe, Recorded, run_seed

Shape = tuple[tuple[int, ...], float]
"""Shape of one weight of one run, and the bound of its uniform initial values (0 for zeros)."""


class StackedWeights:
    """The weights of R runs: ``flat`` (R, P) and ``leaves``, views into it of shape (R, *shape)."""

    def __init__(self, shapes: Sequence[Shape], batch: Sequence[Recipe]) -> None:
        """Draw each run's initial weights from its own seed."""
        self.flat = torch.stack([_initial(shapes, recipe) for recipe in batch])
        sizes = [int(np.prod(shape)) for shape, _ in shapes]
        self.leaves = [
            part.view(len(batch), *shape).detach().requires_grad_()
            for part, (shape, _) in zip(torch.split(self.flat, sizes, dim=1), shapes, strict=True)
        ]


def _initial(shapes: Sequence[Shape], recipe: Recipe) -> Tensor:
    generator = torch.Generator().manual_seed(run_seed(recipe, "weights"))
    parts = []
    for shape, bound in shapes:
        drawn = torch.rand(int(np.prod(shape)), generator=generator)
        parts.append((2 * drawn - 1) * bound)
    return torch.cat(parts)


def train(
    batch: Sequence[Recipe],
    weights: StackedWeights,
    start: Callable[[], Tensor],
    step_loss: Callable[[int], Tensor],
    validate: Callable[[], Tensor],
) -> Recorded:
    """Train the runs of a batch for N - 1 units and record their losses.

    Args:
        batch: R recipes with optimizer, schedule, learning_rate, weight_decay and, the same in all,
            steps_per_unit.
        weights: what is trained.
        start: the training losses (R,) before training.
        step_loss: the training losses (R,) of a step, counted from 0, with gradients to the weights.
        validate: the validation losses (R,).
    """
    configs = [recipe.config for recipe in batch]
    steps = configs[0]["steps_per_unit"]
    rates = np.stack([learning_rates(config["schedule"], config["learning_rate"]) for config in configs])
    optimizer = StackedOptimizer(
        [config["optimizer"] for config in configs],
        [config["weight_decay"] for config in configs],
        weights.flat,
    )
    train_loss, validation_loss = np.empty((2, len(batch), POINTS))
    with torch.no_grad():
        train_loss[:, 0], validation_loss[:, 0] = start(), validate()
    for point in range(1, POINTS):
        rate = torch.tensor(rates[:, point], dtype=torch.float32)
        total = torch.zeros(len(batch))
        for step in range((point - 1) * steps, point * steps):
            loss = step_loss(step)
            gradients = torch.autograd.grad(loss.sum(), weights.leaves)
            optimizer.step(torch.cat([part.flatten(1) for part in gradients], 1), rate)
            total += loss.detach()
        with torch.no_grad():
            train_loss[:, point], validation_loss[:, point] = total / steps, validate()
    return Recorded(train_loss, validation_loss, rates)


def shuffled_passes(recipe: Recipe, examples: int, steps: int, size: int) -> NDArray[np.int64]:
    """Which of the examples (steps, size) a run sees: shuffled passes over all, from the run's own seed."""
    rng = np.random.default_rng(run_seed(recipe, "order"))
    passes = -(-steps * size // examples)
    shuffled = np.concatenate([rng.permutation(examples) for _ in range(passes)])
    return shuffled[: steps * size].reshape(steps, size)
