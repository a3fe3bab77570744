"""Settings of the predictors that need no network; the flow and the direct head have theirs in ``flow``."""

from __future__ import annotations

from pydantic import Field

from mara.config.base import Section


class WlsSettings(Section):
    """Weighted least squares of a power law in log-log coordinates, as LARA uses it."""

    forgetting: float = Field(0.9, gt=0, lt=1)
    """Weight of a point relative to the next one."""
    minimum_points: int = Field(5, ge=2)
    """Points after point 0 from which on the line is trusted."""
    early_exponent: float = Field(0.5, gt=0)
    """Exponent of the power law through the newest point that stands in before that."""


class SlopeSettings(Section):
    """Extrapolated slopes of the log loss; chosen on the validation split."""

    forgetting_loglog: float = Field(0.95, gt=0, lt=1)
    """Weight of a point relative to the next one, over log units."""
    forgetting_semilog: float = Field(0.95, gt=0, lt=1)
    """The same over units."""
    early_exponent: float = Field(0.5, gt=0)
    """Slope that stands in while there is only one point."""


class MarginalSettings(Section):
    """The distribution of demand by age and deadline alone."""

    tasks: int = Field(20_000, ge=100)
    """Tasks made of the training curves."""
    window_classes: int = Field(12, ge=1)
    """Classes of about equally many windows."""


class CalibrationSettings(Section):
    """Error distributions of point predictors on the calibration split."""

    examples: int = Field(20_000, ge=100)
    """Questions drawn."""
    point_classes: int = Field(10, ge=1)
    """Classes by the point forecast."""
    age_classes: int = Field(4, ge=1)
    """Classes by the units so far."""
    window_classes: int = Field(6, ge=1)
    """Classes by the window, where the deadline is an input."""
    borrowed: float = Field(30.0, ge=0)
    """Examples' worth of the parent class in every class."""
    error_levels: int = Field(241, ge=3)
    """Grid of log errors between -6 and 6."""


class PredictorSettings(Section):
    """All predictors without a network."""

    wls: WlsSettings = WlsSettings()
    slopes: SlopeSettings = SlopeSettings()
    marginal: MarginalSettings = MarginalSettings()
    calibration: CalibrationSettings = CalibrationSettings()
