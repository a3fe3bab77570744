"""What is read from a prefix, once, before the solver runs: its shape, slopes and noise on log scales.

Nothing here depends on the scale of the losses nor on points after the prefix. The same description serves
the flow, its prior, and the direct head.

Shapes: B prefixes, N points a curve, F features, S schedule features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numba
import numpy as np
from numpy.typing import NDArray

from mara.predictors.flow.trajectory import KNOT, SMOOTHED, tidy_log
from mara.predictors.forecast import Query
from mara.predictors.kalman import Kalman
from mara.predictors.trend import newest_points

LAG = np.array([0, 1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 181], dtype=np.int64)
"""Edges of the bins of lags: the newest points one by one, older ones in ever longer means."""
SEGMENTS = 12
"""The whole prefix in this many equal parts."""
MEMORY = np.array([3.0, 8.0, 20.0, 60.0])
"""Lengths of the exponential memories of the slopes, in units."""
AHEAD = np.array([1, 4, 8, 16, 32, 64, 120], dtype=np.int64)
"""Units ahead at which the rest of the learning-rate schedule is read."""
_LAGS = len(LAG) - 1
SHAPE_FEATURES = _LAGS + SEGMENTS + 2 * len(MEMORY) + 6
"""How many of the features are differences of log-losses."""
SLOPES = _LAGS + SEGMENTS + np.array([0, 1, 4, 5])
"""Columns of the slopes of the shortest and the longest but one memory, over log units and units, among them."""
BEST = _LAGS + SEGMENTS + 2 * len(MEMORY)
"""Column of the best smoothed loss among them."""
PLAIN_FEATURES = 7
SCHEDULE_FEATURES = len(AHEAD) + 3
_NOISE_FLOOR = 1e-5
FILTERED = 48
"""Newest points that the Kalman filter sees."""
_FARTHEST_TREND = 30.0


@dataclass(frozen=True)
class Description:
    """What is known of B prefixes.

    level: (B,) float64, log of the smoothed loss at the end of the prefix; knots are relative to it.
    observed: (B, 5) float64, the newest losses over exp(level), newest first; 0 where the prefix is shorter.
    units: (B,) int64, units trained.
    shape: (B, SHAPE_FEATURES) float32, differences of log-losses.
    plain: (B, PLAIN_FEATURES) float32, logs of noise, progress and age.
    schedule: (B, SCHEDULE_FEATURES) float32, log ratios of learning rates; all 0 where unknown.
    slope: (B,) float64, log-log slope with recency weights, shrunk, the mean of the prior.
    trend, spread: (B, K) float32, mean and deviation of the log-loss at the knots by the Kalman filter.
    """

    level: NDArray[np.float64]
    observed: NDArray[np.float64]
    units: NDArray[np.int64]
    shape: NDArray[np.float32]
    plain: NDArray[np.float32]
    schedule: NDArray[np.float32]
    slope: NDArray[np.float64]
    trend: NDArray[np.float32]
    spread: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.units)

    @classmethod
    def concatenate(cls, parts: Sequence[Description]) -> Description:
        """The prefixes of several descriptions, in order."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def rows(self, chosen: NDArray) -> Description:
        """The prefixes at indices or a mask."""
        return Description(**{field.name: getattr(self, field.name)[chosen] for field in fields(self)})


@numba.njit(cache=True)
def _slope(y: NDArray, size: int, memory: float, in_log: bool, ridge: float) -> float:
    """Least-squares slope of y over (log) units, with weights that fall by e every ``memory`` units."""
    weight, w, wx, wy, wxx, wxy = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
    keep = np.exp(-1.0 / memory)
    end = np.log(size) if in_log else size - 1.0
    for n in range(size - 1, -1, -1):
        x = (np.log(n + 1.0) if in_log else n) - end
        v = y[n] - y[size - 1]
        w += weight
        wx += weight * x
        wy += weight * v
        wxx += weight * x * x
        wxy += weight * x * v
        weight *= keep
        if weight < 1e-6:
            break
    spread = wxx - wx * wx / w
    return (wxy - wx * wy / w) / (spread + ridge * w)


@numba.njit(cache=True)
def _roughness(y: NDArray, first: int, size: int, order: int) -> float:
    """Root mean square of first or second differences from ``first`` on, scaled to that of white noise."""
    total, count = 0.0, 0
    for n in range(max(first, order), size):
        d = y[n] - y[n - 1] if order == 1 else y[n] - 2.0 * y[n - 1] + y[n - 2]
        total += d * d
        count += 1
    return np.sqrt(total / count / (2.0 if order == 1 else 6.0)) if count else 0.0


