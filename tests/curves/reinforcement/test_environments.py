from typing import Any

import numpy as np
import pytest
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from gymnasium.envs.toy_text.blackjack import BlackjackEnv
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv

from mara.curves.reinforcement.environments import (
    Acrobot,
    Blackjack,
    CartPole,
    Environment,
    MountainCar,
    Pendulum,
    ShapedMountainCar,
    TableTask,
)


class Scripted:
    """Stands in for Gymnasium's generator and hands out given uniform numbers."""

    def __init__(self) -> None:
        self.numbers: list[float] = []

    def random(self) -> float:
        return self.numbers.pop(0)

    def uniform(self, low: Any, high: Any, size: Any = None) -> Any:
        low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        count = int(np.prod(size)) if size is not None else low.size
        drawn = np.array([self.numbers.pop(0) for _ in range(count)])
        return low + (high - low) * drawn if count > 1 else float(low + (high - low) * drawn[0])

    def choice(self, options: list) -> Any:
        return options[int(self.numbers.pop(0) * len(options))] if self.numbers else options[0]


CLASSIC = [
    (CartPole(), CartPoleEnv, lambda action: action),
    (MountainCar(), MountainCarEnv, lambda action: action),
    (ShapedMountainCar(), MountainCarEnv, lambda action: action),
    (Acrobot(), AcrobotEnv, lambda action: action),
    (Pendulum(3), PendulumEnv, lambda action: np.array([2.0 * action - 2.0])),
    (Pendulum(5), PendulumEnv, lambda action: np.array([float(action) - 2.0])),
]


@pytest.mark.parametrize(("mine", "make", "translate"), CLASSIC, ids=lambda part: type(part).__name__)
def test_classic_control_steps_like_gymnasium(mine: Environment, make: Any, translate: Any) -> None:
    rng = np.random.default_rng(3)
    ended = 0
    for _ in range(6):
        theirs = make()
        script = Scripted()
        uniform = rng.random((1, mine.uniforms))
        script.numbers = list(uniform[0])
        theirs.reset()
        theirs.np_random = script
        theirs.state = None
        theirs.reset()
        state = mine.reset(uniform)
        np.testing.assert_allclose(state[0], theirs.state, atol=1e-12)
        action = int(rng.integers(mine.actions))
        for _ in range(150):
            if rng.random() < 0.3:
                action = int(rng.integers(mine.actions))
            state, reward, ends = mine.step(state, np.array([action]), uniform)
            seen, their_reward, terminated, _, _ = theirs.step(translate(action))
            np.testing.assert_allclose(state[0], theirs.state, atol=1e-9)
            assert reward[0] == pytest.approx(their_reward, abs=1e-9)
            assert ends[0] == terminated
            assert mine.observe(state).shape == (1, mine.features)
            assert np.abs(mine.observe(state)).max() < 3.0
            assert 0 <= mine.cell(state)[0] < mine.cells
            assert len(seen) == mine.features
            if terminated:
                ended += 1
                break
    if isinstance(mine, CartPole):
        assert ended > 0, "no end was compared"


def test_mountain_car_and_acrobot_end_where_gymnasium_does() -> None:
    """Energy-pumping play reaches the goals, which random play does not."""
    for mine, theirs, pump in (
        (MountainCar(), MountainCarEnv(), lambda state: 2 if state[1] >= 0 else 0),
        (Acrobot(), AcrobotEnv(), lambda state: 2 if state[2] < 0 else 0),
    ):
        theirs.reset(seed=5)
        state = np.array([theirs.state], dtype=np.float64)
        for _ in range(500):
            action = pump(state[0])
            state, reward, ends = mine.step(state, np.array([action]), np.zeros((1, 4)))
            _, their_reward, terminated, _, _ = theirs.step(action)
            assert (reward[0], ends[0]) == (their_reward, terminated)
            if terminated:
                break
        assert terminated, f"{type(mine).__name__} never ended"


