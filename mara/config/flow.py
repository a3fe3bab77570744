"""Settings of the learned predictors: the flow, its distilled and history variants, and the direct head."""

from __future__ import annotations

from pydantic import Field

from mara.config.base import Section


class ExampleSettings(Section):
    """The prefixes that learned predictors are fitted on."""

    examples: int = Field(300_000, ge=1)
    """Prefixes drawn before training."""
    longest_prefix: int = Field(180, ge=1)
    """Points of the longest prefix."""
    synthetic_curves: int = Field(6000, ge=1)
    """Curves drawn from the synthetic prior."""
    synthetic_share: float = Field(0.4, ge=0, le=1)
    """Share of the prefixes that come from them. On recorded curves held back from training 0.65 costs the flow .0027
    [.0017, .0037] nCRPS on calibration groups and .0031 [.0021, .0040] on the allocator's (one training against two),
    and it gains nothing that shows on rough ones."""
    altered_copies: int = Field(2, ge=0)
    """Altered copies of every recorded curve."""
    power_spread: float = Field(0.4, ge=0)
    """Spread of the log of the power that an altered copy is raised to."""
    highest_floor: float = Field(3.0, gt=0.05)
    """Highest floor put under an altered copy, as a multiple of its lowest loss."""
    schedule_dropped: float = Field(0.3, ge=0, le=1)
    """Share of the prefixes whose learning-rate schedule is hidden."""
    trials: int = Field(10_000, ge=1)
    """Forecasts that the conformal calibration is fitted on."""
    synthetic_trials: float = Field(0.4, ge=0, lt=1)
    """Share of them about fresh synthetic curves; the others are about curves of the calibration split."""


class TrainingSettings(Section):
    """One training run of a learned predictor."""

    steps: int = Field(6_500, ge=1)
    """Gradient steps."""
    batch: int = Field(1024, ge=1)
    """Examples a step."""
    learning_rate: float = Field(2e-3, gt=0)
    """Peak learning rate; it rises over the first steps and falls to zero along a cosine."""
    warm_up: int = Field(300, ge=0)
    """Steps over which the learning rate rises."""
    weight_decay: float = Field(0.02, ge=0)
    """Decoupled weight decay."""
    average: float = Field(0.999, ge=0, lt=1)
    """Decay of the moving average of the weights, which is what forecasts."""
    input_noise: float = Field(0.05, ge=0)
    """Spread of the noise on the standardised inputs."""
    half_precision: bool = True
    """Compute in bfloat16 where that is safe; 2.5 times faster on processors that have it."""
    checkpoint_every: int = Field(1000, ge=1)
    """Steps between checkpoints and lines of the training log."""


class WindowSettings(Section):
    """The ratio by which the flow takes a deadline into account."""

    tasks: int = Field(12_000, ge=1)
    """Tasks that it is fitted on."""
    hidden: int = Field(32, ge=1)
    """Width of its network."""
    steps: int = Field(800, ge=1)
    """Gradient steps."""
    batch: int = Field(1024, ge=1)
    """Tasks a step."""


class FlowSettings(Section):
    """The flow over future log-losses."""

    examples: ExampleSettings = ExampleSettings()
    training: TrainingSettings = TrainingSettings()
    hidden: int = Field(256, ge=1)
    """Width of the encoder of the prefix."""
    width: int = Field(192, ge=1)
    """Width of the velocity network."""
    depth: int = Field(2, ge=1)
    """Residual blocks of the velocity network."""
    solver_steps: int = Field(4, ge=0)
    """Midpoint steps; 0 forecasts with the prior."""
    paths: int = Field(64, ge=2, multiple_of=2)
    """Sampled futures a forecast."""
    kalman_share: float = Field(0.4, ge=0, lt=1)
    """Weight of the Kalman filter's own forecast in the pool with the paths: it has learnt from no curve, so no
    kind of curve is foreign to it. Chosen on synthetic curves by a flow that had seen recorded ones only: there
    0.4 takes the nCRPS from .073 to .065 (the filter alone: .071); on validation curves it costs .0007."""
    rough_kalman_share: float = Field(0.8, ge=0, lt=1)
    """The same on prefixes as rough as few that were trained on. Chosen like the other: where prefixes are that
    rough, it gains .0042 nCRPS [-.0020, .0115] on synthetic curves with a flow that had seen recorded ones only,
    and .0044 [.0004, .0123] on validation curves; over all of these .0001."""
    window: WindowSettings = WindowSettings()


class DirectSettings(Section):
    """The one-pass head on the crossing time."""

    examples: ExampleSettings = ExampleSettings()
    training: TrainingSettings = TrainingSettings(steps=4000)
    """Training; with more steps the loss on calibration curves rises again."""
    hidden: int = Field(256, ge=1)
    """Width of the network."""
    depth: int = Field(3, ge=1)
    """Residual blocks."""
    kalman_share: float = Field(0.4, ge=0, lt=1)
    """Weight of the Kalman filter's own forecast in the pool, as in the flow's."""
    rough_kalman_share: float = Field(0.8, ge=0, lt=1)
    """The same on rough prefixes, as in the flow's."""


class DistilledSettings(Section):
    """The one-pass head that imitates the flow."""

    prefixes: int = Field(40_000, ge=1)
    """Prefixes at which the flow is sampled."""
    targets: int = Field(8, ge=1)
    """Targets a prefix."""
    training: TrainingSettings = TrainingSettings(steps=6000, learning_rate=1e-3, input_noise=0.0)
    """Training of the head."""
    hidden: int = Field(256, ge=1)
    """Width of the network."""
    depth: int = Field(3, ge=1)
    """Residual blocks."""
    compared: int = Field(3000, ge=1)
    """Questions from the calibration split on which the head is compared with the flow."""
