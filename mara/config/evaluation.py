"""How results are judged: the bootstrap, the methods compared and the tolerances of the verdicts."""

from __future__ import annotations

from pydantic import Field

from mara.config.base import Section

SUITE_TABLES = (
    "completion",
    "comparisons",
    "gap",
    "effects",
    "attribution",
    "ablation",
    "history",
    "stress",
    "fairness",
    "fairness_groups",
)
"""The tables that are joined from the settings of all suites."""


class EvaluationSettings(Section):
    """Settings of the tables of results and of the verdicts."""

    confidence: float = Field(0.95, gt=0.5, lt=1.0)
    """Level of every interval."""

    resamples: int = Field(2000, ge=100)
    """Bootstrap resamples behind every interval."""

    seed: int = Field(20_260, ge=0)
    """Seed of the resampling; the same seed gives the same intervals."""

    method: str = "mara"
    """The method whose claims are judged."""

    reference: str = "lara"
    """The baseline of the published claims."""

    bound: str = "clairvoyant"
    """The optimum with everything known, the end of the scale for the share of the gap closed."""

    main_workload: str = "supervised"
    """The workload on which the claims about the training load, heavier loads and attribution are judged."""

    shaped: str = "mara_scratch"
    """The variant that learns from nothing with the log-progress potential, one half of the pair that C6 compares."""

    unshaped: str = "mara_scratch_no_shaping"
    """The other half: the same training without the potential."""

    identity_tolerance: float = Field(1e-9, gt=0.0)
    """Largest error of the shaping identity, in tasks per episode, that counts as rounding."""

    minimum_group_tasks: int = Field(20, ge=1)
    """Groups with fewer scored tasks are left out when the worst group is sought."""
