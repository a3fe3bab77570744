"""Weighted least squares of a power law, the estimator of LARA and the baseline of the prediction claim.

loss = a * s^(-b) after s units is a line in log-log coordinates. Points are weighted by forgetting^age,
point 0 (no units) has no logarithm and is left out, and the target is met at s* = (a / target)^(1/b). The
body of the LARA paper is not public; the weights and the least number of points follow a public re-
implementation.
"""

from __future__ import annotations

import numpy as np

from mara.config.predictors import WlsSettings
from mara.predictors.forecast import HORIZON, BasePredictor, Forecast, Query
from mara.predictors.trend import fit_line, log_target, newest, points_in_memory, power_law_remaining


class Wls(BasePredictor):
    """Power law by recency-weighted least squares; a point forecast.

    Before ``minimum_points`` points are there, a power law of fixed exponent through the newest point stands
    in, because allocators need some answer for a task that has just arrived. ``tuned`` takes the forgetting that
    was best on the validation split in place of the published one.
    """

    def __init__(self, settings: WlsSettings | None = None, tuned: bool = False) -> None:
        self.name = "wls_tuned" if tuned else "wls"
        self.settings = settings or WlsSettings()
        self.forgetting = self.settings.tuned_forgetting if tuned else self.settings.forgetting

    def remaining(self, query: Query) -> np.ndarray:
        """(B,) units still to go, not rounded; inf where the fitted law never meets the target."""
        s = self.settings
        points = newest(query, points_in_memory(-1 / np.log(self.forgetting)))
        usable = points.known & (points.unit >= 1)
        weight = np.where(usable, self.forgetting**points.age, 0.0)
        slope, level = fit_line(np.log(np.maximum(points.unit, 1.0)), points.log_loss, weight)
        early = query.length - 1 < s.minimum_points
        slope = np.where(early, -s.early_exponent, slope)
        level = np.where(early, points.log_loss[:, -1], level)
        return power_law_remaining(query.length.astype(np.float64) - 1, log_target(query) - level, slope)

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """A step at the unit where the fitted law meets the target."""
        return Forecast.from_point(self.remaining(query), horizon).settled(query)
