"""How well the remaining demand is predicted: the cases of the protocol, the scores and their table.

A case is a curve seen up to a prefix and a target as a fraction of the best smoothed loss so far. The truth
is the first unit at which the smoothed loss is at or below the target, capped at what is left of the curve,
H. All scores are about the capped demand min(R, H) and the forecast capped likewise.

Shape legend: B cases, N points, G groups, K predictors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mara.curves.corpus import Corpus
from mara.curves.smoothing import demand, smooth
from mara.evaluation.statistics import Interval, Resampled, Sums, resample_weights, resampled_ratios
from mara.predictors.forecast import Forecast, KnowsHistory, Predictor, Query

PREFIXES = (20, 40, 80)
FRACTIONS = (0.9, 0.7, 0.5, 0.25)
SCORES = (
    "nmae",
    "ncrps",
    "log_error",
    "false_never",
    "false_reach",
    "brier",
    "coverage80",
    "coverage80_reached",
)
"""Columns of scores; each is a mean over the cases for which it is defined."""
WITH_INTERVAL = ("nmae", "ncrps")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cases:
    """B questions with their answers.

    query: the questions, without any answer in them.
    truth: (B,) remaining units; inf where the target is not reached on the recorded curve.
    left: (B,) units left on the curve after the prefix, the H of the case.
    group, family: (B,) of the curve; fraction: (B,) target as a fraction of the best smoothed loss so far.
    curve: (B,) row of the curve in its corpus.
    """

    query: Query
    truth: Floats
    left: NDArray[np.int64]
    group: NDArray[np.str_]
    family: NDArray[np.str_]
    fraction: Floats
    curve: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.truth)

    def select(self, chosen: NDArray[Any]) -> Cases:
        """The cases at a mask or at indices."""
        rows = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return Cases(
            self.query.rows(rows),
            self.truth[rows],
            self.left[rows],
            self.group[rows],
            self.family[rows],
            self.fraction[rows],
            self.curve[rows],
        )


def protocol_cases(
    corpus: Corpus, prefixes: Sequence[int] = PREFIXES, fractions: Sequence[float] = FRACTIONS
) -> Cases:
    """Every curve x prefix length x target fraction; leaves out prefixes in which the curve has diverged."""
    curve, length, fraction = (
        axis.ravel()
        for axis in np.meshgrid(
            np.arange(len(corpus)), np.array(prefixes), np.array(fractions), indexing="ij"
        )
    )
    alive = corpus.diverged_at[curve] >= length
    curve, length, fraction = curve[alive], length[alive], fraction[alive]
    blank = np.ones(len(curve))
    best = Query.of(corpus.loss[curve], length, blank).best_smoothed()
    target = (fraction * best).astype(np.float32)
    reached = demand(smooth(corpus.loss)[curve].astype(np.float64), target).astype(np.float64)
    points = corpus.loss.shape[1]
    return Cases(
        query=Query.of(corpus.loss[curve], length, target, corpus.schedule[curve]),
        truth=np.where(reached < points, reached - (length - 1), np.inf),
        left=points - length,
        group=corpus.group[curve],
        family=corpus.family[curve],
        fraction=fraction,
        curve=curve,
    )


def ask(predictor: Predictor, cases: Cases, corpus: Corpus, batch: int = 4096) -> Forecast:
    """Forecasts of all cases up to the longest H among them; only the oracle is told the truth.

    Predictors that look at earlier runs find those of the same group in ``corpus``, that of the cases.
    """
    horizon = int(cases.left.max(initial=1))
    truth = cases.truth if getattr(predictor, "sees_truth", False) else None
    history = predictor.choose(corpus, cases.curve) if isinstance(predictor, KnowsHistory) else None
    parts = []
    for start in range(0, len(cases), batch):
        rows = np.arange(start, min(start + batch, len(cases)))
        query = cases.query.rows(rows, truth=None if truth is None else truth[rows])
        if isinstance(predictor, KnowsHistory) and history is not None:
            parts.append(predictor.forecast_among(query, corpus, cases.curve[rows], history[rows], horizon))
        else:
            parts.append(predictor.forecast(query, horizon))
    return Forecast(
        np.concatenate([part.cdf for part in parts]),
        np.concatenate([part.point for part in parts]),
        parts[0].samples,
    )


def probability_integral(forecast: Forecast, truth: Floats, left: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """F just below the capped truth and at it, both (B,); a calibrated forecast is uniform in between."""
    capped = np.minimum(truth, left).astype(np.int64)
    row = np.arange(len(forecast))
    upper = np.where(capped >= left, 1.0, forecast.cdf[row, np.minimum(capped, forecast.horizon)])
    lower = np.where(capped > 0, forecast.cdf[row, np.maximum(capped - 1, 0)], 0.0)
    return lower.astype(np.float64), upper.astype(np.float64)


def pit_histogram(lower: Floats, upper: Floats, bins: int = 10) -> Floats:
    """(bins,) non-randomised PIT histogram (Czado, Gneiting & Held, 2009); all 1 if calibrated."""
    edges = np.linspace(0, 1, bins + 1)
    return np.diff([share_below(edge, lower, upper).mean() for edge in edges]) * bins


def interval_coverage(lower: Floats, upper: Floats, level: float = 0.8) -> Floats:
    """(B,) chance that the randomised PIT of a case falls into the central ``level``.

    For a discrete forecast the interval of quantiles covers too often even if the forecast is perfect; this
    has mean ``level`` then, for any distribution.
    """
    tail = (1 - level) / 2
    return share_below(1 - tail, lower, upper) - share_below(tail, lower, upper)


def share_below(edge: float, lower: Floats, upper: Floats) -> Floats:
    """(B,) share of each case's interval of PIT values, ``lower`` to ``upper``, that lies below ``edge``."""
    width = np.maximum(upper - lower, 1e-12)
    return np.clip((edge - lower) / width, 0, 1)


