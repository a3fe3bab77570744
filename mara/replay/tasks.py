"""Jobs of a cluster trace as tasks of the simulator: slots, demands, deadlines, and templates.

A job that ran for D seconds on k nodes becomes a task with a known demand of D * k node-seconds, counted in
slots of a node of speed 1. Its deadline is the trace's, or submit time + slack * D. Times are rounded to
whole slots; a deadline that leaves time for the job at its own pace still does so in slots.

Tasks of equal demand may share a template, and with it a training curve, so that forecasts for large traces
stay small; their deadlines are their own.

Shapes: J jobs, K templates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mara.errors import InputError
from mara.simulator.cluster import Cluster
from mara.workload.forecast_table import ROWS_MAX
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace
from mara.workload.traces.read import Jobs

ROUND_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400)
"""Slot lengths that are chosen from."""
LONG_JOB_SLOTS = 60
"""Slots that the 90th percentile of the jobs is to take, well inside the horizon of forecasts."""
MOST_SLOTS = 20_000_000
"""A simulation goes slot by slot; a longer trace needs longer slots."""
MOST_NODE_SLOTS = 20_000_000_000
"""So many slots of all nodes together take EDF about 20 minutes."""
FORECAST_ROWS = 60_000
"""About so many (template, units) are forecast; more jobs share templates."""


@dataclass(frozen=True)
class Replay:
    """A trace as one episode.

    trace, pool, cluster: what the simulator takes; task j of the trace is job j of ``jobs``.
    slack: applied to jobs without a deadline. alone: (J,) slots that each task takes on an empty cluster.
    """

    jobs: Jobs
    trace: Trace
    pool: TaskPool
    cluster: Cluster
    slot_seconds: float
    slack: float
    alone: NDArray[np.int64]

    @property
    def demand(self) -> NDArray[np.int64]:
        """(J,) units that each task needs."""
        return self.pool.demand[self.trace.template].astype(np.int64)

    @property
    def hopeless(self) -> int:
        """Jobs that cannot meet their deadlines even on an empty cluster."""
        return int((self.alone > self.trace.deadline - self.trace.arrival).sum())

    @property
    def load(self) -> float:
        """Demand of all jobs over what the nodes could give from the first to the last submission."""
        span = int(self.trace.arrival.max()) + 1
        return float(self.demand.sum() / (span * self.cluster.nodes))

    @property
    def rounding(self) -> float:
        """Relative change of the total work by counting in whole slots."""
        exact = (self.jobs.duration * self.jobs.nodes).sum() / self.slot_seconds
        return float(self.demand.sum() / exact - 1)


def as_replay(
    jobs: Jobs,
    nodes: int,
    slot_seconds: float | None = None,
    slack: float = 2.0,
    max_nodes_per_task: int | None = None,
) -> Replay:
    """Lay a trace out for the simulator.

    Args:
        jobs: with durations.
        nodes: alike nodes of speed 1.
        slot_seconds: length of a slot; None to choose one that suits the durations (1 for traces in slots).
        slack: deadline of jobs without one, as a multiple of their duration after submission.
        max_nodes_per_task: how many nodes may work on a job at the same time, with linear speed-up; None for
            the most that a job of the trace asks for.

    Raises:
        InputError: for settings out of range, and for a trace that spans too many slots.
    """
    if slot_seconds is None:
        slot_seconds = 1.0 if jobs.in_slots else suitable_slot(jobs.duration)
    if not (np.isfinite(slot_seconds) and slot_seconds > 0):
        raise InputError(f"slot of {slot_seconds:g} seconds; expected a length above 0")
    if jobs.in_slots and slot_seconds != 1:
        raise InputError("the trace's times are slots already (column demand); leave the slot's length out")
    if not (np.isfinite(slack) and slack >= 1):
        raise InputError(f"slack of {slack:g}; expected 1 or more (times the duration)")
    if nodes < 1:
        raise InputError(f"{nodes} nodes; expected 1 or more")
    most = min(int(jobs.nodes.max()), nodes) if max_nodes_per_task is None else max_nodes_per_task
    cluster = Cluster(np.ones(nodes), max_nodes_per_task=most)
    asked = jobs.deadline - jobs.submit
    patience = np.where(np.isnan(asked), slack * jobs.duration, asked)
    ends = (jobs.submit - jobs.submit[0] + patience) / slot_seconds
    if ends.max() >= MOST_SLOTS:
        line = int(jobs.line[ends.argmax()])
        raise InputError(
            f"line {line}: its deadline is {ends.max():.3g} slots of {slot_seconds:g} after the first "
            f"submission; at most {MOST_SLOTS:,} can be simulated, choose longer slots"
        )
    if ends.max() * nodes >= MOST_NODE_SLOTS:
        raise InputError(
            f"{ends.max():,.0f} slots of {slot_seconds:g} on {nodes:,} nodes; at most {MOST_NODE_SLOTS:,} "
            "slots of a node can be simulated, choose longer slots or fewer nodes"
        )
    work = jobs.duration * jobs.nodes / slot_seconds
    if work.max() >= MOST_SLOTS:
        line = int(jobs.line[work.argmax()])
        raise InputError(f"line {line}: {work.max():.3g} slots of work; choose longer slots")
    demand = np.maximum(np.rint(work), 1).astype(np.int64)
    alone = -(-demand // most)
    window = np.maximum(np.rint(patience / slot_seconds), 1).astype(np.int64)
    own_pace = -(-demand // np.minimum(jobs.nodes, most))
    window = np.where(
        patience >= jobs.duration * (jobs.nodes / np.minimum(jobs.nodes, most)),
        np.maximum(window, own_pace),
        window,
    )
    arrival = np.floor((jobs.submit - jobs.submit[0]) / slot_seconds).astype(np.int64)
    template, rows = _templates(demand, window)
    count = len(rows)
    names = np.array([f"job/{k}" for k in range(count)])
    pool = TaskPool(
        curve=np.arange(count, dtype=np.int32),
        curve_id=names,
        group=names,
        family=np.full(count, "trace"),
        target=np.ones(count, dtype=np.float32),
        window=window[rows].astype(np.int32),
        demand=demand[rows].astype(np.int32),
        reference_units=demand[rows].astype(np.int32),
        natural={},
    )
    trace = Trace(
        offset=np.array([0, len(jobs)], dtype=np.int64),
        template=template.astype(np.int32),
        arrival=arrival.astype(np.int32),
        deadline=(arrival + window).astype(np.int32),
        scored=np.ones(len(jobs), dtype=bool),
        meta={"process": "trace"},
    )
    return Replay(jobs, trace, pool, cluster, float(slot_seconds), slack, alone)


def suitable_slot(duration: NDArray[np.float64]) -> float:
    """Of the usual lengths the one at which nine jobs in ten take about ``LONG_JOB_SLOTS`` slots or fewer."""
    wanted = max(float(np.quantile(duration, 0.9)) / LONG_JOB_SLOTS, 1e-3)
    usual = np.array(ROUND_SECONDS, dtype=np.float64)
    return float(usual[np.abs(np.log(usual / wanted)).argmin()])


def _templates(
    demand: NDArray[np.int64], window: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Template (J,) of each job, and for each template (K,) the job in the middle of those that share it.

    Jobs share a template only if their demand is the same, and then with those of the nearest windows.
    """
    share = min(1.0, FORECAST_ROWS / float(np.minimum(demand, ROWS_MAX).sum()))
    order = np.lexsort((window, demand))
    _, start, size = np.unique(demand[order], return_index=True, return_counts=True)
    blocks = np.maximum(np.rint(size * share), 1).astype(np.int64)
    rank = np.arange(len(demand)) - np.repeat(start, size)
    block = rank * np.repeat(blocks, size) // np.repeat(size, size)
    first_template = np.concatenate([[0], np.cumsum(blocks)[:-1]])
    in_order = np.repeat(first_template, size) + block
    template = np.empty(len(demand), dtype=np.int64)
    template[order] = in_order
    edges = np.searchsorted(in_order, np.arange(int(blocks.sum()) + 1))
    return template, order[(edges[:-1] + edges[1:] - 1) // 2]
