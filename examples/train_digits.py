"""Make some training logs to try MARA on: small networks learn to read digits, at several learning rates.

    python examples/train_digits.py runs

writes runs/hidden<width>/rate<rate>.csv with the columns epoch, loss and val_loss, in a few seconds.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

EPOCHS = 80
BATCH = 100
TRAINING = 1200
"""Digits that are learned from; the others measure."""


def train(hidden: int, rate: float, path: Path) -> None:
    """Train one network of one hidden layer and log its losses after every epoch."""
    rng = np.random.default_rng(hidden)
    digits, labels = load_digits(return_X_y=True)
    order = rng.permutation(len(digits))
    x, y = digits[order] / 16, np.eye(10)[labels[order]]
    first, second = rng.normal(0, 0.1, (64, hidden)), rng.normal(0, 0.1, (hidden, 10))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["epoch", "loss", "val_loss"])
        for epoch in range(EPOCHS):
            inner, chance = forward(x, first, second)
            losses = -(y * np.log(chance)).sum(axis=1)
            means = losses[:TRAINING].mean(), losses[TRAINING:].mean()
            writer.writerow([epoch, *(f"{mean:.5f}" for mean in means)])
            for batch in np.array_split(rng.permutation(TRAINING), TRAINING // BATCH):
                inner, chance = forward(x[batch], first, second)
                error = (chance - y[batch]) / len(batch)
                back = error @ second.T * (inner > 0)
                second -= rate * inner.T @ error
                first -= rate * x[batch].T @ back


def forward(x: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Activations of the hidden layer (B, hidden) and chances of the ten digits (B, 10)."""
    inner = np.maximum(x @ first, 0)
    raised = np.exp(inner @ second)
    return inner, raised / raised.sum(axis=1, keepdims=True)


def main(folder: Path) -> None:
    """Two widths at two rates each."""
    for hidden in (16, 64):
        for rate in (0.05, 0.2):
            train(hidden, rate, folder / f"hidden{hidden}" / f"rate{rate}.csv")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
