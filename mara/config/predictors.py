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


class PredictorSettings(Section):
    """All predictors without a network."""

    wls: WlsSettings = WlsSettings()
    slopes: SlopeSettings = SlopeSettings()
