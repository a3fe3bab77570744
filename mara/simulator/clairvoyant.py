"""The clairvoyant optimum: how many tasks could be completed if everything were known beforehand.

Legend: one episode of n tasks that can be completed at all, K intervals between successive arrivals and
deadlines, Y pairs of a task and an interval inside its window, C classes of nodes of one speed.

With M alike nodes, one node a task at a time and free pre-emption, a set of tasks can be completed if
and only if units y[j, k] exist with sum_k y[j, k] = work[j], y[j, k] <= length[k] and
sum_j y[j, k] <= M * length[k]: inside an interval McNaughton's wrap-around rule (Management Science 6(1),
1959) lays them out in whole slots, and for a given set whole-numbered y exist because the constraints are
a network flow. The optimum is therefore a mixed-integer programme with one binary x[j] a task.

Its linear relaxation is nearly whole-numbered: most episodes are settled by rounding it, the others by
branch and bound (HiGHS). Both sides are kept, so the gap is certified up to the solver's tolerance.

Scope: exact for alike nodes, node cap 1, no switching cost and no failures. With several speeds y[j, k, c]
is the time on nodes of class c, work is in units, and the cap and the best rate of a task bound what it
gets; nodes may then be shared at any instant, which is more than whole slots allow. Switching costs and
failures are left out. The optimum is then an upper bound of what can be completed, marked by
``exact = False``.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from mara.errors import InputError
from mara.simulator.cluster import Cluster
from mara.simulator.engine import ROUNDING
from mara.simulator.problem import check_trace
from mara.simulator.simulate import TOTALS, Outcome
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace

TOLERANCE = 1e-6
LARGEST_PROGRAMME = 300_000
"""Episodes with more task-interval pairs get the bound of the linear relaxation only."""
LARGEST_ORDER = 3_000
"""With more tasks than this, dominance between them is not used."""


@dataclass(frozen=True)
class Bound:
    """The optimum of each of E episodes, between what was reached and what cannot be passed."""

    reached: np.ndarray
    """(E,) int64: tasks that the plan found completes."""
    upper: np.ndarray
    """(E,) int64: no policy completes more."""
    arrived: np.ndarray
    """(E,) int64: tasks that the objective counts."""
    accepted: np.ndarray
    """(T,) bool: the tasks of the plan, in the trace's order."""
    first: np.ndarray
    """(T,) int32: first slot of the first interval in which the plan trains the task, -1 if it does not."""
    last: np.ndarray
    """(T,) int32: last slot of the last such interval, -1 if none."""
    exact: bool
    """Whether the plan can be carried out on the cluster; else only ``upper`` means anything."""

    @property
    def gap(self) -> float:
        """Return (upper - reached) / upper over all episodes together; 0 when the optimum is proved."""
        return float((self.upper.sum() - self.reached.sum()) / max(int(self.upper.sum()), 1))

    @property
    def completion_rate(self) -> float:
        """Return the upper bound of completed / arrived."""
        return float(self.upper.sum() / max(int(self.arrived.sum()), 1))


def bound(
    trace: Trace,
    pool: TaskPool,
    cluster: Cluster,
    objective: Literal["scored", "all"] = "scored",
    time_limit: float = 60.0,
    workers: int = 1,
) -> Bound:
    """Return the clairvoyant optimum of every episode.

    Args:
        trace: the episodes.
        pool: the tasks' templates; demand and window are known to the clairvoyant.
        cluster: see the scope above.
        objective: ``"scored"`` counts scored tasks only and is free to skip the others: no policy has a
            higher completion rate over scored tasks, and none that must not know which tasks are scored
            need come near it at the edges of the scored span. ``"all"`` counts every task that arrives:
            no policy completes more of them.
        time_limit: seconds of branch and bound for an episode; then the gap stays open, and is stated.
        workers: processes that share the episodes. The result does not depend on it unless time runs out.

    Raises:
        InputError: for a trace that cannot be simulated.
    """
    check_trace(trace, pool)
    if objective not in ("scored", "all"):
        raise InputError(f"clairvoyant: objective is {objective!r}; it must be 'scored' or 'all'")
    nodes, exact = _nodes(cluster)
    counted = np.asarray(trace.scored, np.bool_) | (objective == "all")
    demand = pool.demand[trace.template]
    work = np.ceil((demand - ROUNDING) / cluster.speeds[0]) if exact else demand.astype(float)
    wanted = np.flatnonzero(counted & (work <= nodes.best * (trace.deadline - trace.arrival) + ROUNDING))
    edges = np.searchsorted(wanted, trace.offset)
    parts = [wanted[edges[e] : edges[e + 1]] for e in range(len(edges) - 1)]
    arrival, deadline = np.asarray(trace.arrival, np.int64), np.asarray(trace.deadline, np.int64)
    jobs = [_Job(arrival[part], deadline[part], work[part], nodes, time_limit) for part in parts]
    if workers == 1:
        plans = [_solve(job) for job in jobs]
    else:
        with ProcessPoolExecutor(workers) as executor:
            plans = list(executor.map(_solve, jobs, chunksize=4))
    tasks = len(trace.template)
    accepted, first, last = np.zeros(tasks, bool), np.full(tasks, -1, np.int32), np.full(tasks, -1, np.int32)
    for part, plan in zip(parts, plans, strict=True):
        accepted[part], first[part], last[part] = plan.accepted, plan.first, plan.last
    return Bound(
        reached=np.array([plan.accepted.sum() for plan in plans], np.int64),
        upper=np.array([plan.upper for plan in plans], np.int64),
        arrived=np.add.reduceat(np.append(counted, False), trace.offset[:-1]) * (np.diff(trace.offset) > 0),
        accepted=accepted,
        first=first,
        last=last,
        exact=exact,
    )