@numba.njit(cache=True)
def _describe(
    loss: NDArray,
    length: NDArray,
    lag: NDArray,
    memory: NDArray,
    level: NDArray,
    observed: NDArray,
    shape: NDArray,
    plain: NDArray,
    slope: NDArray,
) -> None:
    y = np.empty(loss.shape[1])
    for row in range(loss.shape[0]):
        size = length[row]
        tidy_log(loss[row], size, y)
        total = 0.0
        for k in range(min(size, SMOOTHED)):
            total += np.exp(y[size - 1 - k] - y[size - 1])
        here = y[size - 1] + np.log(total / min(size, SMOOTHED))
        level[row] = here
        for k in range(min(size, SMOOTHED)):
            observed[row, k] = np.exp(y[size - 1 - k] - here)

        at = 0
        for k in range(lag.size - 1):
            if lag[k] < size:
                first = max(size - lag[k + 1], 0)
                shape[row, at] = np.mean(y[first : size - lag[k]]) - here
            else:
                shape[row, at] = shape[row, at - 1]
            at += 1
        for k in range(SEGMENTS):
            first = k * size // SEGMENTS
            last = max((k + 1) * size // SEGMENTS, first + 1)
            shape[row, at] = np.mean(y[first:last]) - here
            at += 1
        for k in range(memory.size):
            far = np.log((size + 16.0) / size)
            shape[row, at] = _slope(y, size, memory[k], True, 1e-3) * far
            shape[row, at + 1] = _slope(y, size, memory[k], False, 0.1) * 16.0
            at += 2
        best, best_raw, worst, top, when = np.inf, np.inf, -np.inf, -np.inf, 0
        for n in range(size):
            run = 0.0
            width = min(n + 1, SMOOTHED)
            for k in range(width):
                run += np.exp(y[n - k] - here)
            value = np.log(run / width)
            if value < best - 1e-6:  # rounding must not move the time of the best loss
                best, when = value, n
            best_raw = min(best_raw, y[n] - here)
            worst = max(worst, y[n] - here)
            if n >= size // 2:
                top = max(top, value)
        for value in (best, best_raw, worst, top, y[0] - here, y[size // 2] - here):
            shape[row, at] = value
            at += 1
        plain[row, 0] = np.log(_roughness(y, size - 6, size, 2) + _NOISE_FLOOR)
        plain[row, 1] = np.log(_roughness(y, size - 24, size, 2) + _NOISE_FLOOR)
        plain[row, 2] = np.log(_roughness(y, 0, size, 2) + _NOISE_FLOOR)
        plain[row, 3] = np.log(_roughness(y, size - 24, size, 1) + _NOISE_FLOOR)
        plain[row, 4] = np.log(size)
        plain[row, 5] = 1.0 / size
        plain[row, 6] = (size - 1 - when) / size
        slope[row] = min(max(_slope(y, size, 3.0 + size / 4.0, True, 3e-3), -6.0), 0.0)


def _schedule_features(schedule: NDArray, units: NDArray[np.int64]) -> NDArray[np.float32]:
    """Log ratios to the newest learning rate of those ahead, the first and the peak; and whether known."""
    points = schedule.shape[1]
    row = np.arange(len(schedule))
    last = np.minimum(units, points - 1)
    rate = np.asarray(schedule, dtype=np.float64)
    seen = np.where(np.arange(points) <= last[:, None], rate, -np.inf)
    peak = seen.max(axis=1, initial=-np.inf)
    floor = 1e-3 * np.maximum(np.where(np.isfinite(peak), peak, 0.0), 1e-30)
    ahead = np.minimum(last[:, None] + AHEAD, points - 1)
    now = np.log(np.maximum(rate[row, last], floor))
    ratios = np.column_stack(
        [
            np.log(np.maximum(rate[row[:, None], ahead], floor[:, None])) - now[:, None],
            np.log(np.maximum(rate[:, 0], floor)) - now,
            np.log(np.maximum(peak, floor)) - now,
        ]
    )
    known = np.isfinite(ratios).all(axis=1) & (peak > 0)
    ratios = np.where(known[:, None], np.clip(np.nan_to_num(ratios), -7.0, 7.0), 0.0)
    return np.column_stack([ratios, known]).astype(np.float32)


def describe_query(query: Query) -> Description:
    """Describe the prefixes of a query, a bounded number at a time."""
    parts = [
        describe(query.loss[rows], query.length[rows], query.schedule[rows])
        for rows in np.array_split(np.arange(len(query)), 1 + len(query) // 16384)
    ]
    return Description.concatenate(parts)


def describe(loss: NDArray, length: NDArray, schedule: NDArray) -> Description:
    """Describe the first ``length`` (B,) points of ``loss`` (B, N); a schedule (B, N) may be NaN."""
    rows = len(loss)
    level, slope = np.empty(rows), np.empty(rows)
    observed = np.zeros((rows, SMOOTHED))
    shape = np.empty((rows, SHAPE_FEATURES), dtype=np.float32)
    plain = np.empty((rows, PLAIN_FEATURES), dtype=np.float32)
    size = np.asarray(length, dtype=np.int64)
    _describe(np.asarray(loss, dtype=np.float64), size, LAG, MEMORY, level, observed, shape, plain, slope)
    trend, spread = _filtered(loss, size, level)
    schedule = _schedule_features(schedule, size - 1)
    return Description(level, observed, size - 1, shape, plain, schedule, slope, trend, spread)


def _filtered(
    loss: NDArray, size: NDArray[np.int64], level: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean relative to the level and deviation (B, K) of the log-loss at the knots by the Kalman filter."""
    points = newest_points(loss, size, FILTERED)
    log_loss = points.log_loss - level[:, None]
    units = size.astype(np.float64) - 1.0
    mean, deviation = Kalman().moments(points.unit, log_loss, points.known, units, KNOT)
    mean = np.clip(mean, -_FARTHEST_TREND, _FARTHEST_TREND)
    return mean.astype(np.float32), np.minimum(deviation, _FARTHEST_TREND).astype(np.float32)
