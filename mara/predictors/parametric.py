"""The best of six parametric families by weighted least squares: what curve-fitting libraries do.

Each family is linear in two parameters, y = c0 + c1 * g(unit; shape), so for each value of its shape
parameter on a grid the best fit is closed-form, and all sums over points are one matrix product for all
questions.

    power            loss = c0 + c1 (n+1)^-shape
    exponential      loss = c0 + c1 exp(-n / shape)
    stretched        loss = c0 + c1 exp(-sqrt(n / shape))
    logarithmic      loss = c0 + c1 log(n + shape)
    pure power       log loss = c0 + c1 log(n + shape)
    pure exponential log loss = c0 + c1 n

The family and shape with the least weighted squared error of the loss wins. c0 may not be negative in the
first three, since a loss is not.

Shape legend: B questions, N points, J family x shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mara.config.predictors import ParametricSettings
from mara.predictors.forecast import HORIZON, BasePredictor, Forecast, Query

Floats = NDArray[np.float64]
Family = Literal["power", "exponential", "stretched", "logarithmic", "pure_power", "pure_exponential"]

SHAPES: dict[Family, tuple[float, ...]] = {
    "power": (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5),
    "exponential": (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0),
    "stretched": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
    "logarithmic": (1.0, 4.0, 16.0, 64.0),
    "pure_power": (1.0, 4.0, 16.0, 64.0),
    "pure_exponential": (1.0,),
}


@dataclass(frozen=True)
class _Candidate:
    family: Family
    shape: float

    @property
    def of_log(self) -> bool:
        """Whether the family is a line in the log loss."""
        return self.family in ("pure_power", "pure_exponential")

    @property
    def has_floor(self) -> bool:
        """Whether c0 is the loss at infinity."""
        return self.family in ("power", "exponential", "stretched")

    def basis(self, unit: Floats) -> Floats:
        """g at the units."""
        if self.family == "power":
            return (unit + 1) ** -self.shape
        if self.family == "exponential":
            return np.exp(-unit / self.shape)
        if self.family == "stretched":
            return np.exp(-np.sqrt(unit / self.shape))
        if self.family == "pure_exponential":
            return unit
        return np.log(unit + self.shape)

    def unit_at(self, value: Floats) -> Floats:
        """Where g takes the value; inf or NaN where it never does."""
        if self.family == "power":
            return value ** (-1 / self.shape) - 1
        if self.family == "exponential":
            return -np.log(value) * self.shape
        if self.family == "stretched":
            return np.log(value) ** 2 * self.shape
        if self.family == "pure_exponential":
            return value
        return np.exp(value) - self.shape


CANDIDATES = tuple(_Candidate(family, shape) for family, shapes in SHAPES.items() for shape in shapes)


class WlsBest(BasePredictor):
    """Best-fitting of six families; a point forecast."""

    name = "wls_best"

    def __init__(self, settings: ParametricSettings | None = None) -> None:
        self.settings = settings or ParametricSettings()

    def remaining(self, query: Query) -> Floats:
        """(B,) units still to go under the best family; inf where it never gets there."""
        width = int(query.length.max(initial=1))
        loss = query.loss[:, :width].astype(np.float64)
        known = query.seen()[:, :width] & np.isfinite(loss) & (loss > 0)
        age = query.length[:, None] - 1 - np.arange(width)
        weight = np.where(known, self.settings.forgetting ** np.maximum(age, 0), 0.0)
        scale = np.where(known, loss, 0.0).max(axis=1, initial=1e-300)
        scaled = np.where(known, loss, scale[:, None]) / scale[:, None]
        target = np.maximum(query.target.astype(np.float64), 0.0) / scale
        best_error = np.full(len(query), np.inf)
        best = np.full(len(query), np.inf)
        for candidate in CANDIDATES:
            error, unit = _fit(candidate, scaled, weight, target)
            better = error < best_error
            best_error = np.where(better, error, best_error)
            best = np.where(better, unit, best)
        return np.where(query.length >= self.settings.minimum_points, best - (query.length - 1), np.inf)

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """A step at the unit where the best fit meets the target."""
        return Forecast.from_point(self.remaining(query), horizon).settled(query)


def _fit(candidate: _Candidate, loss: Floats, weight: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Weighted squared error of the loss (B,) and the unit (B,) at which the fit meets the target."""
    g = candidate.basis(np.arange(loss.shape[1], dtype=np.float64))
    # A line in the log loss is fitted with weights that make its error that of the loss to first order.
    y, w = (np.log(loss), weight * loss**2) if candidate.of_log else (loss, weight)
    total = np.maximum(w.sum(axis=1), 1e-300)
    wy = w * y
    g_mean, y_mean = w @ g / total, wy.sum(axis=1) / total
    gg = np.maximum(w @ (g * g) / total - g_mean**2, 1e-14)
    gy = wy @ g / total - g_mean * y_mean
    yy = (wy * y).sum(axis=1) / total - y_mean**2
    slope = gy / gg
    floor = y_mean - slope * g_mean
    error = np.maximum(yy - slope * gy, 0)
    if candidate.has_floor:
        through_zero = (gy + g_mean * y_mean) / np.maximum(gg + g_mean**2, 1e-300)
        below = floor < 0
        slope = np.where(below, through_zero, slope)
        zero_error = yy + y_mean**2 - through_zero * (gy + g_mean * y_mean)
        error = np.where(below, np.maximum(zero_error, 0), error)
        floor = np.where(below, 0.0, floor)
    # Where g rises with the units, a falling fit has a negative slope.
    falling = slope > 0 if candidate.has_floor else slope < 0
    falling &= np.abs(slope) * np.sqrt(gg) > 1e-9
    aim = np.log(np.maximum(target, 1e-300)) if candidate.of_log else target
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        unit = candidate.unit_at((aim - floor) / slope)
    return error, np.where(falling & np.isfinite(unit), unit, np.inf)
