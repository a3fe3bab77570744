"""Intervals, p-values and indices: all the statistics that the tables need.

A result is a ratio of sums, such as tasks completed / tasks arrived. For resampling it is enough to know
the two sums of every unit that may be drawn again (a curve group, or an episode) and of every training
seed. One matrix product then gives all resamples of a method at once, with the *same* drawn units for
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


def resampled_ratios(methods: Sequence[Sums], unit_weights: Floats, rng: np.random.Generator) -> Resampled:
    """Resample units, and draw what other training seeds might have done, for every method in every resample.

    Units are drawn again (bootstrap). Training seeds are too few for that: a bootstrap of three knows nothing of
    what a fourth would do. The effect of the seeds is drawn from Student's t with S - 1 degrees of freedom, around
    the mean over seeds and with its standard error, as in the classical interval of a mean. Methods with equally
    many seeds get the same draws, so that their difference is paired in both: its seed effect is again a t, with
    the standard error of the paired differences. Others get theirs drawn independently.

    Args:
        methods: sums of every method over the same U units.
        unit_weights: (B, U) from :func:`resample_weights`.
        rng: draws the effects of training seeds.
    """
    resamples, units = unit_weights.shape
    if any(m.hits.shape[0] != units or m.trials.shape != m.hits.shape for m in methods):
        raise ValueError("every method needs hits and trials of shape (U, S) with the U of the weights")
    counts = sorted({m.hits.shape[1] for m in methods})
    effects = {count: seed_effects(count, resamples, rng) for count in counts}
    estimate = np.empty(len(methods))
    samples = np.empty((resamples, len(methods)))
    for k, sums in enumerate(methods):
        hits, trials = unit_weights @ sums.hits, unit_weights @ sums.trials
        with np.errstate(invalid="ignore", divide="ignore"):
            by_seed = hits / trials
            pooled = hits.sum(axis=1) / trials.sum(axis=1)
            estimate[k] = sums.hits.sum() / sums.trials.sum()
        apart = by_seed - by_seed.mean(axis=1, keepdims=True)
        samples[:, k] = pooled + (apart * effects[sums.hits.shape[1]]).sum(axis=1)
    return Resampled(estimate, samples, units)


def seed_effects(seeds: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Factors (B, S) that turn deviations of S seeds from their mean into draws of the mean's error.

    A normal vector times the deviations has S - 1 times their variance s^2; divided by sqrt(S (S - 1)) it has that
    of the mean, s^2 / S, and the root of a chi-square over its degrees of freedom makes it a t. One seed says
    nothing about others; its factor is 0, and the interval is over units alone.
    """
    if seeds == 1:
        return np.zeros((resamples, 1))
    freedom = seeds - 1
    spread = np.sqrt(rng.chisquare(freedom, size=(resamples, 1)) / freedom)
    return rng.standard_normal((resamples, seeds)) / (np.sqrt(seeds * freedom) * spread)


def percentile_interval(estimate: float, samples: Floats, level: float, units: int) -> Interval:
    """Percentile interval of (B,) resamples; NaN ends when fewer than two units could be resampled."""
    finite = samples[np.isfinite(samples)]
    if units < 2 or finite.size == 0:
        return Interval(estimate, np.nan, np.nan)
    low, high = np.quantile(finite, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Interval(estimate, float(low), float(high))


def contrast_p_value(estimate: float, samples: Floats, units: int) -> float:
    """Two-sided p-value of a contrast of zero: Student's t on the standard error that the 95 % interval implies.

    Counting resamples on the other side of zero cannot go below 1 / B and would never survive a
    correction over many comparisons; the t tail with U - 1 degrees of freedom can. The interval's width and not
    the samples' deviation, since with two or three training seeds their tails have no finite variance.
    """
    if units < 2:
        return float("nan")
    low, high = np.quantile(samples, [0.025, 0.975])
    error = float(high - low) / (2.0 * stats.norm.ppf(0.975))
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
