"""Settings of the study itself: what is compared with what, on which episodes, how often."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mara.config.base import Section
from mara.config.cluster import ClusterSettings
from mara.config.methods import METHODS, PREDICTORS
from mara.config.workload import ArrivalSettings

Family = Literal["vision", "rl"]
Seed = Annotated[int, Field(ge=0)]
ScenarioName = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")]
Load = Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)]


class Seeds(Section):
    """Where all randomness comes from. Every use draws from a stream of its own, named after its purpose."""

    workload: Seed = 1
    """Task pools and traces of training, calibration and validation."""
    predictors: Seed = 2
    """Initial weights, batches and sampled paths of the predictors."""
    allocators: Seed = 3
    """Tuning of the allocators that have weights, and lots drawn by policies."""
    test: Seed = 20261130
    """Task pools and traces of the test settings; nothing is chosen on them."""


class Episodes(Section):
    """How many episodes of each kind are drawn; every kind has curves and seeds of its own."""

    training: int = Field(256, ge=1)
    """Episodes on which allocators are trained."""
    tuning: int = Field(80, ge=1)
    """The first of the training episodes on which allocators with a few weights are tuned."""
    calibration: int = Field(300, ge=1)
    """Episodes on which the arrival rate of the training load is found."""
    validation: int = Field(200, ge=1)
    """Episodes on which choices between variants are made."""
    test: int = Field(240, ge=1)
    """Episodes of every test setting; looked at by the final evaluation only."""
    bound: int = Field(60, ge=1)
    """The first of the test episodes for which the clairvoyant optimum is computed."""


class Scenario(Section):
    """A test setting that differs from the standard one; what is left out stays standard."""

    arrivals: ArrivalSettings | None = None
    """Other arrivals."""
    cluster: ClusterSettings | None = None
    """Another cluster; the arrival rate grows with its capacity."""


SCENARIOS = {
    "bursty": Scenario(arrivals=ArrivalSettings(process="bursty")),
    "diurnal": Scenario(arrivals=ArrivalSettings(process="diurnal")),
    "mixed_speeds": Scenario(cluster=ClusterSettings(speeds=(0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0))),
    "switching_cost": Scenario(cluster=ClusterSettings(switching_cost=2.0)),
    "two_nodes_per_task": Scenario(cluster=ClusterSettings(max_nodes_per_task=2, speedup_exponent=0.7)),
    "failures": Scenario(cluster=ClusterSettings(failure_rate=0.01)),
    "four_nodes": Scenario(cluster=ClusterSettings(nodes=4)),
    "sixteen_nodes": Scenario(cluster=ClusterSettings(nodes=16)),
}


class StudySettings(Section):
    """What is compared with what."""

    seeds: Seeds = Seeds()
    """Seeds of everything but the learned allocator."""
    train_seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = (1, 2)
    """Seeds of the learned allocator: each is one whole training."""
    variant_seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = (1,)
    """Seeds of its variants in the attribution and ablation suites."""
    episodes: Episodes = Episodes()
    """Numbers of episodes."""
    loads: Annotated[tuple[Load, ...], Field(min_length=1)] = (1.0, 1.25, 1.5, 2.0)
    """Arrival rates of the test settings as multiples of the training load's; must contain 1."""
    training_loads: Annotated[tuple[Load, ...], Field(min_length=1)] = (1.0,)
    """Loads that the learned allocator is trained at."""
    training_scenarios: tuple[str, ...] = ("mixed_speeds",)
    """Scenarios that the learned allocator is trained in beside the standard one, at the training load."""
    held_out_families: tuple[Family, ...] = ("vision", "rl")
    """Families that no training sees; tested at the training load."""
    predictors: Annotated[tuple[str, ...], Field(min_length=1)] = tuple(PREDICTORS)
    """Predictors of the prediction table."""
    methods: Annotated[tuple[str, ...], Field(min_length=1)] = (
        "random",
        "fifo",
        "edf",
        "srpt",
        "least_laxity",
        "moore_hodgson",
        "gittins",
        "index",
        "index_marginal",
        "index_slope",
        "lara",
        "lara_tuned",
        "lara_slope",
        "lara_deadline",
        "laira",
        "mara",
    )
    """Methods of the suites in_distribution, unseen_load and held_out_family; must contain lara and mara."""
    attribution: tuple[str, ...] = (
        "lara",
        "lara_flow",
        "lara_oracle",
        "index_wls",
        "index",
        "index_oracle",
        "mara_wls",
        "mara",
    )
    """Methods of the predictor x allocator factorial at the training load; empty leaves the suite out."""
    ablation: tuple[str, ...] = (
        "lara",
        "mara",
        "mara_no_shaping",
        "mara_no_mask",
        "mara_no_deadline",
    )
    """Methods of the ablation at the training load; empty leaves the suite out."""
    scenarios: dict[ScenarioName, Scenario] = Field(default_factory=lambda: dict(SCENARIOS))
    """Settings that differ from the standard one, by name."""
    stress_scenarios: tuple[str, ...] = ("bursty", "mixed_speeds")
    """Scenarios of the stress suite; empty leaves the suite out."""
    stress: tuple[str, ...] = ("edf", "index", "lara", "lara_tuned", "mara")
    """Methods of the stress suite."""

    @model_validator(mode="after")
    def _names_exist_and_are_given_once(self) -> Self:
        if 1.0 not in self.loads:
            raise ValueError("loads must contain 1.0, the training load")
        for field, known in (
            ("predictors", PREDICTORS),
            ("methods", METHODS),
            ("attribution", METHODS),
            ("ablation", METHODS),
            ("stress", METHODS),
        ):
            unknown = [name for name in getattr(self, field) if name not in known]
            if unknown:
                raise ValueError(f"{field}: unknown name {unknown[0]!r}; known are {', '.join(known)}")
        for field in ("train_seeds", "variant_seeds", "loads", "held_out_families", "predictors", "methods"):
            values = getattr(self, field)
            if len(set(values)) != len(values):
                raise ValueError(f"{field} names a value twice")
        missing = [name for name in ("lara", "mara") if name not in self.methods]
        if missing:
            raise ValueError(f"methods must contain {missing[0]}: the claims compare mara with lara")
        for field in ("training_scenarios", "stress_scenarios"):
            strange = [name for name in getattr(self, field) if name not in self.scenarios]
            if strange:
                raise ValueError(f"{field}: {strange[0]!r} is not among the scenarios")
        if "standard" in self.scenarios:
            raise ValueError("scenarios: 'standard' is the name of the unchanged setting; choose another")
        return self
