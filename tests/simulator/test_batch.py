"""Stepping many episodes together is the same game as the compiled loop."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mara.simulator.batch import BatchSimulator
from mara.simulator.simulate import PolicyError, simulate
from tests.simulator.cases import ANYTHING, allocate_anything, plain, trace_of
from tests.simulator.test_engine import MIXED, busy_trace, fields


def decide(simulator, view, cluster):
    """The decisions of the policy that tries everything, for every unfinished episode."""
    choice = np.full((view.done.size, cluster.nodes), -1, np.int32)
    for e in np.flatnonzero(~view.done):
        seen = SimpleNamespace(
            active=view.active[e, view.mask[e]], up=view.up[e], slot=view.slot[e],
            seed=simulator.seeds[e], max_nodes=cluster.max_nodes_per_task,
        )  # fmt: skip
        allocate_anything.py_func(seen, None, None, choice[e])
    return choice


def play(simulator, cluster, episodes=None):
    view = simulator.reset(episodes)
    reward = np.zeros(view.done.size)
    while not view.done.all():
        reward += simulator.step(decide(simulator, view, cluster))
        view = simulator.view()
    return reward


def test_same_decisions_same_outcome():
    trace, pool = busy_trace()
    simulator = BatchSimulator(trace, pool, MIXED, seed=4)
    order = np.array([5, 0, 41, 5])
    reward = play(simulator, MIXED, order)
    loop = fields(simulate(trace.select(order), pool, MIXED, ANYTHING, seed=4))
    for name, value in fields(simulator.outcome()).items():
        np.testing.assert_array_equal(value, loop[name], name)
    np.testing.assert_array_equal(reward, simulator.outcome().completed_per_episode(scored=False))
    assert reward[0] == reward[3] > 0


def test_columns_describe_the_active_tasks():
    trace, pool = busy_trace()
    progress = np.tile(np.linspace(0, 1, 200, dtype=np.float32), (len(trace), 1))
    simulator = BatchSimulator(trace, pool, MIXED, progress=progress)
    view = simulator.reset(np.arange(4))
    widths = set()
    while not view.done.all():
        widths.add(view.mask.shape[1])
        count = view.mask.sum(1)
        np.testing.assert_array_equal(view.mask, np.arange(view.mask.shape[1]) < count[:, None])
        e, k = np.nonzero(view.mask)
        task = trace.offset[e] + view.active[e, k]
        np.testing.assert_array_equal(view.template[e, k], trace.template[task])
        np.testing.assert_array_equal(view.age[e, k], view.slot[e] - trace.arrival[task])
        np.testing.assert_array_equal(view.left[e, k], trace.deadline[task] - view.slot[e])
        assert np.all(view.left[e, k] >= 1)
        assert np.all(view.age[e, k] >= 0)
        first = np.concatenate([[0], np.cumsum(np.minimum(pool.demand, 200))])
        units = view.units[e, k]
        np.testing.assert_array_equal(
            view.row[e, k], first[trace.template[task]] + (units + 1e-9).astype(int)
        )
        np.testing.assert_array_equal(view.progress[e, k], progress[0][(units + 1e-9).astype(int)])
        shown = np.where(view.mask, view.progress, 0).sum(1, dtype=np.float64)
        np.testing.assert_allclose(simulator.potential(), shown, rtol=1e-12)
        for column in (view.template, view.units, view.served, view.age, view.left, view.row, view.progress):
            assert not column[~view.mask].any()
        assert np.all(view.active[~view.mask] == -1)
        here = view.last_position >= 0
        lane, _node = np.nonzero(here)
        np.testing.assert_array_equal(view.active[lane, view.last_position[here]], view.last_task[here])
        simulator.step(decide(simulator, view, MIXED))
        view = simulator.view()
    assert not simulator.potential().any()
    assert max(widths) == max_active(trace, simulator)
    assert len(widths) > 3


def max_active(trace, simulator):
    """The most tasks active at once in the first four episodes, from their records."""
    outcome = simulator.outcome()
    most = 0
    for e in range(4):
        part = outcome.episode == e
        leave = np.where(outcome.completed, outcome.finish + 1, outcome.deadline)[part]
        slots = np.arange(leave.max())[:, None]
        most = max(most, ((outcome.arrival[part] <= slots) & (slots < leave)).sum(1).max())
    return most


def test_the_potential_of_a_departed_task_counts_no_more():
    trace, pool = trace_of([[(0, 2, 1), (0, 2, 9)]])
    progress = np.array([[0.0, 1.0], [0.0, 0.4]], np.float32)
    simulator = BatchSimulator(trace, pool, plain(2), progress=progress)
    simulator.reset()
    assert simulator.step(np.array([[0, 1]])).tolist() == [1]
    assert simulator.potential() == pytest.approx([0.4])
    assert simulator.step(np.array([[0, -1]])).tolist() == [0]
    assert simulator.done.all()
    assert simulator.potential().tolist() == [0]


def test_an_assignment_of_another_shape():
    trace, pool = trace_of([[(0, 2, 1)]])
    simulator = BatchSimulator(trace, pool, plain(2))
    simulator.reset()
    with pytest.raises(PolicyError, match="shape"):
        simulator.step(np.array([0, 0]))
