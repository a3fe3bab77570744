"""The clairvoyant bound against brute force, and above every policy."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import numpy as np
import pytest

from mara.allocators.edf import edf
from mara.errors import InputError
from mara.simulator.clairvoyant import bound, plan_outcome
from mara.simulator.cluster import Cluster
from mara.simulator.simulate import simulate
from tests.simulator.cases import ANYTHING, plain, trace_of
from tests.simulator.test_engine import MIXED, busy_trace


def some_trace():
    trace, pool = busy_trace()
    return trace.select(np.arange(12)), pool


def most_completed(tasks, nodes):
    """Try every choice of tasks in every slot; return the largest number completed."""
    horizon = max((a + w for a, w, _ in tasks), default=0)

    @cache
    def best(slot, need):
        if slot == horizon:
            return 0
        active = [j for j, (a, w, _) in enumerate(tasks) if a <= slot < a + w and need[j] > 0]
        size = min(nodes, len(active))
        top = 0
        for chosen in combinations(active, size):
            after = tuple(left - (j in chosen) for j, left in enumerate(need))
            finished = sum(after[j] == 0 for j in chosen)
            top = max(top, finished + best(slot + 1, after))
        return top

    return best(0, tuple(min(p, 99) for _, _, p in tasks))


def most_completed_by(tasks, speeds, cap):
    """The same for nodes of different speeds, each trying every task, with at most ``cap`` nodes a task."""
    horizon = max((a + w for a, w, _ in tasks), default=0)

    @cache
    def best(slot, need):
        if slot == horizon:
            return 0
        active = [j for j, (a, w, _) in enumerate(tasks) if a <= slot < a + w and need[j] > 0]
        top = 0
        for picks in product([*active, None], repeat=len(speeds)):
            if all(picks.count(j) <= cap for j in active):
                after = list(need)
                for j, speed in zip(picks, speeds, strict=True):
                    if j is not None:
                        after[j] -= speed
                finished = sum(after[j] <= 0 for j in active)
                top = max(top, finished + best(slot + 1, tuple(after)))
        return top

    return best(0, tuple(float(min(p, 99)) for _, _, p in tasks))


def tiny(rng, count):
    episodes = []
    for _ in range(count):
        size = rng.integers(1, 7)
        arrival = np.sort(rng.integers(0, 4, size))
        window, demand = rng.integers(0, 6, size), rng.integers(1, 5, size)
        episodes.append(list(zip(arrival.tolist(), window.tolist(), demand.tolist(), strict=True)))
    return episodes


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_equals_brute_force(nodes):
    episodes = tiny(np.random.default_rng(nodes), 60)
    trace, pool = trace_of(episodes)
    found = bound(trace, pool, plain(nodes))
    expected = [most_completed(tuple(tasks), nodes) for tasks in episodes]
    assert found.upper.tolist() == found.reached.tolist() == expected
    assert found.exact
    assert found.gap == 0


@pytest.mark.parametrize(("speeds", "cap"), [((0.5, 2.0), 1), ((1.0, 1.0, 2.0), 1), ((1.0, 1.0, 1.0), 2)])
def test_bounds_brute_force_closely_on_other_clusters(speeds, cap):
    """Nodes shared at any instant can do a little more than whole slots, never less."""
    episodes = [tasks[:4] for tasks in tiny(np.random.default_rng(7), 40)]
    trace, pool = trace_of(episodes)
    found = bound(trace, pool, Cluster(np.array(speeds), max_nodes_per_task=cap))
    best = np.array([most_completed_by(tuple(tasks), speeds, cap) for tasks in episodes])
    assert not found.exact
    assert np.all(found.upper >= best)
    assert found.upper.sum() <= best.sum() * 1.1


def test_slow_nodes_need_whole_slots():
    """Three units at speed 2 take two slots, so one node completes two such tasks in four slots."""
    trace, pool = trace_of([[(0, 4, 3), (0, 4, 3), (0, 4, 3)]])
    assert bound(trace, pool, Cluster(np.array([2.0]))).upper.tolist() == [2]


@pytest.mark.parametrize("cluster", [plain(3), MIXED, Cluster(np.ones(4), switching_cost=1.0)])
def test_no_policy_passes_it(cluster):
    trace, pool = some_trace()
    found = bound(trace, pool, cluster, "all")
    for policy in (edf(), ANYTHING):
        reached = simulate(trace, pool, cluster, policy).completed_per_episode(scored=False)
        assert np.all(reached <= found.upper)
    assert found.exact == (cluster.nodes == 3)


def test_scored_tasks_only():
    trace, pool = some_trace()
    scored = np.arange(len(trace)) % 3 == 0
    part = type(trace)(trace.offset, trace.template, trace.arrival, trace.deadline, scored, {})
    found, whole = bound(part, pool, plain(2)), bound(part, pool, plain(2), "all")
    assert found.arrived.sum() == scored.sum()
    assert whole.arrived.sum() == len(trace)
    assert not found.accepted[~scored].any()
    assert np.all(np.bincount(trace.episode[whole.accepted & scored], minlength=12) <= found.upper)


def test_the_plan_as_an_outcome():
    trace, pool = some_trace()
    found = bound(trace, pool, plain(2), "all")
    outcome = plan_outcome(trace, pool, plain(2), found)
    done = outcome.completed
    np.testing.assert_array_equal(outcome.completed_per_episode(scored=False), found.reached)
    assert np.all(outcome.first_served[done] >= trace.arrival[done])
    assert np.all(outcome.finish[done] < trace.deadline[done])
    assert np.all(outcome.finish[done] - outcome.first_served[done] + 1 >= pool.demand[trace.template[done]])


def test_processes_do_not_change_it():
    trace, pool = some_trace()
    alone = bound(trace, pool, plain(2))
    np.testing.assert_array_equal(bound(trace, pool, plain(2), workers=2).accepted, alone.accepted)


def test_an_unknown_objective():
    trace, pool = some_trace()
    with pytest.raises(InputError, match="'scored' or 'all'"):
        bound(trace, pool, plain(2), "most")
