"""Recorder of the vision family: small convolutional networks on digits and on images made by rule.

Groups are data set x architecture. A group has seven configurations, every third of them with a second seed.
Runs differ in optimizer, schedule, learning rate, weight decay, batch size, steps a unit, number of training
images, label noise, dropout and the scale of the first weights. Runs of one batch size are trained side by
side; each draws its weights, its share of the training images, its wrong labels, its data order and its
dropout from its own seed.

The loss is the cross-entropy (classes, masks) or the mean squared error (numbers, images) over the fixed
validation images; point 0 is that of the untrained network. One unit is ``steps`` gradient steps.

Shapes: R runs of a batch, B images a step, C channels, H x W pixels, P parameters, K outputs, N = 200 points.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from mara.curves.convnets import (
    Activation,
    Conv,
    GlobalMean,
    Layer,
    Norm,
    Pool,
    Residual,
    StackedConvNet,
    Upsample,
)
from mara.curves.corpus import POINTS
from mara.curves.images import IMAGE_DATA, ImageData, image_data
from mara.curves.optimizers import StackedOptimizer, draw_settings, learning_rates
from mara.curves.recipes import Recipe, Recorded, run_seed

CONFIGURATIONS = 7
_PACES = {
    "classes": ((8, 4), (8, 8), (16, 2), (16, 4), (32, 2), (32, 3)),
    "numbers": ((8, 2), (8, 4), (16, 1), (16, 2), (32, 1), (32, 2)),
}
_PACES["image"] = _PACES["mask"] = _PACES["numbers"]
"""Images a step and steps a unit by kind of task; a group has two of these."""
_RATE_SHIFT = {"classes": 0.4, "numbers": 0.0, "image": 0.0, "mask": 0.0}
"""Added to log10 of the learning rates' range: classes are learned slowly at this scale."""


def _block(channels: int, activation: str, norm: bool) -> Residual:
    inside: tuple[Layer, ...] = (Conv(channels), Activation(activation), Conv(channels))
    return Residual((Norm(), *inside) if norm else inside)


ARCHITECTURES: dict[str, tuple[Layer, ...]] = {
    "pooled-8-16": (Conv(8), Activation(), Pool(), Conv(16), Activation(), Pool()),
    "pooled5-6": (Conv(6, 5), Activation("tanh"), Pool(False), GlobalMean()),
    "wide-24": (Conv(24, 3, 2), Activation(), GlobalMean()),
    "strided-8-16": (Conv(8, 3, 2), Activation(), Conv(16, 3, 2), Activation()),
    "deep-6x5": (
        *(Conv(6), Activation("tanh"), Pool(), *(Conv(6), Activation("tanh")) * 4),
        GlobalMean(),
    ),
    "residual-8x2": (
        *(Conv(8, 3, 2), _block(8, "relu", True), _block(8, "relu", True), Activation()),
        GlobalMean(),
    ),
    "residual-6-plain": (Conv(6), Pool(False), _block(6, "gelu", False), Activation("gelu")),
    "depthwise-12": (
        *(Conv(12, 3, 2), Norm(), Activation(), Conv(12, 3, 1, 1, True), Conv(12, 1)),
        *(Norm(), Activation(), GlobalMean()),
    ),
    "patches-16": (Conv(16, 4, 4), Activation("gelu"), Norm(), Conv(16, 1), Activation("gelu")),
}
"""Networks with one answer an image."""

DENSE_ARCHITECTURES: dict[str, tuple[Layer, ...]] = {
    "plain-8-8": (Conv(8), Activation(), Conv(8), Activation()),
    "kernel5-6": (Conv(6, 5), Activation("tanh")),
    "dilated-8": (Conv(8), Activation(), Conv(8, 3, 1, 2), Activation()),
    "residual-6x2": (Conv(6), _block(6, "relu", True), _block(6, "relu", True), Activation()),
    "depthwise-10": (
        Conv(10),
        Norm(),
        Activation("gelu"),
        Conv(10, 3, 1, 1, True),
        Conv(10, 1),
        Activation(),
    ),
    "bottleneck-12": (
        Conv(12, 3, 2),
        Activation(),
        Conv(12),
        Activation(),
        Upsample(),
        Conv(6),
        Activation(),
    ),
}
"""Networks with an answer at every pixel."""

_PER_DATA_SET = 5
"""Architectures taken for a data set, in turn, so that each sees several data sets."""


def recipes() -> list[Recipe]:
    """Every run of the family, in row order."""
    found = []
    for place, (dataset, (_, kind)) in enumerate(IMAGE_DATA.items()):
        names = list(DENSE_ARCHITECTURES if kind in ("image", "mask") else ARCHITECTURES)
        for turn in range(_PER_DATA_SET):
            found += _group_recipes(dataset, names[(place + turn) % len(names)], kind)
    return found


def _group_recipes(dataset: str, architecture: str, kind: str) -> list[Recipe]:
    group = f"{dataset}/{architecture}"
    rng = np.random.default_rng([40231, *group.encode()])
    paces = rng.permutation(_PACES[kind])[:2]
    found = []
    for index in range(CONFIGURATIONS):
        batch_size, steps = (int(number) for number in paces[index % 2])
        config = draw_settings(rng, _RATE_SHIFT[kind]) | {
            "batch_size": batch_size,
            "steps": steps,
            "train_size": int(rng.choice([128, 400, 1200, 1200])),
            "label_noise": float(rng.choice([0.0, 0.0, 0.1, 0.3])) if kind == "classes" else 0.0,
            "dropout": float(rng.choice([0.0, 0.0, 0.2])),
            "gain": float(rng.choice([0.3, 1.0, 1.0, 1.0, 1.8])),
        }
        for sibling in range(2 if index % 3 == 0 else 1):
            found.append(
                Recipe(
                    id=f"{group}/{index:02d}-{sibling}",
                    family="vision",
                    dataset=dataset,
                    group=group,
                    config=config,
                    seed=sibling,
                    split="test",
                    batch=f"{group}/{batch_size}x{steps}",
                )
            )
    return found


