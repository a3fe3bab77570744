"""Tabular Q-learning, double Q-learning, SARSA and expected SARSA, for many runs at once.

Continuous states are read on the environment's grid. All actors of a run share its table.

Shapes: R runs, E actors of a run, S cells, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mara.curves.corpus import POINTS
from mara.curves.reinforcement.actors import Actors
from mara.curves.reinforcement.environments import Integers

RULES = ("q", "double_q", "sarsa", "expected_sarsa")


class TabularLearner:
    """Temporal-difference control with an epsilon-greedy behaviour (Sutton & Barto 2018, chapter 6).

    A run's settings: ``gamma``; ``first_value`` of the table; ``epsilon``, which falls linearly to a
    twentieth of itself over the share ``explore`` of the run. One unit is ``steps`` steps of every actor.
    """

    def __init__(self, rule: str, actors: Actors, configs: Sequence[dict[str, Any]], steps: int) -> None:
        """Set up R runs; raises ``ValueError`` for a rule not in ``RULES``."""
        if rule not in RULES:
            raise ValueError(f"unknown rule {rule!r}; known are {', '.join(RULES)}")
        self._rule = rule
        self._actors = actors
        self._steps = steps
        environment = actors.environment
        self._gamma = np.array([config["gamma"] for config in configs])[:, None]
        self._epsilon = np.array([config["epsilon"] for config in configs])[:, None, None]
        self._explore = np.array([config["explore"] for config in configs])[:, None, None]
        tables = 2 if rule == "double_q" else 1
        self._table = np.empty((tables, len(configs), environment.cells, environment.actions))
        self._table[:] = np.array([config["first_value"] for config in configs])[:, None, None]
        self._runs = np.arange(len(configs))[:, None]
        self._units = 0
        self._turn = 0

    def behaviour(self) -> NDArray[np.floating]:
        """Chances (R, E, A) of each action where the actors are now."""
        return self._chances(self._actors.seen())

    def _chances(self, cell: Integers) -> NDArray[np.float64]:
        """Epsilon-greedy chances (R, E, A) in cells (R, E); the best actions share evenly."""
        values = self._table[:, self._runs, cell].sum(axis=0)
        best = values == values.max(axis=2, keepdims=True)
        done = np.minimum(1.0, self._units / (POINTS * self._explore))
        epsilon = self._epsilon * (1.0 - 0.95 * done)
        return (1.0 - epsilon) * best / best.sum(axis=2, keepdims=True) + epsilon / values.shape[2]

    def learn(self, rate: NDArray[np.float64]) -> None:
        """Take steps and learn from each at once, with step sizes ``rate`` (R,)."""
        cell = self._actors.seen()
        action = self._actors.choose(self._chances(cell))
        for _ in range(self._steps):
            step = self._actors.step(action)
            chances = self._chances(step.seen)
            following = self._actors.choose(chances)
            changed = self._turn
            self._turn = (self._turn + 1) % len(self._table)
            value = self._next_value(step.seen, following, chances, changed, self._turn)
            target = step.reward + self._gamma * value * ~step.terminated
            place = (self._runs, cell, action)
            error = target - self._table[changed][place]
            np.add.at(self._table[changed], place, rate[:, None] * error)

            cell = self._actors.seen()
            action = following
            if self._rule != "sarsa" or step.done.any():
                # SARSA takes the action it has learned from, unless a new episode has begun.
                fresh = self._actors.choose(self._chances(cell), again=True)
                action = np.where(step.done, fresh, following) if self._rule == "sarsa" else fresh
        self._units += 1

    def _next_value(
        self, cell: Integers, following: Integers, chances: NDArray[np.float64], changed: int, other: int
    ) -> NDArray[np.float64]:
        """Value (R, E) that the rule gives the cells (R, E) reached."""
        if self._rule == "sarsa":
            return self._table[0][self._runs, cell, following]
        values = self._table[other][self._runs, cell]
        if self._rule == "expected_sarsa":
            return (values * chances).sum(axis=2)
        best = self._table[changed][self._runs, cell].argmax(axis=2)
        return np.take_along_axis(values, best[:, :, None], axis=2)[:, :, 0]