def plan_outcome(trace: Trace, pool: TaskPool, cluster: Cluster, found: Bound) -> Outcome:
    """Return the plan as the record of tasks that a policy leaves, for tables that compare both.

    ``first_served`` and ``finish`` are the edges of the intervals in which the plan trains a task: it is
    served no earlier and completed no later. ``idle`` counts up to the last deadline.
    """
    episode = trace.episode
    units = np.where(found.accepted, pool.demand[trace.template], 0)
    slots = np.zeros(len(trace.offset) - 1)
    np.maximum.at(slots, episode, trace.deadline)
    totals: dict[str, np.ndarray] = {name: np.zeros(slots.size) for name in TOTALS}
    totals["busy"] = np.bincount(episode, units / cluster.speeds.mean(), slots.size)
    totals["idle"] = slots * cluster.nodes - totals["busy"]
    totals["slots"] = slots
    return Outcome(
        episode=episode,
        template=trace.template,
        arrival=trace.arrival,
        deadline=trace.deadline,
        scored=trace.scored,
        completed=found.accepted,
        finish=found.last,
        first_served=found.first,
        units=units.astype(np.float32),
        totals=totals,
    )


class _Nodes(NamedTuple):
    """The nodes by speed; for the exact case in slots (speed 1), else in units."""

    speed: np.ndarray
    """(C,) float: the speed of each class."""
    size: np.ndarray
    """(C,) int: its nodes."""
    cap: int
    """Nodes that a task may have."""
    best: float
    """The best rate that a task can have."""


class _Job(NamedTuple):
    """One episode: tasks with their work, the nodes, and the seconds that branch and bound may take."""

    arrival: np.ndarray
    deadline: np.ndarray
    work: np.ndarray
    nodes: _Nodes
    time_limit: float


class _Plan(NamedTuple):
    """What was found for one episode."""

    accepted: np.ndarray
    upper: int
    first: np.ndarray
    last: np.ndarray


class _Programme(NamedTuple):
    """The programme's data; variables are x (n,) then y (Y, C)."""

    constraints: list[LinearConstraint]
    upper: np.ndarray
    """(n + Y C,) upper bounds of the variables."""
    task: np.ndarray
    """(Y C,) int: task of each variable y."""
    begin: np.ndarray
    """(Y C,) int: first slot of its interval."""
    end: np.ndarray
    """(Y C,) int: the slot after its last."""


def _nodes(cluster: Cluster) -> tuple[_Nodes, bool]:
    """Group the nodes by speed, and say whether the programme is exact for them."""
    speeds = np.sort(cluster.speeds)[::-1]
    plain = cluster.max_nodes_per_task == 1 and cluster.switching_cost == 0 and cluster.failure_rate == 0
    if plain and np.all(speeds == speeds[0]):
        return _Nodes(np.ones(1), np.array([speeds.size]), 1, 1.0), True
    speed, size = np.unique(speeds, return_counts=True)
    crew = np.arange(1, cluster.max_nodes_per_task + 1)
    best = np.max(np.cumsum(speeds)[: crew.size] * crew ** (cluster.speedup_exponent - 1.0))
    return _Nodes(speed, size, cluster.max_nodes_per_task, float(best)), False


