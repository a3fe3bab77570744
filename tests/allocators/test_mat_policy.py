"""The transformer as a policy: starts as the index, ignores batching, fits any cluster, saves and loads."""

import numpy as np
import pytest
import torch

from mara.allocators.mat.features import NODE_FEATURES, PAIR_FEATURES, SETTING_FEATURES, TASK_FEATURES
from mara.allocators.mat.lanes import Lanes
from mara.allocators.mat.policy import MatPolicy, build_network, run_lanes, run_policy
from mara.allocators.registry import make_policy
from mara.config.mat import MatSettings, NetworkSettings
from mara.errors import InputError
from mara.simulator.cluster import Cluster
from mara.simulator.simulate import simulate
from tests.learning.worlds import make_course

SMALL = NetworkSettings(width=16, heads=2, blocks=1, candidates_min=6, candidates_per_node=3)
CLUSTERS = {
    "mixed": Cluster(speeds=np.array([0.5, 2.0, 1.0])),
    "one": Cluster(speeds=np.array([1.5])),
    "five": Cluster(speeds=np.ones(5)),
    "switching": Cluster(speeds=np.ones(3), switching_cost=1.5),
    "shared": Cluster(speeds=np.ones(4), max_nodes_per_task=2, speedup_exponent=0.7),
    "failing": Cluster(speeds=np.ones(3), failure_rate=0.05, repair_slots=4),
}


def make_mat(course, noise=0.0, **changes):
    settings = MatSettings(network=SMALL, **changes)
    policy = MatPolicy(build_network(settings, torch.Generator().manual_seed(0)), settings, course.weights)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.network.parameters():
            parameter.add_(noise * torch.randn(parameter.shape, generator=generator))
    return policy


def run(policy, course, **options):
    return run_policy(policy, course.trace, course.pool, course.cluster, course.forecasts, **options)


@pytest.mark.parametrize("name", CLUSTERS)
def test_untrained_it_does_what_the_index_does(name):
    course = make_course(cluster=CLUSTERS[name])
    index = make_policy("index_matching", course.weights, course.forecasts, course.cluster)
    expected = simulate(course.trace, course.pool, course.cluster, index, course.forecasts)
    policy = make_mat(course)
    assert policy.is_the_index()
    assert np.array_equal(run(policy, course).finish, expected.finish)
    with torch.no_grad():
        policy.network.bias[-1].bias.fill_(1e-3)  # the same for all tasks: now the network itself decides
    assert not policy.is_the_index()
    found = run(policy, course)
    assert (found.completed == expected.completed).mean() > 0.98  # equal scores may be seated differently
    assert found.completion_rate == pytest.approx(expected.completion_rate, abs=0.02)


@pytest.mark.parametrize("changes", [{}, {"mask": False}, {"autoregressive": False}, {"warm_start": "none"}])
@pytest.mark.parametrize("name", ["mixed", "shared"])
def test_outcome_does_not_depend_on_the_batch(changes, name):
    course = make_course(cluster=CLUSTERS[name])
    policy = make_mat(course, noise=0.3, **changes)
    whole, parts = run(policy, course), run(policy, course, lanes=3)
    for column in ("episode", "completed", "finish", "units", "first_served"):
        assert np.array_equal(getattr(whole, column), getattr(parts, column))
    assert all(np.array_equal(whole.totals[name], parts.totals[name]) for name in whole.totals)


def test_saves_and_loads(tmp_path):
    course = make_course()
    policy = make_mat(course, noise=0.3)
    policy.save(tmp_path / "policy.pt")
    loaded = MatPolicy.load(tmp_path / "policy.pt")
    assert loaded.settings == policy.settings
    assert loaded.weights == policy.weights
    assert np.array_equal(run(loaded, course).finish, run(policy, course).finish)
    loaded.save(tmp_path / "again.pt")
    assert (tmp_path / "again.pt").read_bytes() == (tmp_path / "policy.pt").read_bytes()


@pytest.mark.parametrize("content", [b"", b"not a policy", None])
def test_a_file_that_is_no_policy_is_refused(tmp_path, content):
    path = tmp_path / "policy.pt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"policy\.pt"):
        MatPolicy.load(path)


@pytest.mark.parametrize("name", CLUSTERS)
def test_observation_has_the_documented_features_and_they_are_tame(name):
    course = make_course(cluster=CLUSTERS[name], rate=0.6)
    world = Lanes(
        course.trace, course.pool, course.cluster, course.forecasts, course.weights, SMALL, course.progress
    )
    world.reset()
    while world.live.size:
        observation, base = world.observe()
        nodes = course.cluster.nodes
        assert observation.task.shape[-1] == len(TASK_FEATURES)
        assert observation.node.shape[1:] == (nodes, len(NODE_FEATURES))
        assert observation.pair.shape[-1] == len(PAIR_FEATURES)
        assert observation.setting.shape[1] == len(SETTING_FEATURES)
        for values in observation[:5]:
            assert torch.isfinite(values).all()
            assert values.abs().max() <= 12
        assert (observation.prior <= 0).all()
        present = torch.nn.functional.pad(observation.present, (0, 1), value=True)
        assert present.gather(1, base).all()
        world.step(base)


@pytest.mark.parametrize("name", CLUSTERS)
def test_lead_is_over_the_task_that_as_many_as_there_are_nodes_begin_with(name):
    course = make_course(cluster=CLUSTERS[name], rate=0.6)
    world = Lanes(course.trace, course.pool, course.cluster, course.forecasts, course.weights, SMALL)
    world.reset()
    lead = TASK_FEATURES.index(
        "index of the tuned index policy less that of the M-th best task, / 4, clipped to [-2, 2]"
    )
    while world.live.size:
        observation, base = world.observe()
        for task, present in zip(observation.task, observation.present, strict=True):
            best_first = task[present, lead].sort(descending=True).values
            assert abs(best_first[min(course.cluster.nodes, len(best_first)) - 1]) < 1e-6
        world.step(base)


def test_lanes_on_another_trace_share_tables_and_play_as_new_ones():
    course, other = make_course(seed=0), make_course(episodes=3, seed=0, rate=0.5)
    policy = make_mat(course, noise=0.3)
    world = Lanes(course.trace, course.pool, course.cluster, course.forecasts, course.weights, SMALL)
    world.reset()
    world.observe()
    before = world.state.counter.copy()
    there = world.on(other.trace)
    assert there.rows is world.rows
    assert there.index is world.index
    found = run_lanes(policy, there)
    expected = run_policy(policy, other.trace, course.pool, course.cluster, course.forecasts)
    assert np.array_equal(found.finish, expected.finish)
    assert world.trace is course.trace
    assert np.array_equal(world.state.counter, before)


def test_candidates_are_pruned_to_the_best_and_keep_what_the_index_picks():
    course = make_course(rate=1.5)
    world = Lanes(course.trace, course.pool, course.cluster, course.forecasts, course.weights, SMALL)
    world.reset()
    pruned = 0
    while world.live.size:
        active = world.state.counter[world.live, 1]
        observation, base = world.observe()
        count = observation.present.sum(dim=1).numpy()
        assert np.array_equal(count, np.minimum(active, world.candidates))
        pruned += int((active > world.candidates).sum())
        assert (base < observation.present.shape[1]).any(dim=1).all()
        world.step(base)
    assert pruned > 0