def record(batch: list[Recipe]) -> Recorded:
    """Train the runs of one batch side by side; they share data set, architecture, batch size and steps."""
    first, configs = batch[0], [recipe.config for recipe in batch]
    data = image_data(first.dataset)
    layers = (ARCHITECTURES | DENSE_ARCHITECTURES)[first.group.split("/")[1]]
    _, channels, height, width = data.train_x.shape
    net = StackedConvNet(layers, (channels, height, width), data.outputs, data.dense)
    parameters = torch.stack(
        [
            net.initial(recipe.config["gain"], torch.Generator().manual_seed(run_seed(recipe, "weights")))
            for recipe in batch
        ]
    ).requires_grad_()
    optimizer = StackedOptimizer(
        [config["optimizer"] for config in configs],
        [config["weight_decay"] for config in configs],
        parameters,
    )
    schedule = np.stack([learning_rates(config["schedule"], config["learning_rate"]) for config in configs])
    feed = _Feed(data, batch)
    droppers = [torch.Generator().manual_seed(run_seed(recipe, "dropout")) for recipe in batch]
    dropout = [config["dropout"] for config in configs]

    valid_x = torch.from_numpy(data.valid_x).repeat(1, len(batch), 1, 1)
    valid_y = torch.from_numpy(data.valid_y).expand(len(batch), *data.valid_y.shape)
    train_loss = np.empty((len(batch), POINTS))
    validation_loss = np.empty((len(batch), POINTS))
    with torch.no_grad():
        images, answers = feed.next()
        train_loss[:, 0] = _losses(net.forward(parameters, images), answers, data.kind).numpy()
        validation_loss[:, 0] = _losses(net.forward(parameters, valid_x), valid_y, data.kind).numpy()
    for point in range(1, POINTS):
        rate = torch.from_numpy(schedule[:, point]).float()
        total = torch.zeros(len(batch))
        for _ in range(configs[0]["steps"]):
            images, answers = feed.next()
            keep = _dropout_factors(len(images), net.last_channels, dropout, droppers)
            losses = _losses(net.forward(parameters, images, keep), answers, data.kind)
            (gradient,) = torch.autograd.grad(losses.sum(), parameters)
            optimizer.step(gradient, rate)
            total += losses.detach()
        train_loss[:, point] = (total / configs[0]["steps"]).numpy()
        with torch.no_grad():
            validation_loss[:, point] = _losses(net.forward(parameters, valid_x), valid_y, data.kind).numpy()
    return Recorded(train_loss, validation_loss, schedule)


class _Feed:
    """Gives each run its own batches: epochs over its own share of the training images, in its own order."""

    def __init__(self, data: ImageData, batch: list[Recipe]) -> None:
        """Draw each run's share, its wrong labels and its order for all steps."""
        config = batch[0].config
        needed = (1 + (POINTS - 1) * config["steps"]) * config["batch_size"]
        self._images = torch.from_numpy(data.train_x)
        self._answers = []
        orders = []
        for recipe in batch:
            rng = np.random.default_rng(run_seed(recipe, "data"))
            share = rng.permutation(len(data.train_x))[: recipe.config["train_size"]]
            answers = data.train_y.copy()
            if recipe.config["label_noise"] > 0:
                wrong = rng.random(len(answers)) < recipe.config["label_noise"]
                answers[wrong] = rng.integers(0, data.outputs, wrong.sum())
            self._answers.append(torch.from_numpy(answers))
            epochs = -(-needed // len(share))
            orders.append(np.concatenate([rng.permutation(share) for _ in range(epochs)])[:needed])
        self._order = torch.from_numpy(np.stack(orders)).reshape(len(batch), -1, config["batch_size"])
        self._step = 0

    def next(self) -> tuple[Tensor, Tensor]:
        """Return the next images (B, R * C, H, W) and answers (R, B, ...)."""
        rows = self._order[:, self._step]
        self._step += 1
        images = self._images[rows].transpose(0, 1).flatten(1, 2)
        return images, torch.stack([answers[row] for answers, row in zip(self._answers, rows, strict=True)])


def _losses(outputs: Tensor, answers: Tensor, kind: str) -> Tensor:
    """Return each run's mean loss (R,) of outputs (R, B, K, ...) against answers (R, B, ...)."""
    if kind == "classes":
        runs, images = answers.shape
        entropy = F.cross_entropy(outputs.flatten(0, 1), answers.flatten(), reduction="none")
        return entropy.reshape(runs, images).mean(dim=1)
    if kind == "mask":
        each = F.binary_cross_entropy_with_logits(outputs, answers, reduction="none")
    else:
        each = (outputs - answers).square()
    return each.flatten(1).mean(dim=1)


def _dropout_factors(
    images: int, channels: int, rates: Sequence[float], generators: Sequence[torch.Generator]
) -> Tensor | None:
    """Return factors (B, R * C) that drop channels at each run's rate; None if no run drops any."""
    if not any(rates):
        return None
    factors = torch.ones(images, len(rates), channels)
    for run, (rate, generator) in enumerate(zip(rates, generators, strict=True)):
        if rate > 0:
            factors[:, run] = (torch.rand(images, channels, generator=generator) >= rate) / (1.0 - rate)
    return factors.flatten(1)
