"""Smoothed losses and the demand they imply.

Shapes: C curves, N points. Point n is the loss after n units; point 0 is the loss before training.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SMOOTHING_POINTS = 5
NEVER = int(np.iinfo(np.int32).max)
"""The demand of a curve that does not reach its target."""


def smooth(loss: NDArray) -> NDArray:
    """Trailing mean of the last five points, of fewer at the start.

    Args:
        loss: (..., N) losses, NaN from divergence on.

    Returns:
        (..., N) array of the same floating type; a point whose window holds a NaN is NaN.
    """
    points = loss.shape[-1]
    smoothed = np.zeros(loss.shape, dtype=np.float64)
    for lag in range(min(SMOOTHING_POINTS, points)):
        smoothed[..., lag:] += loss[..., : points - lag]
    smoothed /= np.minimum(np.arange(1, points + 1), SMOOTHING_POINTS)
    return smoothed.astype(loss.dtype)


def demand(smoothed: NDArray, target: NDArray) -> NDArray[np.int32]:
    """First unit n >= 1 at which the smoothed loss is at or below the target, else ``NEVER``.

    Args:
        smoothed: (C, N) smoothed losses; NaN never reaches a target.
        target: (C,) target losses.

    Returns:
        (C,) units, in 1 .. N-1 or ``NEVER``.
    """
    reached = smoothed[:, 1:] <= np.asarray(target)[:, None]
    first = reached.argmax(axis=1) + 1
    return np.where(reached.any(axis=1), first, NEVER).astype(np.int32)
