"""A small corpus in groups for tests: noisy power laws whose members differ as seeds and settings do."""

from __future__ import annotations

import numpy as np

from mara.curves.corpus import Corpus


def make_groups(groups: int, size: int, rng: np.random.Generator, points: int = 200) -> Corpus:
    """``groups * size`` curves; in a group the speed and the floor of the fall vary."""
    count = groups * size
    group = np.repeat(np.arange(groups), size)
    start = np.exp(rng.uniform(-1, 1, groups))[group]
    floor = rng.uniform(0, 0.5, groups)[group] + rng.uniform(0, 0.15, count)
    speed = np.exp(rng.uniform(np.log(0.02), np.log(0.4), groups)[group] + 0.5 * rng.standard_normal(count))
    power = rng.uniform(0.4, 1.5, groups)[group]
    unit = np.arange(points)
    fall = (1 + speed[:, None] * unit) ** -power[:, None]
    loss = start[:, None] * (floor[:, None] + (1 - floor[:, None]) * fall)
    loss *= np.exp(0.02 * rng.standard_normal(loss.shape))
    name = np.array([f"g{g:03d}" for g in group])
    return Corpus(
        id=np.array([f"g{g:03d}-{k:03d}" for k, g in enumerate(group)]),
        family=np.full(count, "supervised"),
        dataset=name,
        group=name,
        split=np.full(count, "train"),
        seed=np.arange(count),
        config=[{} for _ in range(count)],
        loss=loss.astype(np.float32),
        train_loss=loss.astype(np.float32),
        schedule=np.ones((count, points), dtype=np.float32),
        diverged_at=np.full(count, points, dtype=np.int32),
    )
