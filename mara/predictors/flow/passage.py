"""First passage of targets on the smoothed paths.

Shapes: B prefixes, P paths, K knots, R questions (each about one prefix), H horizon in units.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from mara.predictors.flow.features import Description
from mara.predictors.flow.trajectory import KNOT, KNOTS, SMOOTHED

_START = np.concatenate([[0], KNOT[:-1]])
"""(K,) unit after which each knot's interval begins."""


def lowest_so_far(description: Description, path: NDArray[np.float32]) -> NDArray[np.float32]:
    """Running minimum (B, P, K) of the smoothed log-loss along paths (B, P, K), relative to the level.

    The first four knots hold means of new points only; here the points observed last join the window of five.
    """
    smoothed = path.copy()
    for unit in range(1, SMOOTHED):
        old = np.minimum(description.units + 1, SMOOTHED - unit)
        kept = np.where(np.arange(SMOOTHED) < old[:, None], description.observed, 0.0).sum(axis=1)
        new = unit * np.exp(np.minimum(path[:, :, unit - 1], 50.0))
        smoothed[:, :, unit - 1] = np.log((new + kept[:, None]) / (unit + old)[:, None])
    return np.minimum.accumulate(smoothed, axis=2, out=smoothed)


@numba.njit(cache=True)
def _count(lowest: NDArray, owner: NDArray, goal: NDArray, knot: NDArray, cdf: NDArray) -> None:
    paths, knots = lowest.shape[1], lowest.shape[2]
    horizon = cdf.shape[1] - 1
    for row in range(owner.size):
        target = goal[row]
        for p in range(paths):
            path = lowest[owner[row], p]
            if not path[knots - 1] <= target:
                continue
            low, high = 0, knots - 1
            while low < high:
                middle = (low + high) // 2
                if path[middle] <= target:
                    high = middle
                else:
                    low = middle + 1
            unit = knot[low]
            if low > 0 and knot[low] - knot[low - 1] > 1:
                width = knot[low] - knot[low - 1]
                share = (path[low - 1] - target) / max(path[low - 1] - path[low], 1e-9)
                unit = knot[low - 1] + min(max(int(np.ceil(share * width)), 1), width)
            cdf[row, unit] += 1.0
        total = 0.0
        for b in range(horizon + 1):
            total += cdf[row, b]
            cdf[row, b] = total / paths


def passage_cdf(
    lowest: NDArray[np.float32], owner: NDArray[np.integer], log_target: NDArray[np.floating]
) -> NDArray[np.float32]:
    """P(remaining <= b) for b = 0..180, (R, 181), as shares of paths.

    Args:
        lowest: (B, P, K) running minima, see :func:`lowest_so_far`.
        owner: (R,) prefix of each question.
        log_target: (R,) log target relative to the prefix's level; -inf and NaN are never reached.

    Inside a knot's interval the crossing lies where a straight line between the minima crosses.
    """
    cdf = np.zeros((len(owner), int(KNOT[-1]) + 1), dtype=np.float32)
    _count(lowest, np.asarray(owner, dtype=np.int64), np.asarray(log_target, dtype=np.float64), KNOT, cdf)
    return cdf


def cut(cdf: NDArray[np.float32], horizon: int) -> NDArray[np.float32]:
    """The columns 0..horizon of cdf (R, 181); beyond the last one it stays level."""
    return cdf[:, np.minimum(np.arange(horizon + 1), cdf.shape[1] - 1)]


def interval_shares(cdf: NDArray[np.floating]) -> NDArray[np.float32]:
    """Probabilities (R, K + 1) of the intervals between knots, and of later or never, of cdf (R, 181)."""
    at_knot = np.concatenate([np.zeros((len(cdf), 1)), cdf[:, KNOT], np.ones((len(cdf), 1))], axis=1)
    return np.diff(at_knot, axis=1).astype(np.float32)


def interval_cdf(share: NDArray[np.float32]) -> NDArray[np.float32]:
    """cdf (R, 181) of shares (R, K + 1) of the intervals, even inside each."""
    at_knot = np.concatenate([np.zeros((len(share), 1)), share[:, :KNOTS].cumsum(axis=1)], axis=1)
    unit = np.arange(KNOT[-1] + 1)
    after = np.searchsorted(KNOT, unit)
    part = (unit - _START[after]) / (KNOT - _START)[after]
    return (at_knot[:, after] * (1.0 - part) + at_knot[:, after + 1] * part).astype(np.float32)
