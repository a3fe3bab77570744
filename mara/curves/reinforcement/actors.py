"""Plays the episodes of many runs side by side and keeps their scores.

Every run has its own stream of random numbers, so that the episodes of different runs are independent.

Shapes: R runs, E actors of a run, T steps, A actions, D observed numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mara.curves.reinforcement.environments import Array, Flags, Integers
from mara.curves.reinforcement.tasks import Task

_CHUNK = 64
"""Steps for which random numbers are drawn at once."""


@dataclass(frozen=True)
class Step:
    """What one step of all actors brought; states are those before a new episode starts."""

    reward: NDArray[np.float64]
    """(R, E) scaled reward that the learner sees, with the bonus where the task has one."""
    seen: NDArray[Any]
    """(R, E, D) or (R, E) what the learner sees of the states reached."""
    terminated: Flags
    """(R, E) the episode has ended by itself: nothing follows."""
    done: Flags
    """(R, E) the episode has ended, by itself or by the time limit."""


@dataclass(frozen=True)
class Episodes:
    """Whole episodes, one of each actor, padded to the longest."""

    seen: NDArray[Any]
    """(T, R, E, D)"""
    action: Integers
    """(T, R, E)"""
    reward: NDArray[np.float64]
    """(T, R, E) scaled"""
    alive: Flags
    """(T, R, E) whether the step belongs to the episode."""


Behaviour = Callable[[], NDArray[np.floating]]
"""Gives the actors' chances of each action, (R, E, A), in the states they are in now."""


class Actors:
    """R runs x E actors of one task."""

    def __init__(
        self, task: Task, actors: int, generators: Sequence[np.random.Generator], table: bool
    ) -> None:
        """Start an episode of every actor.

        Args:
            task: what is played.
            actors: E.
            generators: one stream of random numbers for each run.
            table: whether learners see a state's cell, or else its observation.
        """
        self.generators = generators
        self.environment = task.make()
        self._see: Callable[[Array], NDArray[Any]] = (
            self.environment.cell if table else self.environment.observe
        )
        self.shape = (len(generators), actors)
        self._task = task
        self._bonus = getattr(self.environment, "bonus", None)
        self._scores = [deque[float](maxlen=task.window) for _ in generators]
        self._fresh: list[list[float]] = [[] for _ in generators]
        self._last = np.full(len(generators), np.nan)
        self._chunk = np.empty((len(generators), 0, actors, 0))
        self._used = 0
        self.restart()

    def _draw(self) -> None:
        """Get the numbers of the next step: for the dynamics, a first state, and two choices of action."""
        uniforms = self.environment.uniforms
        if self._used == self._chunk.shape[1]:
            shape = (_CHUNK, self.shape[1], 2 * uniforms + 2)
            self._chunk = np.stack([generator.random(shape) for generator in self.generators])
            self._used = 0
        numbers = self._chunk[:, self._used]
        self._used += 1
        self._choices = numbers[:, :, -2:]
        flat = numbers.reshape(-1, numbers.shape[-1])
        self._for_step, self._for_start = flat[:, :uniforms], flat[:, uniforms:-2]

    def restart(self) -> None:
        """Drop what is being played and start new episodes."""
        self._draw()
        self._state = self.environment.reset(self._for_start)
        self._draw()
        self._age = np.zeros(len(self._state), dtype=np.int64)
        self._score = np.zeros(len(self._state))

    def seen(self) -> NDArray[Any]:
        """What the learner sees now: cells (R, E) or observations (R, E, D)."""
        return self._by_run(self._see(self._state))

    def _by_run(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(*self.shape, *values.shape[1:])

    def choose(self, chances: NDArray[np.floating], again: bool = False) -> Integers:
        """Draw actions (R, E) from chances (R, E, A); ``again`` is a second, independent draw of the step."""
        number = self._choices[:, :, 1 if again else 0, None]
        return (np.cumsum(chances, axis=2)[..., :-1] < number).sum(axis=2)

    def step(self, action: Integers, scored: Flags | None = None) -> Step:
        """Take one action (R, E) with every actor and start a new episode where one ends.

        The score of an ended episode is kept, with ``scored`` (R, E) only where that is true.
        """
        before = self._state
        after, reward, terminated = self.environment.step(before, action.ravel(), self._for_step)
        self._age += 1
        self._score += reward
        done = terminated | (self._age >= self._task.limit)
        if self._bonus is not None:
            reward = reward + self._bonus(before, after)
        result = Step(
            reward=self._by_run(self._task.reward_scale * reward),
            seen=self._by_run(self._see(after)),
            terminated=self._by_run(terminated),
            done=self._by_run(done),
        )
        ended = np.flatnonzero(done)
        if len(ended):
            for row in ended if scored is None else ended[scored.ravel()[ended]]:
                self._scores[row // self.shape[1]].append(float(self._score[row]))
                self._fresh[row // self.shape[1]].append(float(self._score[row]))
            after[ended] = self.environment.reset(self._for_start[ended])
            self._age[ended] = 0
            self._score[ended] = 0.0
        self._state = after
        self._draw()
        return result

    def play(self, behaviour: Behaviour) -> Episodes:
        """Play one whole new episode with every actor."""
        self.restart()
        observations, actions, rewards, alives = [], [], [], []
        alive = np.ones(self.shape, dtype=bool)
        while alive.any():
            observations.append(self.seen())
            actions.append(self.choose(behaviour()))
            alives.append(alive)
            step = self.step(actions[-1], scored=alive)
            rewards.append(step.reward)
            alive = alive & ~step.done
        return Episodes(np.stack(observations), np.stack(actions), np.stack(rewards), np.stack(alives))

    def fill_window(self, behaviour: Behaviour) -> None:
        """Play as many episodes as the running mean takes in."""
        for _ in range(-(-self._task.window // self.shape[1])):
            self.play(behaviour)

    def running_score(self) -> NDArray[np.float64]:
        """Each run's mean score (R,) of its last ``window`` episodes."""
        return np.array([np.mean(scores) for scores in self._scores])

    def fresh_score(self) -> NDArray[np.float64]:
        """Each run's mean score (R,) of the episodes ended since the last call; the former if none did."""
        for run, scores in enumerate(self._fresh):
            if scores:
                self._last[run] = np.mean(scores)
            scores.clear()
        return self._last.copy()
