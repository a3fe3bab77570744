"""The standard faces pass their official checks and play the engine's game."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test

from mara.allocators.edf import edf
from mara.errors import InputError
from mara.simulator.cluster import Cluster
from mara.simulator.environment import TASK_VALUES, AllocationEnv, AllocationParallelEnv
from mara.simulator.simulate import simulate
from mara.workload.forecast_table import ForecastTable, row_offsets
from tests.simulator.cases import plain
from tests.simulator.test_engine import MIXED, busy_trace

TRACE, POOL = busy_trace(120)
WIDTH = AllocationEnv(TRACE, POOL, plain(3)).action_space.n - 1


def forecasts():
    """Certain forecasts: the remaining demand of each row is known."""
    offset = row_offsets(POOL.demand)
    template = np.repeat(np.arange(len(POOL)), np.diff(offset))
    remaining = POOL.demand[template] - (np.arange(offset[-1]) - offset[template])
    cdf = (remaining[:, None] <= np.arange(121)).astype(np.float32)
    return ForecastTable("oracle", offset, cdf, remaining.astype(np.float32))


@pytest.mark.parametrize("cluster", [plain(3), MIXED])
def test_pettingzoo_accepts_it(cluster):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(AllocationParallelEnv(TRACE, POOL, cluster, forecasts()), num_cycles=200)
    parallel_seed_test(lambda: AllocationParallelEnv(TRACE, POOL, cluster), num_cycles=50)


@pytest.mark.parametrize("cluster", [plain(3), MIXED])
def test_gymnasium_accepts_it(cluster):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*spec.*")
        check_env(AllocationEnv(TRACE, POOL, cluster, forecasts()), skip_render_check=True)


def earliest(observation, mask):
    """The allowed task with the fewest slots left, by the observation alone."""
    left = observation[: WIDTH * len(TASK_VALUES)].reshape(WIDTH, -1)[:, 1]
    allowed = np.flatnonzero(mask[:WIDTH])
    return int(allowed[np.argmin(left[allowed])]) if allowed.size else WIDTH


@pytest.mark.parametrize("episode", [0, 7])
def test_edf_by_hand_is_edf(episode):
    cluster = plain(3)
    completed = simulate(TRACE, POOL, cluster, edf()).completed_per_episode()[episode]
    single = AllocationEnv(TRACE, POOL, cluster)
    seen, _ = single.reset(options={"episode": episode})
    total, over = 0.0, False
    while not over:
        seen, reward, over, _, _ = single.step(earliest(seen, single.action_masks()))
        total += reward
    assert total == completed

    together = AllocationParallelEnv(TRACE, POOL, cluster)
    seen, infos = together.reset(options={"episode": episode})
    assert infos["node_0"] == {"episode": episode}
    total = 0.0
    while together.agents:
        taken: list[int] = []
        for agent in together.agents:
            mask = seen[agent]["action_mask"].copy()
            mask[taken] = 0
            taken.append(earliest(seen[agent]["observation"], mask))
        actions = dict(zip(together.agents, taken, strict=True))
        seen, rewards, *_ = together.step(actions)
        total += rewards["node_0"]
    assert total == completed


def test_masks_follow_the_picks():
    env = AllocationEnv(TRACE, POOL, Cluster(np.ones(3), max_nodes_per_task=2))
    env.reset(options={"episode": 1})
    assert env.action_masks()[[0, WIDTH]].all()
    for _ in range(2):
        assert env.action_masks()[0]
        env.step(0)
    assert not env.action_masks()[0]


def test_an_impossible_action_is_idle():
    env = AllocationParallelEnv(TRACE, POOL, plain(3))
    env.reset(options={"episode": 2})
    first = env.step({"node_0": 0, "node_1": 0, "node_2": WIDTH - 1})[0]
    assert first["node_1"]["action_mask"].any()
    state = env._game.simulator._state
    assert state.served[0, 0] <= 1
    assert env._game.simulator.outcome().totals["busy"].tolist() == [1]


def test_a_wider_space_shows_the_same_game():
    narrow, wide = (AllocationEnv(TRACE, POOL, plain(3), width=width) for width in (None, WIDTH + 5))
    assert wide.action_space.n == WIDTH + 6
    first, second = (env.reset(options={"episode": 3})[0] for env in (narrow, wide))
    values = WIDTH * len(TASK_VALUES)
    np.testing.assert_array_equal(first[:values], second[:values])
    np.testing.assert_array_equal(first[values:], second[values + 5 * len(TASK_VALUES) :])
    with pytest.raises(InputError, match=f"up to {WIDTH} tasks"):
        AllocationEnv(TRACE, POOL, plain(3), width=WIDTH - 1)


def test_an_episode_that_is_not_there():
    with pytest.raises(InputError, match=r"episodes 0\.\.59, not 60"):
        AllocationEnv(TRACE, POOL, plain(3)).reset(options={"episode": 60})
