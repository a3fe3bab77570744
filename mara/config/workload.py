"""Settings of the workload: which tasks there are, and when they arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from mara.config.base import Section


class TaskSettings(Section):
    """How targets and windows are set for the curves of a corpus."""

    templates: int = Field(default=3000, ge=1)
    """Number of task templates in a pool."""
    reference: Literal["sibling", "own"] = "sibling"
    """Which run target and window are taken from: another of the group, or (sensitivity) the task's own."""
    reference_units: tuple[int, int] = (3, 160)
    """Range of the reference run's unit d' (log-uniform)."""
    improvement: float = Field(default=0.05, gt=0, lt=1)
    """The least relative fall below the reference run's start that counts as a real improvement."""
    recent_improvement: float = Field(default=0.01, ge=0, lt=1)
    """The least relative fall that the reference run must have made over the second half of its d' units."""
    target_noise: float = Field(default=0.05, ge=0)
    """Standard deviation of the target's log noise."""
    slack: tuple[float, float] = (1.1, 4.0)
    """Range of window / d' (log-uniform)."""
    window_noise: float = Field(default=0.2, ge=0)
    """Standard deviation of the window's log noise."""
    longest_window: int = Field(default=120, ge=1, le=120)
    """Windows are cut off at this many slots, less a jitter so that no cap shows."""
    window_jitter: float = Field(default=0.2, ge=0, lt=1)
    """The cut-off of each task lies in [(1 - jitter) * longest_window, longest_window]."""
    least_demand: int = Field(default=3, ge=1)
    """Tasks with a smaller demand are dropped."""
    feasible_share: float | None = Field(default=0.775, ge=0, le=1)
    """Share of tasks with demand <= window; null leaves the natural share."""
    long_share: float | None = Field(default=0.5, ge=0, le=1)
    """Share of the feasible tasks with a demand above `long_demand`; null leaves the natural share."""
    long_demand: int = Field(default=20, ge=1)
    """Where long demands begin."""

    @model_validator(mode="after")
    def _ranges(self) -> Self:
        low, high = self.reference_units
        if not 1 <= low <= high <= 199:
            raise ValueError(f"reference_units {self.reference_units}: must rise within 1..199")
        if not 0 < self.slack[0] <= self.slack[1]:
            raise ValueError(f"slack {self.slack}: must be positive and rise")
        if self.long_share is not None and self.feasible_share is None:
            raise ValueError("long_share needs feasible_share: strata are drawn inside the feasible tasks")
        return self


class ArrivalSettings(Section):
    """When tasks arrive in an episode, in slots."""

    process: Literal["poisson", "bursty", "diurnal", "replay"] = "poisson"
    """Arrival process; all have the asked mean rate."""
    warm_up: int = Field(default=120, ge=0)
    """Slots before arrivals count (one longest window)."""
    scored: int = Field(default=240, ge=1)
    """Slots whose arrivals count."""
    cool_down: int = Field(default=60, ge=0)
    """Slots with arrivals that only keep up the pressure."""
    burst_ratio: float = Field(default=4.0, gt=1)
    """bursty: rate inside a burst over the rate outside."""
    burst_share: float = Field(default=0.25, gt=0, lt=1)
    """bursty: share of slots that lie in bursts."""
    burst_slots: float = Field(default=20.0, ge=1)
    """bursty: mean length of a burst."""
    diurnal_period: float = Field(default=120.0, gt=0)
    """diurnal: slots in a day."""
    diurnal_amplitude: float = Field(default=0.6, ge=0, le=1)
    """diurnal: relative swing of the rate."""
    replay_file: Path | None = None
    """replay: trace in any format of docs/formats.md; if it has deadlines, windows follow them."""

    @model_validator(mode="after")
    def _replay(self) -> Self:
        if (self.process == "replay") != (self.replay_file is not None):
            raise ValueError("replay_file: give it with process: replay, and only then")
        return self

    @property
    def slots(self) -> int:
        """Slots in which tasks arrive."""
        return self.warm_up + self.scored + self.cool_down
