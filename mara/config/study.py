"""Settings of the study itself: what is compared with what, on which episodes, how often."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mara.config.base import Section
from mara.config.cluster import ClusterSettings
from mara.config.distortion import ForecastSettings
from mara.config.methods import FAIR_STRENGTHS, METHODS, PREDICTORS
from mara.config.workload import ArrivalSettings

Family = Literal["vision", "rl"]
Seed = Annotated[int, Field(ge=0)]
PoolFamily = Literal["supervised", "vision", "rl"]
ScenarioName = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")]
OwnName = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")]
Load = Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)]


class Seeds(Section):
    """Where all randomness comes from. Every use draws from a stream of its own, named after its purpose."""

    workload: Seed = 31
    """Task pools and traces of training, calibration and validation."""
    predictors: Seed = 32
    """Initial weights, batches and sampled paths of the predictors."""
    allocators: Seed = 33
    """Tuning of the allocators that have weights, and lots drawn by policies."""
    test: Seed = 20261202
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
    test: int = Field(1000, ge=1)
    """Episodes of every test setting; looked at by the final evaluation only."""
    stress: int = Field(200, ge=1)
    """Episodes of every stress setting; a larger cluster, with more tasks an episode, gets fewer."""
    bound: int = Field(60, ge=1)
    """The first of the test episodes for which the clairvoyant optimum is computed."""


class Scenario(Section):
    """A test setting that differs from the standard one; what is left out stays standard."""

    arrivals: ArrivalSettings | None = None
    """Other arrivals."""
    cluster: ClusterSettings | None = None
    """Another cluster; the arrival rate grows with its capacity."""
    slack: tuple[float, float] | None = None
    """Only tasks whose window lies in this range of multiples of the time that its user went by."""
    mix: dict[PoolFamily, Annotated[float, Field(ge=0)]] | None = None
    """Shares of the families among the arrivals of the mixed pool; left out: as in the pool."""
    forecasts: ForecastSettings | None = None
    """Forecasts made wrong before any allocator reads them."""
    retuned: bool = False
    """Tune the allocators in the scenario; else they keep the standard setting's weights."""


SCENARIOS = {
    "bursty": Scenario(arrivals=ArrivalSettings(process="bursty")),
    "diurnal": Scenario(arrivals=ArrivalSettings(process="diurnal")),
    "tight_deadlines": Scenario(slack=(0.0, 1.6), retuned=True),
    "forecasts_doubled": Scenario(forecasts=ForecastSettings(scale=2.0)),
    "forecasts_halved": Scenario(forecasts=ForecastSettings(scale=0.5)),
    "forecasts_delayed": Scenario(forecasts=ForecastSettings(delay=10)),
    "forecasts_shuffled": Scenario(forecasts=ForecastSettings(order="shuffled")),
    "forecasts_inverted": Scenario(forecasts=ForecastSettings(order="inverted")),
    "four_nodes": Scenario(cluster=ClusterSettings(nodes=4)),
    "sixteen_nodes": Scenario(cluster=ClusterSettings(nodes=16)),
    "sixty_four_nodes": Scenario(cluster=ClusterSettings(nodes=64)),
    "mixed_speeds": Scenario(
        cluster=ClusterSettings(speeds=(0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0)), retuned=True
    ),
    "switching_cost": Scenario(cluster=ClusterSettings(switching_cost=2.0), retuned=True),
    "two_nodes_per_task": Scenario(
        cluster=ClusterSettings(max_nodes_per_task=2, speedup_exponent=0.7), retuned=True
    ),
    "failures": Scenario(cluster=ClusterSettings(failure_rate=0.01)),
    "rl_heavy": Scenario(mix={"supervised": 0.2, "vision": 0.2, "rl": 0.6}),
    "supervised_heavy": Scenario(mix={"supervised": 0.6, "vision": 0.2, "rl": 0.2}),
}


class NoisyLosses(Section):
    """The stress setting in which predictors and LARA read losses with noise; completion goes by the true ones."""

    level: float = Field(0.1, ge=0, le=2)
    """Standard deviation of the log noise on every point of a curve."""
    templates: int = Field(600, ge=1)
    """Task templates of its pool, which needs forecasts of its own."""


class FairnessSettings(Section):
    """The fairness suite: tasks of all families share one cluster."""

    templates: int = Field(1000, ge=1)
    """Templates of each family in the mixed pool."""
    loads: Annotated[tuple[Load, ...], Field(min_length=1)] = (1.0, 1.5)
    """Loads of the even mix."""
    scenarios: tuple[str, ...] = ("rl_heavy", "supervised_heavy")
    """Scenarios with other mixes, at the training load."""
    methods: tuple[str, ...] = (
        "edf",
        "index",
        "lara",
        "lara_tuned",
        "lara_deadline",
        "mara",
        *FAIR_STRENGTHS,
    )
    """Methods of the suite; empty leaves it out."""


