"""From a log's axis to the even units that predictors know.

A unit is the median distance of two logged points; in a log of more than ``MOST_UNITS`` points it is so many
distances that about ``MOST_UNITS`` units have been trained, and a unit's loss is the mean of its points. With
a deadline farther away than a forecast sees, units grow as far as ``FEWEST_UNITS`` of the log are left. The
first logged point counts as the loss before training. Units in which nothing was logged are interpolated.

Shapes: P logged points, U units trained.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_UNITS = 100
"""Units of a log at most: half a training curve, so that a forecast sees as far ahead as the log is long."""
FEWEST_UNITS = 10
"""Units that are kept of a log when they are made longer for the sake of a far deadline."""


@dataclass(frozen=True)
class Units:
    """A curve in units.

    loss: (U + 1,) float64, loss at the start and after every unit. size: length of a unit on the log's axis.
    points: logged points a unit, 1 where every point is one. interpolated: units in which nothing was logged.
    """

    loss: NDArray[np.float64]
    size: float
    points: int
    interpolated: int


def to_units(
    position: NDArray[np.float64], loss: NDArray[np.float64], ahead: float | None = None, horizon: int = 120
) -> Units:
    """Lay logged points out in even units that end at the newest point.

    Args:
        position: (P,) strictly increasing, P >= 1.
        loss: (P,) the losses there.
        ahead: how far after the newest point the question reaches, on the same axis; None if not said.
        horizon: units that a forecast sees ahead.
    """
    count = len(position)
    if count == 1:
        return Units(loss.copy(), abs(float(position[0])) or 1.0, 1, 0)
    gap = float(np.median(np.diff(position)))
    points = math.ceil(count / MOST_UNITS)
    if ahead is not None:
        wanted = math.ceil(min(ahead / gap / horizon, count))
        points = max(points, min(wanted, count // FEWEST_UNITS))
    size = max(points * gap, float(position[-1] - position[0]) / MOST_UNITS)
    back = np.floor((position[-1] - position) / size + 0.5 / points).astype(np.int64)
    unit = back[0] - back
    total = np.bincount(unit, weights=loss)
    filled = np.bincount(unit)
    known = np.flatnonzero(filled)
    mean = np.interp(np.arange(len(filled)), known, total[known] / filled[known])
    return Units(mean, size, points, int((filled == 0).sum()))