def _solve(job: _Job) -> _Plan:
    """Return a plan and an upper bound for one episode; equal where time allows."""
    n = job.work.size
    nothing = np.full(n, -1, np.int32)
    if n == 0:
        return _Plan(np.zeros(0, bool), 0, nothing, nothing)
    programme = _programme(job)
    relaxed = _optimise(programme, n)
    upper = int(np.floor(-relaxed.fun + TOLERANCE))
    best = relaxed.x
    sure = relaxed.x[:n] > 1 - TOLERANCE
    if sure.sum() < upper and programme.task.size <= LARGEST_PROGRAMME:
        near = _optimise(programme, n, whole=True, lower=sure, time_limit=job.time_limit)
        best = best if near.x is None else near.x
        if (best[:n] > 1 - TOLERANCE).sum() < upper:
            full = _optimise(programme, n, whole=True, time_limit=job.time_limit)
            best = best if full.x is None or full.x[:n].sum() < best[:n].sum() else full.x
            proved = full.mip_dual_bound if full.mip_dual_bound is not None else -np.inf
            upper = min(upper, int(np.floor(-proved + TOLERANCE))) if np.isfinite(proved) else upper
    accepted = best[:n] > 1 - TOLERANCE
    used = (best[n:] > TOLERANCE) & accepted[programme.task]
    first, last = np.full(n, np.iinfo(np.int32).max, np.int32), nothing
    np.minimum.at(first, programme.task[used], programme.begin[used])
    np.maximum.at(last, programme.task[used], programme.end[used] - 1)
    return _Plan(accepted, upper, np.where(last >= 0, first, -1).astype(np.int32), last)


def _optimise(
    programme: _Programme,
    n: int,
    whole: bool = False,
    lower: np.ndarray | None = None,
    time_limit: float = np.inf,
) -> Any:
    """Maximise sum(x), with x whole or relaxed, and x >= lower."""
    count = programme.upper.size
    floor, gain, integrality = np.zeros(count), np.zeros(count), np.zeros(count)
    gain[:n], integrality[:n] = -1, whole
    if lower is not None:
        floor[:n] = lower
    options = {} if np.isinf(time_limit) else {"time_limit": time_limit, "mip_rel_gap": 0.0}
    result = milp(
        gain,
        constraints=programme.constraints,
        bounds=Bounds(floor, programme.upper),
        integrality=integrality,
        options=options,
    )
    if result.x is None and not whole:
        raise RuntimeError(f"the linear relaxation was not solved: {result.message}")
    return result


def _programme(job: _Job) -> _Programme:
    """Write the constraints of one episode as sparse matrices."""
    n, nodes, classes = job.work.size, job.nodes, job.nodes.speed.size
    times = np.unique(np.concatenate([job.arrival, job.deadline]))
    length = np.diff(times).astype(float)
    low, high = np.searchsorted(times, job.arrival), np.searchsorted(times, job.deadline)
    inside = high - low
    pairs = int(inside.sum())
    interval = np.arange(pairs) - np.repeat(np.cumsum(inside) - inside, inside) + np.repeat(low, inside)
    task, interval = np.repeat(np.arange(n), inside * classes), np.repeat(interval, classes)
    kind = np.tile(np.arange(classes), pairs)
    column = n + np.arange(task.size)
    width = n + task.size

    def rows(row: np.ndarray, value: np.ndarray, most: np.ndarray) -> LinearConstraint:
        """Sums of ``value`` y over the variables of each row, at most ``most``."""
        return LinearConstraint(sparse.csr_array((value, (row, column)), (most.size, width)), -np.inf, most)

    work = sparse.csr_array((-job.work, (np.arange(n), np.arange(n))), (n, width))
    trained = sparse.csr_array((nodes.speed[kind], (task, column)), (n, width))
    ones, pair = np.ones(task.size), np.repeat(np.arange(pairs), classes)
    constraints = [
        LinearConstraint(work + trained, 0, 0),
        rows(interval * classes + kind, ones, np.outer(length, nodes.size).ravel()),
    ]
    better, worse = _dominance(job)
    if better.size:
        sign, order = np.repeat([1.0, -1.0], better.size), np.tile(np.arange(better.size), 2)
        places = (order, np.concatenate([better, worse]))
        constraints.append(
            LinearConstraint(sparse.csr_array((sign, places), (better.size, width)), 0, np.inf)
        )
    if classes > 1:
        constraints.append(rows(pair, ones, nodes.cap * length[interval[::classes]]))
    if nodes.cap > 1:
        constraints.append(rows(pair, nodes.speed[kind], nodes.best * length[interval[::classes]]))
    most = np.minimum(nodes.cap, nodes.size)[kind] * length[interval]
    return _Programme(
        constraints, np.concatenate([np.ones(n), most]), task, times[interval], times[interval + 1]
    )


def _dominance(job: _Job) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs (i, j) where x[i] >= x[j] loses nothing: no more work, and a window that contains j's.

    In a plan with j but not i, i can take j's place. Pairs that follow from others are left out.
    """
    a, d, w = job.arrival, job.deadline, job.work
    if a.size > LARGEST_ORDER:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    over = (a[:, None] <= a) & (d[:, None] >= d) & (w[:, None] <= w)
    order = np.arange(a.size)
    over &= ~over.T | (order[:, None] < order)
    np.fill_diagonal(over, False)
    step = over.astype(np.float32)
    better, worse = np.nonzero(over & ~(step @ step > 0))
    return better, worse