TABLES = {
    "lake": lambda: FrozenLakeEnv(map_name="4x4", is_slippery=False),
    "slippery lake": lambda: FrozenLakeEnv(map_name="8x8", is_slippery=True),
    "cliff": lambda: CliffWalkingEnv(),
    "slippery cliff": lambda: CliffWalkingEnv(is_slippery=True),
    "taxi": lambda: TaxiEnv(),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_step_like_gymnasium(name: str) -> None:
    theirs = TABLES[name]()
    mine = TableTask(theirs)
    assert (mine.cells, mine.actions) == (theirs.observation_space.n, theirs.action_space.n)
    rng = np.random.default_rng(8)
    theirs.reset(seed=0)
    theirs.np_random = script = Scripted()
    for _ in range(20):
        uniform = rng.random((1, 1))
        script.numbers = [uniform[0, 0]] * 3
        seen, _ = theirs.reset()
        state = mine.reset(uniform)
        assert mine.cell(state)[0] == seen
        for _ in range(60):
            action, uniform = int(rng.integers(mine.actions)), rng.random((1, 1))
            script.numbers = [uniform[0, 0]]
            seen, their_reward, terminated, _, _ = theirs.step(action)
            state, reward, ends = mine.step(state, np.array([action]), uniform)
            assert (mine.cell(state)[0], reward[0], ends[0]) == (seen, their_reward, terminated)
            assert mine.observe(state).argmax() == seen
            if terminated:
                break


def test_blackjack_plays_like_gymnasium() -> None:
    mine, theirs = Blackjack(), BlackjackEnv(sab=True)
    rng = np.random.default_rng(1)
    theirs.reset(seed=0)
    theirs.np_random = script = Scripted()
    wins, usable = 0, 0
    for _ in range(1500):
        uniform = rng.random((1, mine.uniforms))
        script.numbers = list(uniform[0, :4])
        seen, _ = theirs.reset()
        state, ends = mine.reset(uniform), np.array([False])
        while True:
            total, open_card, ace = seen
            features = mine.observe(state)[0]
            assert np.ravel_multi_index((total, open_card, ace), (32, 11, 2)) == mine.cell(state)[0]
            assert features[0] == pytest.approx(total / 21)
            assert features[2] == ace
            assert features[3:].argmax() + 1 == open_card
            usable += ace
            if ends[0]:
                break
            action, uniform = int(rng.random() < (0.8 if total < 17 else 0.2)), rng.random((1, mine.uniforms))
            script.numbers = list(uniform[0])
            seen, their_reward, terminated, _, _ = theirs.step(action)
            state, reward, ends = mine.step(state, np.array([action]), uniform)
            assert (reward[0], ends[0]) == (their_reward, terminated)
        wins += reward[0] > 0
    assert wins > 300
    assert usable > 100


@pytest.mark.parametrize(
    "mine", [CartPole(), Acrobot(), Blackjack(), TableTask(TaxiEnv())], ids=lambda task: type(task).__name__
)
def test_episodes_side_by_side_do_not_touch_each_other(mine: Environment) -> None:
    rng = np.random.default_rng(4)
    uniform, action = rng.random((2, 5, mine.uniforms)), rng.integers(0, mine.actions, 5)
    state = mine.reset(uniform[0])
    together = mine.step(state, action, uniform[1])
    for row in range(5):
        one = slice(row, row + 1)
        alone = mine.step(mine.reset(uniform[0, one]), action[one], uniform[1, one])
        for whole, part in zip(together, alone, strict=True):
            np.testing.assert_array_equal(whole[one], part)


def test_the_bonus_of_the_shaped_car_is_the_energy_it_gains() -> None:
    """Coasting gains next to nothing; pushing along with the speed gains."""
    car = ShapedMountainCar()
    state = np.array([[-0.5, 0.02]])
    gain = {}
    for action in (0, 1, 2):
        after, _, _ = car.step(state, np.array([action]), np.zeros((1, 1)))
        gain[action] = car.bonus(state, after)[0]
    assert gain[0] < gain[1] < gain[2]
    assert abs(gain[1]) < 0.1 * gain[2]
