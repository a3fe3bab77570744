"""Look-ahead labels against a slow reference; the world they are tried in stays as it was."""

import copy

import numpy as np
import pytest
import torch

from mara.allocators.mat.features import Buffers
from mara.allocators.mat.lanes import Lanes
from mara.config.mat import NetworkSettings
from mara.learning.lookahead import Deviations
from mara.learning.worth import fit_chance
from mara.simulator.cluster import Cluster
from mara.simulator.engine import COUNT, SLOT
from tests.learning.worlds import make_course

SMALL = NetworkSettings(width=16, heads=2, blocks=1, candidates_min=6, candidates_per_node=2)


def opened(cluster=None, steps=20):
    cluster = cluster or Cluster(speeds=np.ones(3))
    course = make_course(episodes=2, rate=0.5, cluster=cluster)
    world = Lanes(course.trace, course.pool, course.cluster, course.forecasts, course.weights, SMALL)
    world.reset()
    deviations = Deviations(world, count=12, hold=3, horizon=10_000, rng=np.random.default_rng(0))
    deviations.reset()
    for _ in range(steps):
        _, base = world.observe()
        world.step(base)
    world.observe()
    return world, deviations


def play_slowly(world, score, lane, node, task, hold):
    """The same roll-out by sorting a list, to the end of the episode: completions."""
    world = copy.deepcopy(world)
    start = world.state.counter[lane, SLOT]
    completed = 0
    while not world.done[lane]:
        world.live = np.array([lane])
        n = world.state.counter[lane, COUNT]
        active, slot = world.state.active[lane, :n].tolist(), world.state.counter[lane, SLOT]
        left = world.state.deadline[lane, :n] - slot
        value = score[world.state.row[lane, :n], left].astype(np.float64)
        value += world.index.params[8] * np.isin(active, world.state.last_task[lane])
        holding = slot < start + hold and (task == -1 or task in active)
        picks = np.full((1, world.order.size), n)
        ranked = [k for k in np.argsort(-value, kind="stable") if not (holding and active[k] == task)]
        for place, m in enumerate(world.order):
            if holding and m == node:
                picks[0, place] = active.index(task) if task >= 0 else n
            elif ranked:
                picks[0, place] = ranked.pop(0)
        world.buffers = world.buffers._replace(candidate=np.arange(n)[None])
        completed += int(world.step(torch.from_numpy(picks))[0])
    return completed


def test_labels_are_the_difference_of_two_episodes():
    world, deviations = opened()
    live = world.live
    before = [np.copy(part) for part in world.state]
    node, action, advantage = deviations.label(live, Buffers(*(np.copy(b) for b in world.buffers)))
    kept = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 18)  # all but the engine's scratch
    assert all(np.array_equal(before[k], world.state[k]) for k in kept)
    differing = 0
    for s, lane in enumerate(live):
        base = play_slowly(world, deviations.score, lane, -1, -1, 0)
        for d in range(node.shape[1]):
            k = action[s, d]
            width = world.buffers.candidate.shape[1]
            if k == world.buffers.base[s, node[s, d]]:
                assert advantage[s, d] == 0
                continue
            task = world.state.active[lane, world.buffers.candidate[s, k]] if k < width else -1
            other = play_slowly(world, deviations.score, lane, world.order[node[s, d]], task, deviations.hold)
            assert advantage[s, d] == other - base
            differing += other != base
    assert differing > 0


def test_worth_tells_tasks_that_will_be_completed_from_others():
    _, deviations = opened()
    explained = deviations.fit_worth(np.array([0, 1, 0, 1]), share=0.5)
    assert explained > 0.2


@pytest.mark.parametrize(
    "cluster",
    [
        Cluster(speeds=np.ones(3), switching_cost=1.0),
        Cluster(speeds=np.ones(4), max_nodes_per_task=2),
        Cluster(speeds=np.ones(3), failure_rate=0.05),
        Cluster(speeds=np.array([0.5, 2.0, 1.0])),
    ],
)
def test_labels_where_the_index_is_more_than_a_list(cluster):
    world, deviations = opened(cluster)
    node, action, advantage = deviations.label(world.live, world.buffers)
    assert np.isfinite(advantage).all()
    assert (np.abs(advantage) <= 20).all()
    own = np.take_along_axis(world.buffers.base, node, axis=1)
    assert (advantage[action == own] == 0).all()


def test_chance_is_fitted_by_maximum_likelihood():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.ones((20_000, 1)), rng.normal(size=(20_000, 2))], axis=1)
    weights = np.array([-0.5, 1.0, -2.0])
    y = (rng.random(20_000) < 1 / (1 + np.exp(-x @ weights))).astype(float)
    np.testing.assert_allclose(fit_chance(x, y), weights, atol=0.1)
