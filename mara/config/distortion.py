"""Settings of what a stress setting does to forecasts before allocators read them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mara.config.base import Section


class ForecastSettings(Section):
    """How forecasts are spoilt; the defaults leave them as the predictor made them."""

    scale: float = Field(default=1.0, gt=0, le=10)
    """The remaining demand is forecast as this many times what the predictor says."""
    order: Literal["own", "shuffled", "inverted"] = "own"
    """Whose forecast a task shows: its own, a random other task's, or the opposite one (shortest for longest)."""
    delay: int = Field(default=0, ge=0, le=100)
    """Units: forecasts know the losses only up to so many units ago, and that the task has not finished since."""
