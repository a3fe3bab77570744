"""A study in miniature: tasks with drawn demands are really simulated, then judged by the stages of the workflow.

``mara`` is played by the index on good forecasts, so that its claims can hold; the point is what the stages make
of the outcomes.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from scipy.special import ndtr

from mara.allocators.registry import make_policy
from mara.config.evaluation import EvaluationSettings
from mara.config.workload import ArrivalSettings
from mara.simulator.clairvoyant import bound, plan_outcome
from mara.simulator.cluster import Cluster
from mara.simulator.simulate import Outcome, simulate
from mara.stages import collect_tables, evaluate_setting, judge_claims
from mara.workload.forecast_table import ForecastTable, row_offsets
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace, make_trace

HORIZON = 120
SETTINGS = EvaluationSettings(resamples=300)
CLUSTER = Cluster(speeds=np.ones(4))
PLACES = (
    ("in_distribution", "supervised", 1.0),
    ("unseen_load", "supervised", 1.5),
    ("held_out_family", "rl", 1.0),
    ("held_out_family", "vision", 1.0),
    ("held_out_family", "mine", 1.0),
    ("attribution", "supervised", 1.0),
    ("ablation", "supervised", 1.0),
    ("history", "rl", 1.0),
    ("history", "mine", 1.0),
    ("stress", "bursty", 1.0),
    ("fairness", "mixed", 1.0),
)
METHODS = {
    "history": ("lara", "index", "index_history"),
    "attribution": ("lara", "lara_flow", "mara_wls", "mara"),
    "ablation": ("lara", "mara", "mara_scratch", "mara_scratch_no_shaping"),
}
PLAYERS = {
    "lara": ("lara", "poor"),
    "lara_flow": ("lara", "good"),
    "edf": ("edf", "none"),
    "index": ("index", "poor"),
    "index_history": ("index", "good"),
    "mara_wls": ("index", "poor"),
    "mara": ("index", "good"),
    "mara_scratch": ("index", "good"),
    "mara_scratch_no_shaping": ("index", "good"),
}


def make_pool() -> TaskPool:
    """Tasks of 60 groups and three families with log-uniform demands, some of which cannot be met."""
    rng, count = np.random.default_rng(0), 600
    demand = np.exp(rng.uniform(np.log(3), np.log(80), count)).astype(np.int32)
    window = np.clip(demand * np.exp(rng.uniform(-0.4, 1.2, count)), 2, 120).astype(np.int32)
    group = np.arange(count) % 60
    return TaskPool(
        curve=np.arange(count, dtype=np.int32),
        curve_id=np.array([f"c{k}" for k in range(count)]),
        group=np.array([f"g{k}" for k in group]),
        family=np.array(["supervised", "vision", "rl"])[group % 3],
        target=np.ones(count, np.float32),
        window=window,
        demand=demand,
        reference_units=window,
        natural={},
    )


def forecast(pool: TaskPool, spread: float) -> ForecastTable:
    """Lognormal around a noisy estimate of what remains; the noise is a task's own."""
    rng = np.random.default_rng(1)
    offset = row_offsets(pool.demand)
    template = np.repeat(np.arange(len(pool)), np.diff(offset))
    remaining = pool.demand[template] - (np.arange(offset[-1]) - offset[template])
    estimate = remaining * np.exp(spread * rng.standard_normal(len(pool)))[template]
    cdf = ndtr((np.log(np.arange(1, HORIZON + 1)) - np.log(estimate)[:, None]) / spread)
    cdf = np.concatenate([np.zeros((len(cdf), 1)), cdf], axis=1).astype(np.float32)
    return ForecastTable("drawn", offset, cdf, estimate.astype(np.float32))


def never(table: ForecastTable) -> ForecastTable:
    """A forecaster that says of every task that it will never finish."""
    return replace(table, cdf=np.zeros_like(table.cdf), point=np.full_like(table.point, np.inf))


def idle(outcome: Outcome) -> Outcome:
    """What becomes of the same tasks under an allocator that never trains anything."""
    return replace(
        outcome,
        completed=np.zeros_like(outcome.completed),
        finish=np.full_like(outcome.finish, -1),
        first_served=np.full_like(outcome.first_served, -1),
        units=np.zeros_like(outcome.units),
    )


