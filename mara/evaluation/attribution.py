"""Which part of the lead is owed to the predictor and which to the allocator.

A full factorial of predictors and allocators is run on the same episodes. Against a base cell (the
baseline's predictor and allocator), the main effect of a predictor is the change it makes, averaged over
the two allocators; in two factors that average is also its Shapley value, so predictor and allocator
effects add up to the whole lead. The interaction is what the pair brings beyond the sum of both changes
made one at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from mara.errors import InputError
from mara.evaluation.completion import Parts
from mara.evaluation.outcomes import PairedOutcomes

EFFECT_COLUMNS = (
    "suite",
    "workload",
    "load",
    "method",
    "predictor",
    "allocator",
    "base_method",
    "effect",
    "value",
    "low",
    "high",
    "p_value",
    "n_groups",
    "n_episodes",
)

GRID = "grid"
"""In place of a method: effects averaged over all that was run."""

Effect = tuple[str, dict[Parts, float]]


def effect_contrasts(base: Parts, full: Parts) -> list[Effect]:
    """Weights on the four cells spanned by ``base`` and ``full`` for each effect."""
    predictor_only = Parts(full.predictor, base.allocator)
    allocator_only = Parts(base.predictor, full.allocator)
    return [
        ("total", {full: 1.0, base: -1.0}),
        ("predictor", {predictor_only: 0.5, base: -0.5, full: 0.5, allocator_only: -0.5}),
        ("allocator", {allocator_only: 0.5, base: -0.5, full: 0.5, predictor_only: -0.5}),
        ("interaction", {full: 1.0, predictor_only: -1.0, allocator_only: -1.0, base: 1.0}),
        ("predictor_minus_allocator", {predictor_only: 1.0, allocator_only: -1.0}),
    ]


def effect_rows(outcomes: PairedOutcomes, parts: Mapping[str, Parts], base: str) -> pd.DataFrame:
    """Effects, with intervals, of every method that differs from ``base`` in both factors.

    Methods whose two intermediate cells were not run are left out.

    Args:
        outcomes: the attribution suite's runs in one setting.
        parts: predictor and allocator of every method in ``outcomes``.
        base: the method from whose cell effects are counted, LARA on its own estimator.

    Raises:
        InputError: ``base`` was not run, or two methods fill one cell.
    """
    if base not in outcomes.methods:
        raise InputError(f"{outcomes.setting}: no run of {base!r}; effects are counted from it")
    cells: dict[Parts, str] = {}
    for method in outcomes.methods:
        cell = parts[method]
        if cell in cells:
            raise InputError(f"{outcomes.setting}: {cells[cell]!r} and {method!r} are both {cell}; keep one")
        cells[cell] = method
    start = parts[base]
    rows = []
    for full, method in cells.items():
        if full.predictor == start.predictor or full.allocator == start.allocator:
            continue
        contrasts = effect_contrasts(start, full)
        if all(weights.keys() <= cells.keys() for _, weights in contrasts):
            rows += [_row(outcomes, cells, base, method, full, *contrast) for contrast in contrasts]
    for seen, contrast in main_effects(start, list(cells)):
        rows.append(_row(outcomes, cells, base, GRID, seen, *contrast))
    return pd.DataFrame(rows, columns=list(EFFECT_COLUMNS))


def _row(
    outcomes: PairedOutcomes,
    cells: Mapping[Parts, str],
    base: str,
    method: str,
    full: Parts,
    effect: str,
    weights: Mapping[Parts, float],
) -> dict[str, object]:
    """One contrast of cells with its interval."""
    members = [cells[cell] for cell in weights]
    drawn = outcomes.resample(members, "group")
    value = drawn.interval(list(weights.values()), outcomes.settings.confidence)
    return {
        **outcomes.setting._asdict(),
        "method": method,
        "predictor": full.predictor,
        "allocator": full.allocator,
        "base_method": base,
        "effect": effect,
        "value": value.estimate,
        "low": value.low,
        "high": value.high,
        "p_value": drawn.p_value(list(weights.values())),
        "n_groups": drawn.units,
        "n_episodes": len(frozenset.intersection(*map(outcomes.episodes, members))),
    }


def main_effects(base: Parts, cells: Sequence[Parts]) -> list[tuple[Parts, Effect]]:
    """Each predictor against the base's, and each allocator, averaged over the cells that were run with both.

    The factor that is averaged over is called "all" in the parts.
    """
    found = []
    for predictor in dict.fromkeys(cell.predictor for cell in cells if cell.predictor != base.predictor):
        pairs = [
            (cell, Parts(base.predictor, cell.allocator)) for cell in cells if cell.predictor == predictor
        ]
        found.append((Parts(predictor, "all"), ("predictor", _mean_change(pairs, cells))))
    for allocator in dict.fromkeys(cell.allocator for cell in cells if cell.allocator != base.allocator):
        pairs = [
            (cell, Parts(cell.predictor, base.allocator)) for cell in cells if cell.allocator == allocator
        ]
        found.append((Parts("all", allocator), ("allocator", _mean_change(pairs, cells))))
    return [(seen, contrast) for seen, contrast in found if contrast[1]]


def _mean_change(pairs: Sequence[tuple[Parts, Parts]], cells: Sequence[Parts]) -> dict[Parts, float]:
    """Weights of the mean of first minus second, over the pairs of which both were run."""
    known = [(first, second) for first, second in pairs if second in cells]
    weights: dict[Parts, float] = {}
    for first, second in known:
        weights[first], weights[second] = 1 / len(known), -1 / len(known)
    return weights
