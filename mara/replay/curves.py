"""Training curves for tasks of which only the demand is known, so that predictors have something to read.

A cluster trace says how long a job ran, not how its loss fell. Each template gets a recorded curve of the
test split, drawn at random among a few the one that fits best: with a unit m at which its smoothed loss was
at a new best, as near as possible to the template's demand n. The curve is stretched by n / m along its units
(interpolated in the logarithm of the loss), and the target is its level at n. The demand stays the trace's.

Shapes: C recorded curves, N = 200 points, K templates.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mara.curves.corpus import Corpus
from mara.curves.smoothing import smooth
from mara.errors import InputError
from mara.workload.tasks import TaskPool

CANDIDATES = 8
"""Curves that are drawn for each template."""
IMPROVEMENT = 0.05
"""A new best counts if it is this much below the start, as in the study's tasks."""
LONGEST_LEVEL = 180
"""Units at which a curve's level is taken for demands beyond the curve's end."""


def with_curves(pool: TaskPool, recorded: Corpus, rng: np.random.Generator) -> tuple[TaskPool, Corpus]:
    """The pool with targets, and the corpus of its curves (K of them, one a template).

    Raises:
        InputError: no recorded curve falls far enough.
    """
    whole = recorded.select(recorded.diverged_at >= recorded.loss.shape[1])
    smoothed = smooth(whole.loss.astype(np.float64))
    best = np.minimum.accumulate(smoothed, axis=1)
    new = np.diff(best, axis=1, prepend=np.inf) < 0
    new &= best <= (1 - IMPROVEMENT) * smoothed[:, :1]
    usable = np.flatnonzero(new.any(axis=1))
    if not len(usable):
        raise InputError("no recorded curve falls by 5 %; there is nothing to draw training curves from")
    nearest = _nearest_new_best(new)
    curve = usable[rng.integers(len(usable), size=(len(pool), CANDIDATES))]
    wanted = np.minimum(pool.demand, LONGEST_LEVEL).astype(np.int64)
    unit = nearest[curve, wanted[:, None]]
    stretch = pool.demand[:, None] / unit
    pick = np.abs(np.log(stretch)).argmin(axis=1)
    row = np.arange(len(pool))
    curve, unit, stretch = curve[row, pick], unit[row, pick], stretch[row, pick]
    loss = np.exp(_stretched(np.log(whole.loss[curve].astype(np.float64)), stretch))
    schedule = _stretched(whole.schedule[curve].astype(np.float64), stretch)
    levels = np.minimum.accumulate(smooth(loss), axis=1)
    points = loss.shape[1]
    inside = pool.demand < points
    own = levels[row, np.minimum(pool.demand, points - 1)]
    beyond = np.minimum(best[curve, unit], (1 - 1e-4) * levels[:, -1])  # not reached on the curve
    target = np.where(inside, own, beyond).astype(np.float32)
    corpus = Corpus(
        id=pool.curve_id,
        family=pool.family,
        dataset=whole.dataset[curve],
        group=pool.group,
        split=np.full(len(pool), "test"),
        seed=whole.seed[curve],
        config=[
            {"curve": str(whole.id[c]), "stretch": float(s)} for c, s in zip(curve, stretch, strict=True)
        ],
        loss=loss.astype(np.float32),
        train_loss=loss.astype(np.float32),
        schedule=schedule.astype(np.float32),
        diverged_at=np.full(len(pool), points, dtype=np.int32),
    )
    return replace(pool, target=target), corpus


def _nearest_new_best(new: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each curve and unit the nearest unit >= 1 with a new best: (C, N); the first for rows with none."""
    units = np.arange(new.shape[1])
    far = 10 * new.shape[1]
    marked = new & (units > 0)
    before = np.maximum.accumulate(np.where(marked, units, -far), axis=1)
    after = np.minimum.accumulate(np.where(marked, units, far)[:, ::-1], axis=1)[:, ::-1]
    return np.maximum(np.where(units - before <= after - units, before, after), 1)


def _stretched(values: NDArray[np.float64], stretch: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (K, N) read at u / stretch (K,) for the units u = 0 .. N-1, held at the last point."""
    last = values.shape[1] - 1
    at = np.minimum(np.arange(last + 1) / stretch[:, None], last)
    left = np.floor(at).astype(np.int64)
    right = np.minimum(left + 1, last)
    rows = np.arange(len(values))[:, None]
    part = at - left
    return (1 - part) * values[rows, left] + part * values[rows, right]