TAKEN = ("supervised", "vision", "rl", "synthetic", "training", "calibration", "validation", "mixed", "noisy")
"""Families and pools of the study itself."""


class StudySettings(Section):
    """What is compared with what."""

    device: Literal["cpu", "cuda", "auto"] = "cpu"
    """Where the predictors' networks are trained; auto takes a GPU if there is one. Only `cpu` gives the same
    figures on every machine. All else runs on the processor: the allocator's network is small, and its steps
    take turns with the simulator's."""
    seeds: Seeds = Seeds()
    """Seeds of everything but the learned allocator."""
    train_seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = (1, 2, 3, 4, 5)
    """Seeds of the learned allocator: each is one whole training."""
    variant_seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = (1, 2, 3)
    """Seeds of its variants: all of them for the pair that learns from nothing, the first for the others, which begin
    with the index as `mara` does and end near it."""
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
    own_families: dict[OwnName, Path] = Field(default_factory=dict)
    """Your own logs as further held-out families, by name: a corpus file (`mara import`) or a folder of logs."""
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
        "mara_oracle",
    )
    """Methods of the predictor x allocator factorial at the training load; empty leaves the suite out."""
    ablation: tuple[str, ...] = (
        "lara",
        "index",
        "index_8_paths",
        "index_2_paths",
        "mara",
        "mara_scratch",
        "mara_scratch_no_shaping",
        "mara_no_mask",
        "mara_independent",
        "mara_no_deadline",
        "mara_8_paths",
        "mara_2_paths",
    )
    """Methods of the ablation at the training load; empty leaves the suite out."""
    history: tuple[str, ...] = (
        "lara",
        "index",
        "index_history_0",
        "index_history_1",
        "index_history",
        "mara",
        "mara_history",
    )
    """Methods with and without earlier runs at the training load, on all families; empty leaves the suite out."""
    history_refresh: float = Field(0.1, ge=0, le=1)
    """Forecasts that know earlier runs are made when a task's units have grown by this share; in between, the
    last one is carried on."""
    scenarios: dict[ScenarioName, Scenario] = Field(default_factory=lambda: dict(SCENARIOS))
    """Settings that differ from the standard one, by name."""
    stress_scenarios: tuple[str, ...] = tuple(name for name, row in SCENARIOS.items() if not row.mix)
    """Scenarios of the stress suite; empty leaves the suite out."""
    noisy_losses: NoisyLosses | None = NoisyLosses()
    """One more setting of the stress suite; null leaves it out."""
    stress: tuple[str, ...] = (
        "edf",
        "index",
        "index_matching",
        "lara",
        "lara_tuned",
        "lara_deadline",
        "mara",
    )
    """Methods of the stress suite."""
    fairness: FairnessSettings = FairnessSettings()
    """The fairness suite."""

    @model_validator(mode="after")
    def _names_exist_and_are_given_once(self) -> Self:
        if 1.0 not in self.loads:
            raise ValueError("loads must contain 1.0, the training load")
        for field, known in (
            ("predictors", PREDICTORS),
            ("methods", METHODS),
            ("attribution", METHODS),
            ("ablation", METHODS),
            ("history", METHODS),
            ("stress", METHODS),
            ("fairness", METHODS),
        ):
            named = self.fairness.methods if field == "fairness" else getattr(self, field)
            unknown = [name for name in named if name not in known]
            if unknown:
                raise ValueError(f"{field}: unknown name {unknown[0]!r}; known are {', '.join(known)}")
        for field in ("train_seeds", "variant_seeds", "loads", "held_out_families", "predictors", "methods"):
            values = getattr(self, field)
            if len(set(values)) != len(values):
                raise ValueError(f"{field} names a value twice")
        missing = [name for name in ("lara", "mara") if name not in self.methods]
        if missing:
            raise ValueError(f"methods must contain {missing[0]}: the claims compare mara with lara")
        for field, named in (("stress", self.stress), ("fairness.methods", self.fairness.methods)):
            missing = [name for name in ("lara", "mara") if named and name not in named]
            if missing:
                raise ValueError(f"{field} must contain {missing[0]}: the suite compares mara with lara")
        for field in ("training_scenarios", "stress_scenarios", "fairness"):
            named = self.fairness.scenarios if field == "fairness" else getattr(self, field)
            strange = [name for name in named if name not in self.scenarios]
            if strange:
                raise ValueError(f"{field}: {strange[0]!r} is not among the scenarios")
        taken = [name for name in self.own_families if name in TAKEN]
        if taken:
            raise ValueError(f"own_families: the study has a {taken[0]!r} already; choose another name")
        if "standard" in self.scenarios:
            raise ValueError("scenarios: 'standard' is the name of the unchanged setting; choose another")
        return self
