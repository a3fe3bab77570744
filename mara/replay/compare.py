"""Several allocators on the jobs of one trace: how many each completes, and which node ran what.

Allocators that read forecasts get them from a predictor that looks at training curves drawn from the
recorded corpus (`mara.replay.curves`); LARA and its kin read the WLS fit, as in the study. Nothing but the
simulator knows a job's demand.

Intervals are over jobs: jobs are drawn again with what became of them. They say how far the rate depends on
which jobs came, not how another trace would go: the jobs of a trace wait for each other.

Shapes: J jobs, M methods, B resamples.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from mara.allocators.registry import allocator, make_policy
from mara.curves.corpus import Corpus, load_corpus
from mara.errors import InputError
from mara.evaluation.statistics import Interval, percentile_interval
from mara.predictors.registry import make_predictor
from mara.predictors.table import tabulate
from mara.replay.curves import with_curves
from mara.replay.tasks import Replay
from mara.simulator.events import node_slots, record_events
from mara.simulator.simulate import Outcome, Policy, simulate
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace

RESAMPLES = 2000
READ_WLS = ("lara", "lara_deadline")
"""Allocators that fit the WLS law themselves in their papers."""
READY = ("kalman", "wls", "slope_loglog", "slope_semilog", "oracle")
"""Predictors that need no fitting: they can be named."""
MAT = "mat"
"""Name of the transformer, which is not compiled and stands in no registry."""
SHOWN_SLOTS = 150
"""Slots of a Gantt chart."""


@dataclass(frozen=True)
class Run:
    """One allocator on the trace.

    predictor: what it read, empty for none. seconds: of simulation.
    """

    allocator: str
    predictor: str
    outcome: Outcome
    seconds: float


@dataclass(frozen=True)
class Score:
    """What an allocator achieved: completed jobs, their share with its interval, and that less the first's.

    slowdown: mean over completed jobs of the slots from submission to completion over those that the job
    takes on an empty cluster. busy: share of the nodes' slots that were used while there was any job.
    """

    allocator: str
    predictor: str
    completed: int
    rate: Interval
    lead: Interval
    slowdown: float
    busy: float
    seconds: float


class Arena:
    """A trace with all that allocators need on it; curves and forecasts are made when first asked for."""

    def __init__(
        self, replay: Replay, predictor: str = "kalman", seed: int = 0, transformer: Path | None = None
    ) -> None:
        """Take a trace.

        Args:
            replay: the trace.
            predictor: one of ``READY``.
            seed: of the drawn curves, and of policies that draw lots; 0 or more.
            transformer: file of a trained transformer (``policy.pt``), which is what ``mat`` runs.

        Raises:
            InputError: for another predictor or seed.
        """
        if not 0 <= seed < 2**63:
            raise InputError(f"seed {seed}: expected a whole number of 0 or more")
        if predictor not in READY:
            raise InputError(f"predictor {predictor!r}: expected one of {', '.join(READY)}")
        self.replay, self.predictor, self.seed, self.transformer = replay, predictor, seed, transformer
        self._tables: dict[str, ForecastTable] = {}
        self._drawn: tuple[TaskPool, Corpus] | None = None

    def drawn(self) -> tuple[TaskPool, Corpus]:
        """The templates with targets, and their training curves."""
        if self._drawn is None:
            rng = np.random.default_rng(self.seed)
            self._drawn = with_curves(self.replay.pool, load_corpus().of(split="test"), rng)
        return self._drawn

    def forecasts(self, name: str) -> ForecastTable:
        """The forecast table of a predictor."""
        if name not in self._tables:
            pool, curves = self.drawn()
            self._tables[name] = tabulate(make_predictor(name), pool, curves)
        return self._tables[name]

    def policy(self, name: str) -> tuple[Policy, ForecastTable | None, str]:
        """The policy of an allocator with its default weights, its forecasts, and their predictor's name.

        Raises:
            InputError: there is no such allocator.
        """
        kind, cluster = allocator(name), self.replay.cluster
        if name == "laira":
            return make_policy(name, None, None, cluster, *self.drawn()), None, ""
        if not kind.needs_forecasts:
            return make_policy(name, cluster=cluster), None, ""
        predictor = "wls" if name in READ_WLS else self.predictor
        table = self.forecasts(predictor)
        return make_policy(name, None, table, cluster), table, predictor

    def run(self, name: str) -> Run:
        """Simulate an allocator on the whole trace.

        Raises:
            InputError: there is no such allocator, or no file of a transformer for ``mat``.
        """
        if name == MAT:
            return self._run_transformer()
        policy, table, predictor = self.policy(name)
        start = time.perf_counter()
        replay = self.replay
        outcome = simulate(replay.trace, replay.pool, replay.cluster, policy, table, self.seed)
        return Run(name, predictor, outcome, time.perf_counter() - start)

    def _run_transformer(self) -> Run:
        from mara.allocators.mat.policy import MatPolicy, run_policy

        if self.transformer is None:
            raise InputError(f"allocator {MAT}: needs a trained transformer; give its policy.pt")
        policy, table, replay = MatPolicy.load(self.transformer), self.forecasts(self.predictor), self.replay
        start = time.perf_counter()
        outcome = run_policy(policy, replay.trace, replay.pool, replay.cluster, table, self.seed)
        return Run(MAT, self.predictor, outcome, time.perf_counter() - start)

    def first_slots(self, name: str) -> pd.DataFrame:
        """Who ran where in the first ``SHOWN_SLOTS`` slots: columns slot, node, task.

        Later jobs are left out of the simulation: no allocator knows of them yet.
        """
        trace = self.replay.trace
        count = int((trace.arrival < SHOWN_SLOTS).sum())
        early = Trace(
            offset=np.array([0, count], dtype=np.int64),
            template=trace.template[:count],
            arrival=trace.arrival[:count],
            deadline=trace.deadline[:count],
            scored=trace.scored[:count],
            meta=trace.meta,
        )
        pool, cluster = self.replay.pool, self.replay.cluster
        if name == MAT and self.transformer is not None:
            from mara.allocators.mat.log import log_episode
            from mara.allocators.mat.policy import MatPolicy

            transformer, table = MatPolicy.load(self.transformer), self.forecasts(self.predictor)
            slots, _ = log_episode(transformer, early, pool, cluster, table, 0)
        else:
            policy, forecasts, _ = self.policy(name)
            log = record_events(early, pool, cluster, policy, forecasts, seed=self.seed)
            slots = node_slots(log)
        return slots[slots["slot"] < SHOWN_SLOTS]


def scores(replay: Replay, runs: Sequence[Run], level: float = 0.95) -> list[Score]:
    """What each run achieved, with intervals over jobs; the same jobs are drawn for all runs."""
    done = np.stack([run.outcome.completed for run in runs], axis=1)  # (J, M)
    kinds, count = np.unique(done, axis=0, return_counts=True)
    drawn = np.random.default_rng(0).multinomial(len(done), count / len(done), size=RESAMPLES)
    samples = drawn @ kinds.astype(np.float64) / len(done)  # (B, M)
    result = []
    for m, run in enumerate(runs):
        outcome, completed = run.outcome, run.outcome.completed
        rate = float(completed.mean())
        lead = rate - float(done[:, 0].mean())
        slots = outcome.finish[completed] + 1 - outcome.arrival[completed]
        used = {name: float(value.sum()) for name, value in outcome.totals.items()}
        result.append(
            Score(
                allocator=run.allocator,
                predictor=run.predictor,
                completed=int(completed.sum()),
                rate=percentile_interval(rate, samples[:, m], level, len(done)),
                lead=percentile_interval(lead, samples[:, m] - samples[:, 0], level, len(done)),
                slowdown=float((slots / replay.alone[completed]).mean()) if completed.any() else float("nan"),
                busy=used["busy"] / max(used["busy"] + used["idle"] + used["down"], 1.0),
                seconds=run.seconds,
            )
        )
    return result
