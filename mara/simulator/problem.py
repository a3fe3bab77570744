"""From trace, pool, cluster and forecasts to what the engine runs on, with everything checked.

Legend: E episodes, T tasks of all episodes, J templates, M nodes, R forecast rows, H horizon.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mara.errors import InputError
from mara.simulator.cluster import Cluster
from mara.simulator.engine import Ledger, Problem
from mara.simulator.jit import jit
from mara.simulator.noise import scramble
from mara.workload.forecast_table import ForecastTable, row_offsets
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


class Prepared(NamedTuple):
    """A checked problem and what is needed to run it."""

    problem: Problem
    order: np.ndarray
    """(T,) int64: the trace's task at each place of the problem, which is sorted by arrival."""
    width: int
    """The most tasks ever active at once in one episode."""


def prepare(
    trace: Trace,
    pool: TaskPool,
    cluster: Cluster,
    forecasts: ForecastTable | None = None,
    table: np.ndarray | None = None,
    seed: int = 0,
) -> Prepared:
    """Check the inputs and lay them out for the engine.

    Arrivals out of order are accepted: inside an episode tasks are sorted by arrival, ties in the given
    order, and results come back in the given order. Each episode's seed is a hash of ``seed`` and of its
    tasks, so an episode plays alike whichever others it is simulated with.

    Raises:
        InputError: for a trace without tasks; a time that is negative, not finite or not whole; a
            deadline before its arrival; a template that the pool lacks; and forecasts or a policy's
            table whose rows are not those of the pool.
    """
    check_trace(trace, pool)
    arrival = np.asarray(trace.arrival)
    episode = np.repeat(np.arange(len(trace.offset) - 1), np.diff(trace.offset))
    order = np.lexsort((np.arange(arrival.size), arrival, episode))
    offset, template = np.asarray(trace.offset, dtype=np.int64), np.asarray(trace.template)[order]
    first_row = row_offsets(pool.demand)
    _check_rows(first_row, forecasts, table)
    arrival = arrival[order].astype(np.int32)
    deadline = np.asarray(trace.deadline)[order].astype(np.int32)
    rules = (
        cluster.speedup_exponent,
        cluster.switching_cost,
        cluster.failure_rate,
        1.0 / cluster.repair_slots,
        cluster.max_nodes_per_task,
    )
    problem = Problem(
        offset=offset,
        arrival=arrival,
        deadline=deadline,
        demand=np.asarray(pool.demand, dtype=np.int32)[template],
        template=template.astype(np.int32),
        row0=first_row[template],
        rows=np.diff(first_row)[template].astype(np.int32),
        seed=_episode_seeds(np.uint64(seed), offset, template.astype(np.int64), arrival, deadline),
        speed=cluster.speeds,
        fastest=np.argsort(-cluster.speeds, kind="stable"),
        rules=np.array(rules, dtype=np.float64),
        cdf=np.zeros((1, 1), np.float32) if forecasts is None else _writable(forecasts.cdf),
        point=np.zeros(1, np.float32) if forecasts is None else _writable(forecasts.point),
        table=np.zeros((1, 1), np.float32) if table is None else _writable(table),
    )
    return Prepared(problem, order, _most_active(episode, arrival, deadline))


def new_ledger(problem: Problem) -> Ledger:
    """Return an empty ledger: everything missed, nothing served."""
    tasks, episodes = problem.arrival.size, problem.offset.size - 1
    return Ledger(
        completed=np.zeros(tasks, np.bool_),
        finish=np.full(tasks, -1, np.int32),
        first_served=np.full(tasks, -1, np.int32),
        units=np.zeros(tasks, np.float64),
        position=np.full(tasks, -1, np.int32),
        total=np.zeros((episodes, 6), np.float64),
    )


def check_trace(trace: Trace, pool: TaskPool) -> None:
    """Refuse a trace that cannot be simulated; see :func:`prepare`."""
    offset, template = np.asarray(trace.offset), np.asarray(trace.template)
    arrival, deadline = np.asarray(trace.arrival), np.asarray(trace.deadline)
    if template.size == 0:
        raise InputError("trace: it has no tasks; give at least one")
    if offset[0] != 0 or offset[-1] != template.size or np.any(np.diff(offset) < 0):
        raise InputError(
            f"trace: offset must rise from 0 to the number of tasks, {template.size}; "
            "as it is, a task would belong to two episodes or to none"
        )
    for name, time in (("arrival", arrival), ("deadline", deadline)):
        bad = np.flatnonzero(~(np.isfinite(time) & (time >= 0) & (time == np.floor(time))))
        if bad.size:
            raise InputError(f"trace: task {bad[0]} has {name} {time[bad[0]]}; it must be a whole slot >= 0")
        if time.max() > np.iinfo(np.int32).max // 2:
            raise InputError(f"trace: {name} {time.max()} is past the last slot that can be counted")
    late = np.flatnonzero(deadline < arrival)
    if late.size:
        k = late[0]
        raise InputError(f"trace: task {k} has deadline {deadline[k]} before its arrival {arrival[k]}")
    strange = np.flatnonzero((template < 0) | (template >= pool.demand.size))
    if strange.size:
        k = strange[0]
        raise InputError(
            f"trace: task {k} has template {template[k]}, but the pool has 0..{pool.demand.size - 1}; "
            "use the pool that the trace was drawn from"
        )


def _check_rows(first_row: np.ndarray, forecasts: ForecastTable | None, table: np.ndarray | None) -> None:
    """Refuse forecasts or a policy's table that do not belong to the pool."""
    templates, rows = first_row.size - 1, int(first_row[-1])
    if forecasts is not None and not np.array_equal(forecasts.offset, first_row):
        have = forecasts.offset.size - 1
        if have < templates:
            wrong = f"lacks template {have} (it has {have} templates, the pool {templates})"
        elif have > templates:
            wrong = f"has {have} templates, the pool {templates}"
        else:
            first = np.flatnonzero(np.diff(forecasts.offset) != np.diff(first_row))[0]
            wrong = f"lacks the rows of template {first}"
        raise InputError(f"forecasts of {forecasts.predictor}: the table {wrong}; make it from this pool")
    if table is not None and table.shape[0] != rows:
        raise InputError(f"policy: its table has {table.shape[0]} rows, not the {rows} of this pool")


def _writable(array: np.ndarray) -> np.ndarray:
    """Return it as C-ordered, writable float32, the one type that the engine is compiled for."""
    return np.require(array, dtype=np.float32, requirements=("C", "W"))


def _most_active(episode: np.ndarray, arrival: np.ndarray, deadline: np.ndarray) -> int:
    """Return an upper bound of the tasks active at once, attained if none is completed early."""
    span = np.int64(deadline.max()) + 1
    come = episode * span + arrival
    gone = np.sort(episode * span + deadline)
    inside = np.arange(1, come.size + 1) - np.searchsorted(gone, come, side="right")
    return max(int(inside.max()), 1)


@jit
def _episode_seeds(
    seed: np.uint64, offset: np.ndarray, template: np.ndarray, arrival: np.ndarray, deadline: np.ndarray
) -> np.ndarray:
    """Hash each episode's tasks, in order, with the seed: (E,) uint64."""
    seeds = np.empty(offset.size - 1, dtype=np.uint64)
    for episode in range(seeds.size):
        word = scramble(np.uint64(seed))
        for task in range(offset[episode], offset[episode + 1]):
            word = scramble(word ^ np.uint64(template[task]))
            word = scramble(word ^ (np.uint64(arrival[task]) << np.uint64(32)) ^ np.uint64(deadline[task]))
        seeds[episode] = word
    return seeds
