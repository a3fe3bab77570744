"""Bayes' rule on crossing times: what the window's ratio reads, and how a forecast is reweighted by it.

Plain arrays only, so that a forecast needs no neural-network library; the ratio itself is in :mod:`.window`.

Shapes: B questions, K knots, L = K + 1 intervals, the last one beyond the last knot or never, H horizon.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mara.predictors.flow.trajectory import KNOT, KNOTS

RATIO_INPUTS = 6
"""Columns of :func:`ratio_inputs`."""


def ratio_inputs(units: NDArray[np.integer], window: NDArray[np.floating]) -> NDArray[np.float32]:
    """Inputs (B, L, 6): total demand, window and units on log scales, and whether the demand lies beyond.

    What is taken off the logs, 3.5 for 33 slots and so on, brings their means over training tasks to between 0 and 0.6,
    by hand; their spreads lie between 0.8 and 1.7 as they are.
    """
    trained = np.asarray(units, dtype=np.float64)[:, None]
    slots = np.maximum(np.asarray(window, dtype=np.float64), 1.0)[:, None]
    total = np.log(trained + np.append(KNOT, KNOT[-1]))
    wide = np.ones_like(total)
    columns = [
        total - 3.5,
        np.log(slots) * wide - 3.5,
        total - np.log(slots),
        np.log1p(trained) * wide - 2.5,
        np.log1p(np.maximum(slots - trained, 0.0)) * wide - 3.0,
        np.broadcast_to(np.arange(KNOTS + 1) == KNOTS, total.shape),
    ]
    return np.stack(columns, axis=-1).astype(np.float32)


def reweighted(cdf: NDArray[np.float32], log_ratio: NDArray[np.float64]) -> NDArray[np.float32]:
    """The cdf (B, H+1), H at the last knot, with its mass times the ratios exp(log_ratio) (B, L).

    Between knots the log ratio goes along a straight line.
    """
    log_ratio = log_ratio - log_ratio.max(axis=1, keepdims=True)
    unit = np.arange(1, KNOT[-1] + 1)
    place = np.interp(unit, KNOT, np.arange(KNOTS))
    low = np.minimum(place.astype(np.int64), KNOTS - 2)
    part = place - low
    along = log_ratio[:, low] * (1.0 - part) + log_ratio[:, low + 1] * part
    mass = np.diff(cdf.astype(np.float64), axis=1) * np.exp(along)
    beyond = (1.0 - cdf[:, -1:]) * np.exp(log_ratio[:, -1:])
    total = np.maximum(mass.sum(axis=1, keepdims=True) + beyond, 1e-12)
    out = cdf.copy()
    out[:, 1:] = mass.cumsum(axis=1) / total
    return out