def make_episodes(pool: TaskPool, load: float) -> Trace:
    """Twelve short episodes on four nodes."""
    arrivals = ArrivalSettings(warm_up=20, scored=120, cool_down=20)
    return make_trace(pool, arrivals, 0.22 * load, 12, np.random.default_rng(2))


class Study:
    """Outcomes on disk, and the tables that the stages make of them."""

    def __init__(self, folder: Path, good: ForecastTable | None = None, idles: bool = False) -> None:
        """``good``: other forecasts in place of MARA's; ``idles``: MARA trains nothing."""
        self.folder, self.pool = folder, make_pool()
        self.forecasts = {
            "good": good or forecast(self.pool, 0.3),
            "poor": forecast(self.pool, 1.5),
        }
        self.runs: dict[tuple[str, str, float], dict[tuple[str, int], Path]] = {}
        folder.mkdir(parents=True)
        self.pool.save(folder / "pool.parquet")
        played: dict[tuple[float, str], Outcome] = {}
        for suite, workload, load in PLACES:
            trace = make_episodes(self.pool, load)
            methods = METHODS.get(suite, ("edf", "lara", "mara"))
            files = {}
            for method in methods:
                if (load, method) not in played:
                    outcome = self.play(trace, method)
                    played[load, method] = idle(outcome) if idles and method.startswith("mara") else outcome
                for seed in (1, 2) if method == "mara" else (0,):
                    files[method, seed] = folder / f"{suite}-{workload}-{load:g}-{method}-{seed}.parquet"
                    played[load, method].save(files[method, seed])
            if suite == "in_distribution":
                some = trace.select(np.arange(4))
                files["clairvoyant", 0] = folder / "clairvoyant.parquet"
                plan_outcome(some, self.pool, CLUSTER, bound(some, self.pool, CLUSTER)).save(
                    files["clairvoyant", 0]
                )
            self.runs[suite, workload, load] = files
        self.tables = folder / "tables"
        self.tables.mkdir()
        self._evaluate()

    def play(self, trace: Trace, method: str) -> Outcome:
        """Simulate a method."""
        allocator, kind = PLAYERS[method]
        table = self.forecasts.get(kind)
        policy = make_policy(allocator, None, table, CLUSTER, self.pool)
        return simulate(trace, self.pool, CLUSTER, policy, table)

    def _evaluate(self) -> None:
        folders = []
        for (suite, workload, load), files in self.runs.items():
            output = self.folder / "evaluated" / suite / workload / f"load{load:g}"
            output.parent.mkdir(parents=True)
            folders.append(str(output))
            options = ["--settings", SETTINGS.model_dump_json(), "--suite", suite, "--workload", workload]
            options += ["--load", f"{load:g}", "--pool", str(self.folder / "pool.parquet")]
            for (method, seed), path in files.items():
                options += ["--run", method, str(seed), str(path)]
            command(evaluate_setting, *options, "--output", str(output))
        command(collect_tables, "--settings-evaluated", *folders, "--output", str(self.tables))

    def judge(self, differences: pd.DataFrame, shaping: pd.DataFrame) -> pd.DataFrame:
        """The verdicts, with prediction errors and the shaping check as given."""
        differences.to_csv(self.tables / "prediction_differences.csv", index=False)
        shaping.to_csv(self.tables / "shaping.csv", index=False)
        claims, losses = self.tables / "claims.csv", self.tables / "losses.csv"
        options = ["--settings", SETTINGS.model_dump_json(), "--tables", str(self.tables)]
        command(judge_claims, *options, "--claims", str(claims), "--losses", str(losses))
        return pd.read_csv(claims, dtype={"holds": str}).set_index("claim")

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables."""
        return pd.read_csv(self.tables / f"{name}.csv", dtype={"train_seed": str})


def command(stage: object, *options: str) -> None:
    """Run a stage's command line in this process."""
    with mock.patch.object(sys, "argv", ["stage", *options]):
        stage.main()  # type: ignore[attr-defined]
