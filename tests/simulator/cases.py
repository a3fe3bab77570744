"""Small random problems for the simulator's tests, and a policy that tries everything legal."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from mara.curves.smoothing import NEVER
from mara.simulator.cluster import Cluster
from mara.simulator.engine import run
from mara.simulator.jit import jit_lean
from mara.simulator.noise import uniform
from mara.simulator.simulate import Policy
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


def pool_of(demand, window=None) -> TaskPool:
    """A pool with these demands; what the simulator does not read is blank."""
    demand = np.asarray(demand, np.int32)
    window = np.full(demand.size, 10, np.int32) if window is None else np.asarray(window, np.int32)
    blank = np.full(demand.size, "x")
    return TaskPool(
        curve=np.zeros(demand.size, np.int32),
        curve_id=blank,
        group=blank,
        family=blank,
        target=np.ones(demand.size, np.float32),
        window=window,
        demand=demand,
        reference_units=demand,
        natural={},
    )


def trace_of(episodes) -> tuple[Trace, TaskPool]:
    """A trace and a pool from episodes of (arrival, window, demand), each task its own template."""
    flat = [task for episode in episodes for task in episode]
    arrival = np.array([a for a, _, _ in flat], np.int32)
    window = np.array([w for _, w, _ in flat], np.int32)
    offset = np.concatenate([[0], np.cumsum([len(e) for e in episodes])]).astype(np.int64)
    template = np.arange(len(flat), dtype=np.int32)
    trace = Trace(offset, template, arrival, arrival + window, np.ones(len(flat), bool), {})
    return trace, pool_of([d for _, _, d in flat], window)


def plain(nodes: int) -> Cluster:
    """Alike nodes, free switching, one node a task."""
    return Cluster(np.ones(nodes))


tasks = st.tuples(
    st.integers(0, 8), st.integers(0, 8), st.one_of(st.integers(1, 6), st.just(NEVER), st.just(1))
)
episodes = st.lists(
    st.lists(tasks, max_size=9).map(lambda e: sorted(e, key=lambda task: task[0])), min_size=1, max_size=3
).filter(any)


@st.composite
def clusters(draw) -> Cluster:
    """Any cluster of up to four nodes."""
    speeds = draw(st.lists(st.sampled_from([0.3, 0.5, 1.0, 1.0, 2.0]), min_size=1, max_size=4))
    return Cluster(
        speeds=np.array(speeds),
        max_nodes_per_task=draw(st.integers(1, len(speeds))),
        speedup_exponent=draw(st.sampled_from([1.0, 0.7])),
        switching_cost=draw(st.sampled_from([0.0, 0.0, 0.3, 1.0, 2.5])),
        failure_rate=draw(st.sampled_from([0.0, 0.0, 0.3])),
        repair_slots=draw(st.sampled_from([1.0, 3.0])),
    )


@jit_lean
def allocate_anything(view, params, memory, assignment):  # type: ignore[no-untyped-def]
    """Each working node idles or takes any task that has a seat left, by lot."""
    n = view.active.shape[0]
    for node in range(assignment.shape[0]):
        if view.up[node]:
            pick = int(uniform(view.seed, view.slot, 1000 + node) * (n + 1)) - 1
            taken = 0
            for other in range(node):
                taken += assignment[other] == pick
            if taken < view.max_nodes:
                assignment[node] = pick


@jit_lean
def run_anything(problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    return run(allocate_anything, problem, state, ledger, params, first, last)


ANYTHING = Policy("anything", allocate_anything, run_anything)