def capped_crps(forecast: Forecast, truth: Floats, left: NDArray[np.int64]) -> Floats:
    """(B,) continuous ranked probability score of min(R, H), in units.

    Sum over b < H of (F(b) - 1[truth <= b])^2. For the distribution of m sampled paths the fair estimator
    (Ferro, 2014) takes off sum F (1 - F) / (m - 1).
    """
    grid = np.arange(forecast.horizon + 1)
    inside = grid < left[:, None]
    cdf = forecast.cdf.astype(np.float64)
    score = ((cdf - (grid >= truth[:, None])) ** 2 * inside).sum(axis=1)
    if forecast.samples > 1:
        score -= (cdf * (1 - cdf) * inside).sum(axis=1) / (forecast.samples - 1)
    return score


def scores(forecast: Forecast, cases: Cases) -> dict[str, Floats]:
    """Every score of every case, (B,) each; NaN where a score is not defined for the case.

    nmae: |median - truth| / H. ncrps: fair CRPS / H. log_error: |log(1 + median) - log(1 + truth)|.
    false_never: the median is "not within H" although the target is reached; false_reach: the reverse.
    brier: (P(R <= H/2) - 1[truth <= H/2])^2, a deadline in the middle of what is left.
    coverage80: see :func:`interval_coverage`; coverage80_reached: the same over reached targets.
    """
    left = cases.left.astype(np.float64)
    truth = np.minimum(cases.truth, left)
    median = np.minimum(forecast.median(), left)
    reached = cases.truth <= left
    deadline = (cases.left // 2).astype(np.float64)
    lower, upper = probability_integral(forecast, cases.truth, cases.left)
    covered = interval_coverage(lower, upper)
    missed = median >= left
    return {
        "nmae": np.abs(median - truth) / left,
        "ncrps": capped_crps(forecast, cases.truth, cases.left) / left,
        "log_error": np.abs(np.log1p(median) - np.log1p(truth)),
        "false_never": np.where(reached, (missed & (truth < left)).astype(float), np.nan),
        "false_reach": np.where(reached, np.nan, (~missed).astype(float)),
        "brier": np.square(
            forecast.probability_within(deadline) - (cases.truth <= deadline), dtype=np.float64
        ),
        "coverage80": covered,
        "coverage80_reached": np.where(reached, covered, np.nan),
    }


def group_sums(values: Floats, group: NDArray[np.str_]) -> Sums:
    """Sum and count of the defined values (B,) by group, (G, 1) each, groups in sorted order."""
    _, code = np.unique(group, return_inverse=True)
    defined = np.isfinite(values)
    hits = np.bincount(code, np.where(defined, values, 0.0)).astype(np.float64)
    trials = np.bincount(code, defined.astype(np.float64)).astype(np.float64)
    return Sums(hits[:, None], trials[:, None])


def resampled_scores(
    by_predictor: Mapping[str, dict[str, Floats]],
    score: str,
    group: NDArray[np.str_],
    resamples: int,
    rng: np.random.Generator,
) -> Resampled:
    """One score of K predictors on the same cases under resampling of groups; contrasts are paired."""
    sums = [group_sums(by_case[score], group) for by_case in by_predictor.values()]
    return resampled_ratios(sums, resample_weights(len(sums[0].hits), resamples, rng), rng)


def paired_difference(
    first: dict[str, Floats],
    second: dict[str, Floats],
    score: str,
    group: NDArray[np.str_],
    resamples: int,
    rng: np.random.Generator,
) -> Interval:
    """Mean of ``score`` of the first less that of the second predictor, with its interval over groups."""
    resampled = resampled_scores({"first": first, "second": second}, score, group, resamples, rng)
    return resampled.interval([1.0, -1.0])
