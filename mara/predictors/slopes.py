"""The current slope, extrapolated: the simplest forecasts, and hard to beat on regular curves.

The recency-weighted slope of the log loss, over log units (a power law) or over units (an exponential), is
carried on from the newest smoothed loss. The memory is a share of the prefix: curves change ever more slowly.
Unlike WLS nothing is said about where the curve started, so a line
that has missed the newest points does not displace the answer. Before there are a few points, the slope of a
power law of fixed exponent stands in, as in WLS.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from mara.config.predictors import SlopeSettings
from mara.predictors.forecast import HORIZON, BasePredictor, Forecast, Query
from mara.predictors.trend import (
    exponential_remaining,
    fit_line,
    log_target,
    newest,
    newest_smoothed,
    points_in_memory,
    power_law_remaining,
)

UNITS_BEFORE = 1.0
"""Added to the unit before its logarithm is taken, so that point 0 has one."""


class Slope(BasePredictor):
    """Slope of the log loss over log units or over units; a point forecast."""

    def __init__(self, axis: Literal["loglog", "semilog"], settings: SlopeSettings | None = None) -> None:
        self.name = f"slope_{axis}"
        self.axis = axis
        self.settings = settings or SlopeSettings()

    def remaining(self, query: Query) -> np.ndarray:
        """(B,) units still to go, not rounded; inf where the loss does not fall."""
        s = self.settings
        share = s.memory_loglog if self.axis == "loglog" else s.memory_semilog
        memory = np.maximum(share * query.length, s.least_memory)
        points = newest(query, points_in_memory(memory.max(initial=s.least_memory)))
        weight = np.where(points.known, np.exp(-points.age / memory[:, None]), 0.0)
        x = np.maximum(points.unit, 0.0)
        if self.axis == "loglog":
            x = np.log(x + UNITS_BEFORE)
        slope, _ = fit_line(x, points.log_loss, weight)
        drop = log_target(query) - newest_smoothed(query)
        units = query.length.astype(np.float64) - 1
        if self.axis == "loglog":
            slope = np.where(units < s.minimum_points_loglog, -s.early_exponent, slope)
            return power_law_remaining(units + UNITS_BEFORE, drop, slope)
        slope = np.where(units < s.minimum_points_semilog, -s.early_exponent / (units + UNITS_BEFORE), slope)
        return exponential_remaining(drop, slope)

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """A step at the unit where the extrapolated slope meets the target."""
        return Forecast.from_point(self.remaining(query), horizon).settled(query)
