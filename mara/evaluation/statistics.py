"""Intervals, p-values and indices: all the statistics that the tables need.

A result is a ratio of sums, such as tasks completed / tasks arrived. For resampling it is enough to know
the two sums of every unit that may be drawn again (a curve group, or an episode) and of every training
seed. One matrix product then gives all resamples of all methods at once, with the *same* drawn units for
every method, which is what makes differences paired.

Shapes: U units (groups or episodes), S training seeds, K methods, B resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """An estimate with the ends of its confidence interval (NaN where there is too little to resample)."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Sums:
    """Numerator and denominator of a ratio, by unit and training seed; both (U, S)."""

    hits: Floats
    trials: Floats


@dataclass(frozen=True)
class Resampled:
    """K ratios: as measured, ``estimate`` (K,), and in every resample, ``samples`` (B, K)."""

    estimate: Floats
    samples: Floats
    units: int

    def interval(self, weights: ArrayLike, level: float = 0.95) -> Interval:
        """Interval of the linear contrast ``sum_k weights[k] * ratio[k]``."""
        w = np.asarray(weights, dtype=np.float64)
        return percentile_interval(float(self.estimate @ w), self.samples @ w, level, self.units)

    def p_value(self, weights: ArrayLike) -> float:
        """Two-sided p-value of the contrast being zero; see :func:`contrast_p_value`."""
        w = np.asarray(weights, dtype=np.float64)
        return contrast_p_value(float(self.estimate @ w), self.samples @ w, self.units)


def resample_weights(units: int, resamples: int, rng: np.random.Generator) -> Floats:
    """How often each of ``units`` units is drawn in each of ``resamples`` resamples, (B, U)."""
    drawn = rng.integers(0, units, size=(resamples, units))
    drawn += np.arange(resamples)[:, None] * units
    counts = np.bincount(drawn.ravel(), minlength=resamples * units)
    return counts.reshape(resamples, units).astype(np.float64)


def widen_seeds(values: Floats) -> Floats:
    """Spread (U, S) values about their mean over seeds by sqrt(S / (S - 1)).

    A bootstrap over S seeds has (S - 1) / S of the variance that it should have, which matters with the
    handful of seeds one can train. The mean over seeds stays.
    """
    seeds = values.shape[1]
    if seeds == 1:
        return values
    mean = values.mean(axis=1, keepdims=True)
    return mean + np.sqrt(seeds / (seeds - 1.0)) * (values - mean)


def resampled_ratios(methods: Sequence[Sums], unit_weights: Floats, rng: np.random.Generator) -> Resampled:
    """Resample units and training seeds together and return the ratio of every method in every resample.

    Units and seeds are drawn independently of each other (the pigeonhole bootstrap of Owen, 2007). Methods
    with equally many seeds get the same seeds drawn, so that their difference is paired in both; others
    get theirs drawn independently.

    Args:
        methods: sums of every method over the same U units.
        unit_weights: (B, U) from :func:`resample_weights`.
        rng: draws the training seeds.
    """
    resamples, units = unit_weights.shape
    if any(m.hits.shape[0] != units or m.trials.shape != m.hits.shape for m in methods):
        raise ValueError("every method needs hits and trials of shape (U, S) with the U of the weights")
    counts = sorted({m.hits.shape[1] for m in methods})
    drawn = {count: rng.integers(0, count, size=(resamples, count)) for count in counts}
    estimate = np.empty(len(methods))
    samples = np.empty((resamples, len(methods)))
    for k, sums in enumerate(methods):
        seeds = sums.hits.shape[1]
        seed_weights = (drawn[seeds][:, :, None] == np.arange(seeds)).sum(axis=1)
        hits = ((unit_weights @ widen_seeds(sums.hits)) * seed_weights).sum(axis=1)
        trials = ((unit_weights @ sums.trials) * seed_weights).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            samples[:, k] = hits / trials
            estimate[k] = sums.hits.sum() / sums.trials.sum()
    return Resampled(estimate, samples, units)


def percentile_interval(estimate: float, samples: Floats, level: float, units: int) -> Interval:
    """Percentile interval of (B,) resamples; NaN ends when fewer than two units could be resampled."""
    finite = samples[np.isfinite(samples)]
    if units < 2 or finite.size == 0:
        return Interval(estimate, np.nan, np.nan)
    low, high = np.quantile(finite, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Interval(estimate, float(low), float(high))


def contrast_p_value(estimate: float, samples: Floats, units: int) -> float:
    """Two-sided p-value of a contrast of zero: Student's t on the bootstrap's standard error.

    Counting resamples on the other side of zero cannot go below 1 / B and would never survive a
    correction over many comparisons; the t tail with U - 1 degrees of freedom can.
    """
    if units < 2:
        return float("nan")
    error = float(np.std(samples, ddof=1))
    if error == 0.0:
        return 1.0 if estimate == 0.0 else 0.0
    return float(2.0 * stats.t.sf(abs(estimate) / error, units - 1))


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down adjustment of a family of p-values (Holm, 1979); NaN stays NaN and is not counted."""
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p.shape, np.nan)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return adjusted


def jain(shares: ArrayLike) -> Floats:
    """Jain's fairness index (sum x)^2 / (n sum x^2) along the last axis: 1 = alike, 1/n = one has all.

    Nobody having anything is alike, so all zeros give 1. Entries that are NaN are left out.
    """
    x = np.asarray(shares, dtype=np.float64)
    count = np.isfinite(x).sum(axis=-1)
    total, square = np.nansum(x, axis=-1), np.nansum(x * x, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        index = np.where(square > 0.0, total**2 / (count * square), 1.0)
    return np.asarray(np.where(count > 0, index, np.nan))


def combine_difference(first: Interval, second: Interval) -> Interval:
    """Interval of ``first - second`` from the two intervals alone, as if measured independently.

    MOVER (Zou and Donner, 2008): the distances to the nearer relevant ends add in squares. Where the two
    were measured on the same cases this is wider than the paired interval.
    """
    difference = first.estimate - second.estimate
    low = difference - np.hypot(first.estimate - first.low, second.high - second.estimate)
    high = difference + np.hypot(first.high - first.estimate, second.estimate - second.low)
    return Interval(difference, float(low), float(high))


def overlap(first: Interval, second: Interval) -> bool:
    """Whether two intervals share a point (an unknown end excludes nothing)."""
    return not (first.high < second.low or second.high < first.low)
