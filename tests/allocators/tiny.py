"""Tiny problems whose schedules can be worked out by hand, for the allocators' tests.

A task is (arrival, deadline, demand); each gets a template of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mara.allocators.registry import make_policy
from mara.config.base import Section
from mara.curves.smoothing import NEVER
from mara.simulator.cluster import Cluster
from mara.simulator.simulate import Outcome, simulate
from mara.workload.forecast_table import ForecastTable, row_offsets
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace

HORIZON = 120
Tasks = Sequence[tuple[int, int, int]]


def pool_of(tasks: Tasks) -> TaskPool:
    count = len(tasks)
    name = np.array([f"c{k}" for k in range(count)])
    return TaskPool(
        curve=np.arange(count, dtype=np.int32),
        curve_id=name,
        group=name,
        family=name,
        target=np.full(count, 0.5, np.float32),
        window=np.array([d - a for a, d, _ in tasks], np.int32),
        demand=np.array([n for _, _, n in tasks], np.int32),
        reference_units=np.ones(count, np.int32),
        natural={},
    )


def trace_of(tasks: Tasks) -> Trace:
    arrival = np.array([a for a, _, _ in tasks], np.int32)
    deadline = np.array([d for _, d, _ in tasks], np.int32)
    count = len(tasks)
    return Trace(
        np.array([0, count]), np.arange(count, dtype=np.int32), arrival, deadline, np.ones(count, bool), {}
    )


def oracle(pool: TaskPool) -> ForecastTable:
    """True remaining demands, as steps."""
    offset = row_offsets(pool.demand)
    template = np.repeat(np.arange(len(pool)), np.diff(offset))
    units = np.arange(offset[-1]) - offset[template]
    remaining = np.where(pool.demand[template] == NEVER, np.inf, pool.demand[template] - units.astype(float))
    cdf = (np.arange(HORIZON + 1) >= remaining[:, None]).astype(np.float32)
    return ForecastTable("oracle", offset, cdf, remaining.astype(np.float32))


def believed(pool: TaskPool, cdf: np.ndarray) -> ForecastTable:
    """The same distribution of the *total* demand for every template, conditioned on the units trained.

    ``cdf`` (J, H+1): P(demand <= b); rows beyond its support keep the last distribution.
    """
    offset = row_offsets(pool.demand)
    rows = []
    for j in range(len(pool)):
        for u in range(offset[j + 1] - offset[j]):
            done = cdf[j, min(u, HORIZON)]
            shifted = np.concatenate([cdf[j, u:], np.full(u, cdf[j, -1])])
            rows.append(np.clip((shifted - done) / max(1 - done, 1e-9), 0, 1))
    table = np.array(rows, np.float32)
    reached = table >= 0.5
    median = np.where(reached[:, -1], reached.argmax(axis=1), np.inf)
    return ForecastTable("believed", offset, table, median.astype(np.float32))


def cluster(nodes: int = 1, **rules: float) -> Cluster:
    return Cluster(speeds=np.ones(nodes), **rules)  # type: ignore[arg-type]


def play(
    name: str,
    tasks: Tasks,
    machine: Cluster | None = None,
    forecasts: ForecastTable | None = None,
    weights: Section | None = None,
) -> Outcome:
    """One episode with an allocator on true remaining demands, unless told otherwise."""
    pool = pool_of(tasks)
    machine = machine or cluster()
    forecasts = forecasts or oracle(pool)
    return simulate(trace_of(tasks), pool, machine, make_policy(name, weights, forecasts, machine), forecasts)


def finishes(outcome: Outcome) -> list[int]:
    """Slot in which each task was completed, -1 if missed."""
    return outcome.finish.tolist()
