"""The tasks of the RL family: an environment, its time limit, and how a return becomes a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv
from numpy.typing import NDArray

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

SMALLEST_SHORTFALL = 0.01
"""Loss of a policy that reaches a task's high mark or passes it."""


@dataclass(frozen=True)
class Task:
    """A task and its scale of returns."""

    make: Callable[[], Environment]
    limit: int
    """Steps after which an episode is cut off (not a termination: learners look beyond it)."""
    low: float
    """Return of about the untrained policy: loss 1.01."""
    high: float
    """Return of about the best policy: loss 0.01."""
    window: int
    """Episodes in the running mean."""
    actors: int
    """Episodes that a policy-gradient learner plays side by side."""
    table_steps: int
    """Steps of every actor in one unit of a tabular learner."""

    @property
    def reward_scale(self) -> float:
        """Factor that brings returns to the order of 1 for learners."""
        return 1.0 / (self.high - self.low)

    def loss(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """The shortfall of mean returns: 0.01 + max(0, (high - score) / (high - low)), always > 0."""
        return SMALLEST_SHORTFALL + np.maximum(0.0, (self.high - score) / (self.high - self.low))


def _lake(size: str, slippery: bool) -> Callable[[], Environment]:
    return lambda: TableTask(FrozenLakeEnv(map_name=size, is_slippery=slippery))


TASKS: dict[str, Task] = {
    "cartpole-200": Task(CartPole, 200, 20.0, 200.0, 20, 8, 60),
    "cartpole-500": Task(CartPole, 500, 20.0, 500.0, 20, 8, 80),
    "acrobot": Task(Acrobot, 500, -500.0, -80.0, 12, 8, 90),
    "mountaincar": Task(MountainCar, 200, -200.0, -105.0, 16, 8, 100),
    "mountaincar-shaped": Task(ShapedMountainCar, 200, -200.0, -105.0, 16, 8, 50),
    "pendulum-3": Task(lambda: Pendulum(3), 200, -1150.0, -150.0, 16, 8, 75),
    "pendulum-5": Task(lambda: Pendulum(5), 200, -1150.0, -150.0, 16, 8, 75),
    "lake-4x4": Task(_lake("4x4", False), 100, 0.0, 1.0, 60, 16, 10),
    "lake-4x4-slippery": Task(_lake("4x4", True), 100, 0.0, 0.74, 100, 24, 30),
    "lake-8x8": Task(_lake("8x8", False), 200, 0.0, 1.0, 60, 24, 30),
    "lake-8x8-slippery": Task(_lake("8x8", True), 200, 0.0, 0.85, 80, 24, 75),
    "cliff": Task(lambda: TableTask(CliffWalkingEnv()), 100, -1050.0, -13.0, 30, 8, 10),
    "cliff-slippery": Task(
        lambda: TableTask(CliffWalkingEnv(is_slippery=True)), 100, -1050.0, -60.0, 30, 8, 30
    ),
    "taxi": Task(lambda: TableTask(TaxiEnv()), 200, -770.0, 8.0, 30, 8, 90),
    "blackjack": Task(Blackjack, 20, -0.37, -0.04, 600, 32, 30),
}
"""Every task by name; time limits as Gymnasium registers them, and 100 for cliff walking, which has none."""
