"""The engine against the slow reference, bit for bit, and what must hold whatever is simulated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mara.allocators.edf import edf
from mara.simulator.batch import BatchSimulator
from mara.simulator.cluster import Cluster
from mara.simulator.engine import run
from mara.simulator.jit import jit_lean
from mara.simulator.problem import prepare
from mara.simulator.simulate import Outcome, Policy, PolicyError, simulate
from tests.simulator import reference
from tests.simulator.cases import ANYTHING, allocate_anything, clusters, episodes, plain, pool_of, trace_of

NEVER = np.iinfo(np.int32).max


def anything(view):
    assignment = np.full(view.speed.size, -1, np.int32)
    allocate_anything.py_func(view, None, None, assignment)
    return assignment.tolist()


def replay(trace, pool, cluster, seed, choose):
    """Play every episode with the reference."""
    seeds = prepare(trace, pool, cluster, seed=seed).problem.seed
    results = []
    for e, seed_of_episode in enumerate(seeds):
        span = range(trace.offset[e], trace.offset[e + 1])
        tasks = [
            reference.Task(k - span.start, int(trace.arrival[k]), int(trace.deadline[k]), int(pool.demand[k]))
            for k in span
        ]
        results.append(reference.play(tasks, cluster, int(seed_of_episode), choose))
    return results


def assert_same(outcome: Outcome, results) -> None:
    tasks = [task for result in results for task in result.tasks]
    assert outcome.completed.tolist() == [task.finish >= 0 for task in tasks]
    assert outcome.finish.tolist() == [task.finish for task in tasks]
    assert outcome.first_served.tolist() == [task.first_served for task in tasks]
    assert outcome.units.tolist() == [np.float32(task.units) for task in tasks]
    for name in ("busy", "idle", "down", "set_up", "switches", "slots"):
        assert outcome.totals[name].tolist() == [getattr(result, name) for result in results], name


CHOOSE = {"edf": (edf(), reference.edf), "anything": (ANYTHING, anything)}


@pytest.mark.parametrize("name", CHOOSE)
@settings(max_examples=200, deadline=None)
@given(drawn=episodes, cluster=clusters(), seed=st.integers(0, 2**32))
def test_agrees_with_the_reference(name, drawn, cluster, seed):
    policy, choose = CHOOSE[name]
    trace, pool = trace_of(drawn)
    assert_same(simulate(trace, pool, cluster, policy, seed=seed), replay(trace, pool, cluster, seed, choose))


@pytest.mark.parametrize("name", CHOOSE)
@settings(max_examples=60, deadline=None)
@given(cluster=clusters(), seed=st.integers(0, 2**32))
def test_agrees_with_the_reference_on_crowds(name, cluster, seed):
    """Thousands of episodes, twenty an example, where many tasks compete."""
    policy, choose = CHOOSE[name]
    trace, pool = trace_of(crowd(np.random.default_rng(seed), 20))
    assert_same(simulate(trace, pool, cluster, policy, seed=seed), replay(trace, pool, cluster, seed, choose))


def crowd(rng, count):
    """Episodes of up to 12 tasks in few slots, with ties, unreachable tasks and tasks without a slot."""
    drawn = []
    for size in rng.integers(0, 13, count):
        arrival, window = np.sort(rng.integers(0, 8, size)), rng.integers(0, 9, size)
        demand = np.where(rng.random(size) < 0.1, NEVER, rng.integers(1, 7, size))
        drawn.append(list(zip(arrival.tolist(), window.tolist(), demand.tolist(), strict=True)))
    return [*drawn, [(0, 1, 1)]]


def busy_trace(count=300, seed=0):
    """Sixty overloaded episodes with ties, unreachable tasks and tasks without a slot."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(60):
        arrival = np.sort(rng.integers(0, 80, count // 6))
        window, demand = rng.integers(0, 40, arrival.size), rng.integers(1, 30, arrival.size)
        demand = np.where(rng.random(arrival.size) < 0.1, NEVER, demand)
        drawn.append(list(zip(arrival.tolist(), window.tolist(), demand.tolist(), strict=True)))
    return trace_of(drawn)


MIXED = Cluster(np.array([0.5, 1.0, 2.0, 1.0]), 2, 0.7, 0.4, 0.05, 4.0)


def fields(outcome: Outcome):
    columns = {k: v for k, v in vars(outcome).items() if k not in ("totals", "episode")}
    return columns | outcome.totals


def test_an_episode_does_not_depend_on_its_company_or_on_threads():
    trace, pool = busy_trace()
    whole = fields(simulate(trace, pool, MIXED, ANYTHING, seed=5))
    for k, v in fields(simulate(trace, pool, MIXED, ANYTHING, seed=5, threads=3)).items():
        np.testing.assert_array_equal(v, whole[k], k)
    order = np.array([17, 3, 59, 3])
    some = trace.select(order)
    part = fields(simulate(some, pool, MIXED, ANYTHING, seed=5))
    rows = np.concatenate([np.arange(trace.offset[e], trace.offset[e + 1]) for e in order])
    for k, v in part.items():
        np.testing.assert_array_equal(v, whole[k][rows if v.size == rows.size else order], k)


def test_another_seed_plays_another_game():
    trace, pool = busy_trace()
    first, second = (simulate(trace, pool, MIXED, ANYTHING, seed=s) for s in (1, 2))
    assert np.any(first.completed != second.completed)


def test_time_of_nodes_is_conserved():
    trace, pool = busy_trace()
    cluster = Cluster(np.full(5, 2.0), 3, 1.0, 0.3, 0.02, 5.0)
    outcome = simulate(trace, pool, cluster, ANYTHING, seed=1)
    spent = outcome.totals
    np.testing.assert_array_equal(spent["busy"] + spent["idle"] + spent["down"], 5 * spent["slots"])
    given_units = np.bincount(outcome.episode, outcome.units)
    np.testing.assert_allclose(given_units, 2.0 * (spent["busy"] - spent["set_up"]), rtol=1e-6)
    assert spent["down"].sum() > 0 < spent["set_up"].sum()


def test_nothing_happens_outside_a_window():
    trace, pool = busy_trace()
    outcome = simulate(trace, pool, MIXED, ANYTHING)
    served = outcome.first_served >= 0
    assert np.all(outcome.first_served[served] >= outcome.arrival[served])
    assert np.all(outcome.first_served[served] < outcome.deadline[served])
    done = outcome.completed
    assert np.all(outcome.finish[done] + 1 <= outcome.deadline[done])
    assert np.all(outcome.finish[~done] == -1)
    demand = pool.demand[trace.template]
    np.testing.assert_array_equal(outcome.units + 1e-6 >= demand, done)
    assert not done[demand == NEVER].any()
    assert done.sum() + (~done).sum() == len(trace)


def test_more_nodes_never_complete_less_work_in_total():
    trace, pool = busy_trace()
    trained = [simulate(trace, pool, plain(m), edf()).totals["busy"].sum() for m in (1, 2, 4, 8)]
    assert trained == sorted(trained)


@pytest.mark.parametrize(
    ("window", "demand", "completed"),
    [(0, 1, False), (1, 1, True), (1, 2, False), (3, 3, True), (3, NEVER, False)],
)
def test_the_last_slot_counts(window, demand, completed):
    trace, pool = trace_of([[(4, window, demand)]])
    outcome = simulate(trace, pool, plain(2), edf())
    assert outcome.completed.tolist() == [completed]
    assert outcome.finish.tolist() == [4 + demand - 1 if completed else -1]


def test_tasks_out_of_order_are_sorted_and_reported_in_their_own_order():
    trace, pool = trace_of([[(0, 5, 2), (3, 2, 2), (1, 9, 4)], [(2, 3, 3), (0, 2, 2)]])
    order = np.array([0, 2, 1, 4, 3])
    outcome = simulate(trace, pool, plain(1), edf())
    tidy = simulate(
        type(trace)(
            trace.offset, trace.template[order], trace.arrival[order], trace.deadline[order], trace.scored, {}
        ),
        pool,
        plain(1),
        edf(),
    )
    np.testing.assert_array_equal(outcome.finish[order], tidy.finish)


def test_an_outcome_survives_its_file(tmp_path):
    trace, pool = busy_trace()
    outcome = simulate(trace, pool, MIXED, ANYTHING)
    outcome.save(tmp_path / "outcome.parquet")
    again = Outcome.load(tmp_path / "outcome.parquet")
    for k, v in fields(outcome).items():
        np.testing.assert_array_equal(v, fields(again)[k], k)


@jit_lean
def allocate_wrongly(view, params, memory, assignment):
    assignment[0] = int(params[0])
    assignment[1] = int(params[1])


@jit_lean
def run_wrongly(problem, state, ledger, params, first, last):
    return run(allocate_wrongly, problem, state, ledger, params, first, last)


@pytest.mark.parametrize(
    ("choice", "failure_rate", "text"),
    [
        ((3, -1), 0.0, "not among"),
        ((-2, -1), 0.0, "not among"),
        ((0, 0), 0.0, "more nodes"),
        ((0, 1), 0.9, "down"),
    ],
)
def test_a_policy_that_breaks_a_rule_is_stopped(choice, failure_rate, text):
    trace, pool = trace_of([[(0, 9, 9), (0, 9, 9)]])
    policy = Policy("wrong", allocate_wrongly, run_wrongly, params=np.array(choice, float))
    cluster = Cluster(np.ones(2), failure_rate=failure_rate)
    with pytest.raises(PolicyError, match=text):
        simulate(trace, pool, cluster, policy)
    if failure_rate == 0:
        batch = BatchSimulator(trace, pool, cluster)
        batch.reset()
        with pytest.raises(PolicyError, match=text):
            batch.step(np.array([choice]))


@jit_lean
def allocate_by_memory(view, params, memory, assignment):
    """Serve tasks in turn: least served by own count; count slots in scratch."""
    view.scratch[0] += 1
    best = 0
    for k in range(memory.shape[0]):
        if memory[k, 1] < memory[best, 1]:
            best = k
    assignment[0] = best
    memory[best, 1] += 1
    if memory[best, 1] != view.served[best] + 1 or view.scratch[0] < view.served[best]:
        assignment[0] = -9


@jit_lean
def run_by_memory(problem, state, ledger, params, first, last):
    return run(allocate_by_memory, problem, state, ledger, params, first, last)


def test_memory_moves_with_its_task_and_starts_at_zero():
    trace, pool = busy_trace()
    policy = Policy("turns", allocate_by_memory, run_by_memory, memory_width=2, scratch_width=1)
    assert simulate(trace, pool, plain(1), policy).completed.any()


def test_the_pool_without_a_forecast_is_enough():
    pool = pool_of([3, 500, NEVER])
    trace, _ = trace_of([[(0, 9, 1), (1, 9, 1), (2, 9, 1)]])
    prepared = prepare(trace, pool, plain(1))
    assert prepared.problem.rows.tolist() == [3, 200, 200]
    assert prepared.problem.row0.tolist() == [0, 3, 203]
    assert prepared.width == 3
