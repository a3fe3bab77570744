"""Weights of the allocators and the budget for tuning them.

A section's fields, in order, are what the compiled policy reads; their limits are the space the tuner
searches (on a log scale where a field says so).
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from mara.config.base import Section

LOG_SCALE: dict[str, Any] = {"scale": "log"}


class NoWeights(Section):
    """For allocators that have none: random, FIFO, EDF."""


class EstimateWeights(Section):
    """SRPT, least laxity and Moore–Hodgson: the number that stands for the remaining demand."""

    quantile: float = Field(default=0.25, ge=0.0, le=0.9)
    """Level of the forecast's quantile; 0 takes the point estimate."""


class GittinsWeights(Section):
    """The Gittins index with urgency."""

    wait: float = Field(default=8.0, ge=1, le=40)
    """Slots of waiting whose cost in P(finish in time) is the urgency."""
    floor: float = Field(default=0.1, ge=0.001, le=1, json_schema_extra=LOG_SCALE)
    """Added to the urgency, so that a task that can wait keeps some worth."""


class IndexWeights(Section):
    """The tuned index: log G(h T) + c log(floor + fall of P) + p log P(T) + exploration + stickiness."""

    horizon: float = Field(default=1.0, ge=0.4, le=3.0, json_schema_extra=LOG_SCALE)
    """h: the time left counts as this many times as much in the Gittins index."""
    wait: float = Field(default=8.0, ge=1, le=40, json_schema_extra=LOG_SCALE)
    """Slots of waiting whose cost in P(finish in time) is the urgency."""
    floor: float = Field(default=0.1, ge=0.001, le=1, json_schema_extra=LOG_SCALE)
    """Added to the urgency."""
    urgency: float = Field(default=1.0, ge=0, le=3)
    """c: power of the urgency."""
    chance: float = Field(default=0.0, ge=-1.5, le=1.5)
    """p: power of P(finish in time)."""
    explore: float = Field(default=0.0, ge=-1, le=2)
    """Bonus of a task without any unit, fading with units trained."""
    explore_units: float = Field(default=8.0, ge=1, le=40, json_schema_extra=LOG_SCALE)
    """Units after which that bonus has fallen to 1/e."""
    commit: float = Field(default=0.0, ge=-0.5, le=1.0)
    """Power of 1 + units trained: worth of what has been invested beyond what the forecast says."""
    sticky: float = Field(default=0.0, ge=0, le=2)
    """Bonus of a task that has been trained in the slot before."""


class MatchingWeights(IndexWeights):
    """The tuned index with tasks matched to nodes of different speed."""

    speed: float = Field(default=-0.1, ge=-0.5, le=1)
    """Power of the node's speed in the worth of a task on it; the index itself already knows the speed."""


class FairWeights(IndexWeights):
    """The index under a constraint of even completion over the families."""

    strength: float = Field(default=4.0, ge=0, le=100)
    """Step of the families' multipliers: added log index for each whole that a family's completion lags."""


class LaraWeights(Section):
    """LARA; the defaults are the faithful form."""

    explore: float = Field(default=5.0, ge=0, le=20)
    """Units every task gets first, before its estimate counts (a fit needs at least five points)."""
    safety: float = Field(default=1.0, ge=0.05, le=2.0, json_schema_extra=LOG_SCALE)
    """Factor on the estimated remaining demand."""
    refresh: int = Field(default=1, ge=1, le=12)
    """Slots between two searches."""


class LaraDeadlineWeights(LaraWeights):
    """LARA with its estimate shrunk towards what the window says about the demand."""

    prior_units: float = Field(default=10.0, ge=0.5, le=100, json_schema_extra=LOG_SCALE)
    """Units after which the fit and the prior weigh the same."""
    prior_share: float = Field(default=0.5, ge=0.1, le=1.0)
    """Prior demand as a share of the window."""


class LairaWeights(Section):
    """LaiRA; values that its paper does not give, chosen on training episodes."""

    warm_up: float = Field(default=5.0, ge=2, le=20)
    """Units every task gets before its fits count."""
    first_slice: float = Field(default=4.0, ge=1, le=20)
    """M1, slots of each of a task's first four slices."""
    proportional: float = Field(default=20.0, ge=0, le=100)
    """Kp of the slice controller."""
    derivative: float = Field(default=5.0, ge=0, le=50)
    """Kd of the slice controller."""
    confidence: float = Field(default=0.1, ge=0.0, le=1.0)
    """Factor on the width beta of the optimistic rate (1 = as derived)."""


class TunerSettings(Section):
    """Budget of one tuning; the same for every tuned method."""

    population: int = Field(default=10, ge=4)
    """Candidates a generation."""
    generations: int = Field(default=7, ge=1)
    """Generations."""
    step: float = Field(default=0.25, gt=0, le=1)
    """First standard deviation of the search, as a share of each weight's range."""
    finalists: int = Field(default=4, ge=1)
    """Best candidates that meet the default on the episodes held back from the search."""
    held_back: float = Field(default=0.4, gt=0, lt=1)
    """Share of the training episodes that only the finalists see."""


class AllocatorSettings(Section):
    """Allocators without a network, and the budget of their tuning."""

    estimates: EstimateWeights = EstimateWeights()
    """SRPT, least laxity and Moore–Hodgson."""
    gittins: GittinsWeights = GittinsWeights()
    """The Gittins index with urgency."""
    index: IndexWeights = IndexWeights()
    """Where the tuning of the index starts."""
    matching: MatchingWeights = MatchingWeights(horizon=1.4, wait=25.0, urgency=1.2, sticky=0.3)
    """Where the tuning of the matched index starts."""
    fair: FairWeights = FairWeights()
    """The index with multipliers of the families; its other weights are those of the tuned index."""
    lara: LaraWeights = LaraWeights()
    """Faithful LARA; where the tuning of its variants starts."""
    lara_deadline: LaraDeadlineWeights = LaraDeadlineWeights()
    """Where the tuning of the LARA that knows the deadline starts."""
    laira: LairaWeights = LairaWeights()
    """Where the tuning of LaiRA starts."""
    tuner: TunerSettings = TunerSettings()
    """Budget of one tuning."""
    lara_completion: float = Field(default=0.5492, gt=0, lt=1)
    """Completion of faithful LARA that defines the training load (the published value)."""
