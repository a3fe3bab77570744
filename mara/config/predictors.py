"""Settings of the predictors that need no network; the flow and the direct head have theirs in ``flow``."""

from __future__ import annotations

from pydantic import Field

from mara.config.base import Section


class WlsSettings(Section):
    """Weighted least squares of a power law in log-log coordinates, as LARA uses it."""

    forgetting: float = Field(0.9, gt=0, lt=1)
    """Weight of a point relative to the next one, as published."""
    tuned_forgetting: float = Field(0.8, gt=0, lt=1)
    """The same for ``wls_tuned`` and ``wls_calibrated``, chosen on the validation split."""
    minimum_points: int = Field(5, ge=2)
    """Points after point 0 from which on the line is trusted."""
    early_exponent: float = Field(0.5, gt=0)
    """Exponent of the power law through the newest point that stands in before that."""


class SlopeSettings(Section):
    """Extrapolated slopes of the log loss; chosen on the validation split."""

    memory_loglog: float = Field(0.08, gt=0)
    """Age at which a point's weight has fallen to 1/e, as a share of the prefix; over log units."""
    memory_semilog: float = Field(0.05, gt=0)
    """The same over units."""
    least_memory: float = Field(1.5, gt=0)
    """That age is at least so many points."""
    minimum_points_loglog: int = Field(5, ge=1)
    """Points after point 0 from which on the slope over log units is trusted."""
    minimum_points_semilog: int = Field(2, ge=1)
    """The same over units."""
    early_exponent: float = Field(0.5, gt=0)
    """Exponent of the power law whose slope stands in before that."""


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


class KalmanSettings(Section):
    """Averaged local linear trends; chosen on the validation split."""

    turning_loglog: tuple[float, ...] = (0.2, 2.0, 500.0)
    """Variance of the slope's random walk per log unit, in units of the noise; one model each."""
    turning_semilog: tuple[float, ...] = (5e-6,)
    """The same per unit."""
    memory: int = Field(200, ge=2)
    """Newest points that are filtered."""
    prior_noise: float = Field(0.03, gt=0)
    """Noise of the log loss before any point is seen."""
    prior_slope: float = Field(10.0, gt=0)
    """Spread of the slope before any point is seen."""
    prior_evidence: float = Field(1.0, gt=0)
    """Points' worth of the prior noise."""
    noise_memory: float = Field(0.8, gt=0, le=1)
    """Weight of an innovation relative to the next one in the noise."""
    model_memory: float = Field(0.83, gt=0, le=1)
    """The same in the models' weights."""
    widening: float = Field(1.6, gt=0)
    """Factor on the forecast's deviation."""


class NeighbourSettings(Section):
    """Nearest training curves; chosen on the validation split."""

    neighbours: int = Field(20, ge=1)
    """Curves whose continuations are followed."""
    recency: float = Field(1.8, ge=0)
    """A point counts (1 + age)^-recency in the distance."""
    softness: float = Field(0.5, ge=0)
    """Added to each squared distance, in units of their mean, before weights are taken as its inverse."""
    synthetic_curves: int = Field(3000, ge=0)
    """Curves from the synthetic prior in the library."""


class ParametricSettings(Section):
    """Best of six parametric families."""

    forgetting: float = Field(0.97, gt=0, lt=1)
    """Weight of a point relative to the next one."""
    minimum_points: int = Field(5, ge=3)
    """Shorter prefixes are answered with never."""


class BoostingSettings(Section):
    """Gradient-boosted trees; chosen on the validation split."""

    examples: int = Field(60_000, ge=100)
    """Questions drawn to fit on."""
    synthetic_share: float = Field(0.4, ge=0, lt=1)
    """Share of them about synthetic curves."""
    synthetic_curves: int = Field(6000, ge=1)
    """Synthetic curves drawn."""
    grid_draws: int = Field(3, ge=1)
    """Values of b asked of every question in fitting."""
    grid_points: int = Field(16, ge=2)
    """Values of b asked in forecasting."""
    trees: int = Field(150, ge=1)
    """Boosting rounds."""
    leaves: int = Field(31, ge=2)
    """Leaves a tree."""
    samples_per_leaf: int = Field(60, ge=1)
    """Least samples a leaf."""
    learning_rate: float = Field(0.08, gt=0)
    """Shrinkage of each tree."""


class PredictorSettings(Section):
    """All predictors without a network."""

    wls: WlsSettings = WlsSettings()
    slopes: SlopeSettings = SlopeSettings()
    marginal: MarginalSettings = MarginalSettings()
    calibration: CalibrationSettings = CalibrationSettings()
    kalman: KalmanSettings = KalmanSettings()
    neighbours: NeighbourSettings = NeighbourSettings()
    parametric: ParametricSettings = ParametricSettings()
    boosting: BoostingSettings = BoostingSettings()
