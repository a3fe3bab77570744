"""Straight lines through the newest points of a curve, and where they cross a target.

In log-log coordinates a line is a power law, loss = a * units^slope; with units on a plain axis it is an
exponential. All sums are closed-form and vectorised over the questions.

Shape legend: B questions, K newest points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mara.curves.smoothing import SMOOTHING_POINTS
from mara.predictors.forecast import Query

Floats = NDArray[np.float64]

LEAST_SLOPE = 1e-12
"""A fall slower than this is rounding."""
NEGLIGIBLE = 1e-9
"""Weights below this share of the newest point's are left out."""


@dataclass(frozen=True)
class Newest:
    """The K newest points of every prefix, oldest first.

    unit: (B, K) index of the point; log_loss: (B, K), 0 where not known; known: (B, K) whether the point
    exists and is positive and finite; age: (K,) steps before the newest point.
    """

    unit: Floats
    log_loss: Floats
    known: NDArray[np.bool_]
    age: Floats


def newest(query: Query, count: int) -> Newest:
    """Take at most the ``count`` newest points of every prefix."""
    return newest_points(query.loss, query.length, count)


def newest_points(loss: NDArray, length: NDArray[np.integer], count: int) -> Newest:
    """Take at most the ``count`` newest points of prefixes of length (B,) of losses (B, N)."""
    age = np.arange(min(count, int(length.max(initial=1))))[::-1]
    unit = length[:, None] - 1 - age
    seen = np.take_along_axis(loss, np.maximum(unit, 0), axis=1).astype(np.float64)
    known = (unit >= 0) & np.isfinite(seen) & (seen > 0)
    return Newest(unit.astype(np.float64), np.log(np.where(known, seen, 1.0)), known, age.astype(np.float64))


def newest_smoothed(query: Query) -> Floats:
    """(B,) log of the newest smoothed loss: the mean of the last five points, or fewer at the start."""
    points = newest(query, SMOOTHING_POINTS)
    loss = np.where(points.known, np.exp(points.log_loss), 0.0)
    count = points.known.sum(axis=1)
    return np.log(np.where(count > 0, loss.sum(axis=1) / np.maximum(count, 1), 1.0))


def points_in_memory(memory: float) -> int:
    """Number of newest points whose weight ``exp(-age / memory)`` is not negligible."""
    return int(np.ceil(-np.log(NEGLIGIBLE) * memory))


def fit_line(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Weighted least-squares lines: slope (B,) and value (B,) at the last x.

    x, y, weight: (B, K); points of weight 0 are ignored. The slope is NaN where fewer than two different x
    carry weight. Centring before summing keeps it exact for large x.
    """
    total = np.maximum(weight.sum(axis=1), 1e-300)
    x_mean = (weight * x).sum(axis=1) / total
    y_mean = (weight * y).sum(axis=1) / total
    dx = np.where(weight > 0, x - x_mean[:, None], 0.0)
    spread = (weight * dx * dx).sum(axis=1)
    cross = (weight * dx * (y - y_mean[:, None])).sum(axis=1)
    enough = spread > 1e-12 * total
    slope = np.where(enough, cross / np.where(enough, spread, 1.0), np.nan)
    return slope, y_mean + np.where(enough, slope, 0.0) * (x[:, -1] - x_mean)


def power_law_remaining(units: Floats, drop: Floats, slope: Floats) -> Floats:
    """(B,) further units after which the log loss of a power law has changed by ``drop``; inf where never.

    units: (B,) units so far (at least 1 counts); slope: (B,) of log loss over log units.
    """
    falling = slope < -LEAST_SLOPE
    growth = np.where(falling, drop / np.where(falling, slope, -1.0), np.inf)
    with np.errstate(over="ignore"):
        return np.maximum(units, 1.0) * np.expm1(growth)


def exponential_remaining(drop: Floats, slope: Floats) -> Floats:
    """(B,) the same for an exponential, with the slope of log loss over units."""
    falling = slope < -LEAST_SLOPE
    return np.where(falling, drop / np.where(falling, slope, -1.0), np.inf)


def log_target(query: Query) -> Floats:
    """(B,) log of the target; -inf where it is not above 0, which no curve reaches."""
    target = np.asarray(query.target, dtype=np.float64)
    possible = target > 0
    return np.where(possible, np.log(np.where(possible, target, 1.0)), -np.inf)
