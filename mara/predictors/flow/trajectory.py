"""The future of a curve as the flow sees it: log-losses on a grid of knots that is fine near and coarse far.

Up to unit 12 a knot is one unit and holds the mean of the newest points *after* the prefix (five at most).
From these the raw future can be told back, and with the last observed points the smoothed loss is exact. A
later knot covers an interval of units and holds the lowest smoothed loss in it, because that is what a first
passage asks for. All values are natural logarithms relative to the *level*, the smoothed loss at the end of
the prefix: multiplying all losses by a constant changes nothing.

Shapes: B prefixes, N points a curve, K knots.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

KNOT = np.array(
    [
        *range(1, 13),
        *range(14, 25, 2),
        27,
        30,
        33,
        36,
        40,
        44,
        48,
        54,
        60,
        66,
        72,
        *range(80, 121, 8),
        *range(132, 181, 12),
    ],
    dtype=np.int64,
)
"""(K,) last unit of each knot's interval, counted from the end of the prefix."""
KNOTS = len(KNOT)
SMOOTHED = 5
DIVERGED = 5.0
"""Value of a knot in which the run has diverged: far above any target."""


@numba.njit(cache=True)
def tidy_log(loss: NDArray, length: int, out: NDArray) -> None:
    """Write the log of ``loss[:length]``; a bad point repeats the last good one, at the start the first."""
    last = np.nan
    for n in range(length):
        value = loss[n]
        if np.isfinite(value) and value > 0.0:
            if np.isnan(last):
                out[:n] = np.log(value)
            last = np.log(value)
        out[n] = last
    if np.isnan(last):
        out[:length] = 0.0


@numba.njit(cache=True)
def _futures(loss: NDArray, length: NDArray, knot: NDArray, out: NDArray) -> None:
    rows, points = loss.shape
    seen = np.empty(points)
    for row in range(rows):
        size = length[row]
        tidy_log(loss[row], size, seen)
        count = min(size, SMOOTHED)
        total = 0.0
        for lag in range(count):
            total += np.exp(seen[size - 1 - lag] - seen[size - 1])
        level = seen[size - 1] + np.log(total / count)
        gone = False
        unit = 0
        for k in range(knot.size):
            lowest = np.inf
            whole = True
            while unit < knot[k]:
                unit += 1
                at = size - 1 + unit
                if at >= points:
                    whole = False
                    break
                if not (np.isfinite(loss[row, at]) and loss[row, at] > 0.0):
                    gone = True
                if gone:
                    lowest = min(lowest, DIVERGED)
                    continue
                newest = min(unit, SMOOTHED)
                total = 0.0
                for lag in range(newest):
                    total += loss[row, at - lag]
                lowest = min(lowest, np.log(total / newest) - level)
            if not whole:
                out[row, k:] = np.nan
                break
            out[row, k] = lowest


def future_knots(loss: NDArray, length: NDArray) -> NDArray[np.float32]:
    """Knots (B, K) after the first ``length`` (B,) points of ``loss`` (B, N); NaN beyond the curve."""
    out = np.empty((len(loss), KNOTS), dtype=np.float32)
    _futures(np.asarray(loss, dtype=np.float64), np.asarray(length, dtype=np.int64), KNOT, out)
    return out
