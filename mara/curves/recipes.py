"""What a recorded curve is made from, and who can record it.

A *recipe* says all that a run depends on. A *recorder* is a module with two functions::

    recipes() -> list[Recipe]                    every recipe of the module, in the corpus' row order
    record(batch: list[Recipe]) -> Recorded      the curves of one whole batch

A batch is the set of recipes that share ``Recipe.batch``; the recipe list fixes it. Vectorised arithmetic may
round differently when other runs share a tensor, so curves are always recorded batch by batch, also when only
one of a batch is wanted: the same id then gives the same bits.

Shapes: B recipes of a batch, N = 200 points.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mara.curves.corpus import POINTS
from mara.curves.recorders import RECORDERS
from mara.errors import InputError


@dataclass(frozen=True)
class Recipe:
    """All that one recorded run depends on."""

    id: str
    """Unique in the whole corpus, for example ``wine/mlp-2x64-relu/03-1``."""
    family: str
    """supervised, vision or rl."""
    dataset: str
    """Data set or environment."""
    group: str
    """Data set x architecture, for example ``wine/mlp-2x64-relu``; a group lies in one split."""
    config: dict[str, Any]
    """Settings of the run as JSON values; the same in siblings, which differ in the seed only."""
    seed: int
    """The only source of the run's randomness (initial weights, data order, dropout, label noise)."""
    split: str
    """train, calibration, validation or test."""
    batch: str
    """Name of the batch it is recorded in."""


@dataclass(frozen=True)
class Recorded:
    """The raw curves of a batch, rows in the order of its recipes.

    Non-finite points are allowed; everything from a curve's first one on is later marked as diverged.
    """

    train_loss: NDArray
    """(B, N) mean loss of the training steps of each unit; point 0 before training."""
    validation_loss: NDArray
    """(B, N) the loss that counts."""
    schedule: NDArray
    """(B, N) learning rate of the unit that ends at the point; point 0 repeats point 1."""

    def __post_init__(self) -> None:
        for name in ("train_loss", "validation_loss", "schedule"):
            values = getattr(self, name)
            if values.ndim != 2 or values.shape[1] != POINTS:
                raise ValueError(f"{name} has shape {values.shape}, not (B, {POINTS})")


def recorder_modules(family: str) -> list[ModuleType]:
    """Import the recorders of a family."""
    return [importlib.import_module(name) for name in RECORDERS[family]]


def family_batches(family: str) -> list[tuple[ModuleType, list[Recipe]]]:
    """All batches of a family with their recorders, recipes in row order inside each.

    Raises:
        ValueError: if an id occurs twice, a group lies in two splits or a batch in two recorders.
    """
    batches: dict[str, tuple[ModuleType, list[Recipe]]] = {}
    ids: set[str] = set()
    splits: dict[str, str] = {}
    for module in recorder_modules(family):
        for recipe in module.recipes():
            if recipe.id in ids:
                raise ValueError(f"recipe id {recipe.id} occurs twice")
            if splits.setdefault(recipe.group, recipe.split) != recipe.split:
                raise ValueError(f"group {recipe.group} lies in two splits")
            ids.add(recipe.id)
            owner, members = batches.setdefault(recipe.batch, (module, []))
            if owner is not module:
                raise ValueError(f"batch {recipe.batch} belongs to two recorders")
            members.append(recipe)
    return list(batches.values())


def find_batches(ids: Iterable[str]) -> list[tuple[ModuleType, list[Recipe]]]:
    """The batches that hold the given ids.

    Raises:
        InputError: for an id that no recipe has.
    """
    wanted = set(ids)
    found = []
    for family in RECORDERS:
        for module, members in family_batches(family):
            held = wanted.intersection(recipe.id for recipe in members)
            if held:
                found.append((module, members))
                wanted -= held
        if not wanted:
            return found
    raise InputError(
        f"no recipe has the id {min(wanted)!r}; ids stand in column id of mara/curves/data/*.parquet"
    )


def fingerprint(batch: list[Recipe]) -> str:
    """Hash of everything the recipes of a batch say, to tell whether a kept shard is still theirs."""
    text = json.dumps([asdict(recipe) for recipe in batch], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def run_seed(recipe: Recipe, purpose: str) -> int:
    """A 63-bit seed for one purpose ("weights", "order", ...) of one run, independent of all others."""
    entropy = [recipe.seed, *hashlib.sha256(f"{recipe.id}|{purpose}".encode()).digest()[:8]]
    high, low = np.random.SeedSequence(entropy).generate_state(2)
    return (int(high) << 31) ^ int(low)
