"""Which supervised runs there are: groups, their splits, their settings and their siblings.

A group is a data set x an architecture and lies in one split. Some data sets lie wholly in one split, so that
calibration, validation and test all hold data that training never saw; the groups of the others are dealt out
by a hash of their names.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from mara.curves.recipes import Recipe

WHOLE_DATASETS = {
    "test": (
        "wine",
        "wine_colour",
        "letters",
        "parity5",
        "spirals",
        "friedman3",
        "teacher_relu",
        "pendulum",
        "text_arithmetic",
    ),
    "calibration": ("shells", "products"),
    "validation": ("hastie", "waves"),
}
"""Data sets that occur in one split only."""

SHARES = (("test", 0.19), ("calibration", 0.08), ("validation", 0.08))
"""Shares of the other data sets' groups; the rest is for training."""

SIBLING_EVERY = 3
"""Every third configuration of a group is run once more with another seed."""


def split_of(dataset: str, group: str) -> str:
    """The split of a group."""
    for split, names in WHOLE_DATASETS.items():
        if dataset in names:
            return split
    place = int.from_bytes(hashlib.sha256(group.encode()).digest()[:8]) / 2**64
    for split, share in SHARES:
        if place < share:
            return split
        place -= share
    return "train"


def group_rng(group: str) -> np.random.Generator:
    """The generator from which a group's settings are drawn."""
    return np.random.default_rng(zlib.crc32(group.encode()))


def group_recipes(
    dataset: str, architecture: str, settings: Callable[[np.random.Generator], dict[str, Any]]
) -> list[Recipe]:
    """Five to eight configurations of a group and the siblings of every third, as one batch.

    Args:
        dataset: name of the data set.
        architecture: name of the architecture.
        settings: draws the configuration of one run.
    """
    group = f"{dataset}/{architecture}"
    rng = group_rng(group)
    recipes = []
    for number in range(int(rng.integers(5, 9))):
        config = settings(rng)
        for twin in range(2 if number % SIBLING_EVERY == 0 else 1):
            name = f"{group}/{number:02d}-{twin}"
            recipes.append(
                Recipe(
                    id=name,
                    family="supervised",
                    dataset=dataset,
                    group=group,
                    config=config,
                    seed=zlib.crc32(name.encode()),
                    split=split_of(dataset, group),
                    batch=group,
                )
            )
    return recipes
