"""Gymnasium's classic-control and toy-text tasks for many episodes at once.

The dynamics are those of Gymnasium (tested step by step against it), written for arrays. All chance comes
from uniform numbers that the caller hands in: an episode depends on nothing but its own random stream.

Shapes: B episodes, S numbers in a state, D observed numbers, A actions, U uniform numbers a step.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Environment(Protocol):
    """The dynamics of a task, without its time limit."""

    actions: int
    """A"""
    features: int
    """D, what a network sees."""
    cells: int
    """Number of discrete states that a table sees."""
    uniforms: int
    """U"""

    def reset(self, uniform: Array) -> Array:
        """First states (B, S) from uniform numbers (B, U)."""
        ...

    def step(self, state: Array, action: Integers, uniform: Array) -> tuple[Array, Array, Flags]:
        """Next states (B, S), rewards (B,) and ends (B,), given states, actions (B,) and numbers (B, U)."""
        ...

    def observe(self, state: Array) -> NDArray[np.float32]:
        """What a network sees of the states: (B, D), of order 1."""
        ...

    def cell(self, state: Array) -> Integers:
        """What a table sees of the states: (B,) in 0 .. cells - 1."""
        ...


def _grid_cell(values: Array, low: Array, high: Array, bins: tuple[int, ...]) -> Integers:
    """Return the cell (B,) of points (B, n) in a regular grid; points outside go to its rim."""
    counts = np.array(bins)
    places = np.floor((values - low) / (high - low) * counts).astype(np.int64)
    return np.ravel_multi_index(tuple(np.clip(places, 0, counts - 1).T), bins)


class CartPole:
    """Balance a pole on a cart that is pushed left or right; reward 1 a step (Barto et al. 1983)."""

    actions = 2
    features = 4
    uniforms = 4
    _bins = (3, 3, 8, 6)
    cells = 3 * 3 * 8 * 6
    _rim = np.array([2.4, 2.0, 12 * 2 * np.pi / 360, 2.0])

    def reset(self, uniform: Array) -> Array:
        """Small random states."""
        return -0.05 + 0.1 * uniform

    def step(self, state: Array, action: Integers, uniform: Array) -> tuple[Array, Array, Flags]:
        """One step of 0.02 s by Euler's method."""
        place, speed, angle, turn = state.T
        cosine, sine = np.cos(angle), np.sin(angle)
        push = (np.where(action == 1, 10.0, -10.0) + 0.05 * turn**2 * sine) / 1.1
        turn_rate = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
        speed_rate = push - 0.05 * turn_rate * cosine / 1.1
        after = np.stack(
            [place + 0.02 * speed, speed + 0.02 * speed_rate, angle + 0.02 * turn, turn + 0.02 * turn_rate],
            axis=1,
        )
        fallen = (np.abs(after[:, 0]) > self._rim[0]) | (np.abs(after[:, 2]) > self._rim[2])
        return after, np.ones(len(after)), fallen

    def observe(self, state: Array) -> NDArray[np.float32]:
        """The state, scaled."""
        return (state / self._rim).astype(np.float32)

    def cell(self, state: Array) -> Integers:
        """A grid over the state."""
        return _grid_cell(state, -self._rim, self._rim, self._bins)


class MountainCar:
    """Swing a weak car out of a valley; reward -1 a step (Moore 1990)."""

    actions = 3
    features = 2
    uniforms = 1
    _bins = (20, 16)
    cells = 20 * 16
    _low = np.array([-1.2, -0.07])
    _high = np.array([0.6, 0.07])

    def reset(self, uniform: Array) -> Array:
        """At rest near the bottom."""
        return np.concatenate([-0.6 + 0.2 * uniform, np.zeros_like(uniform)], axis=1)

    def step(self, state: Array, action: Integers, uniform: Array) -> tuple[Array, Array, Flags]:
        """One step; the left wall stops the car."""
        place, speed = state.T
        speed = np.clip(speed + (action - 1) * 0.001 - 0.0025 * np.cos(3 * place), -0.07, 0.07)
        place = np.clip(place + speed, -1.2, 0.6)
        speed = np.where((place == -1.2) & (speed < 0), 0.0, speed)
        return np.stack([place, speed], axis=1), np.full(len(place), -1.0), (place >= 0.5) & (speed >= 0)

    def observe(self, state: Array) -> NDArray[np.float32]:
        """The state, scaled to -1..1."""
        return ((2 * state - self._low - self._high) / (self._high - self._low)).astype(np.float32)

    def cell(self, state: Array) -> Integers:
        """A grid over the state."""
        return _grid_cell(state, self._low, self._high, self._bins)


class ShapedMountainCar(MountainCar):
    """The mountain car with the gain of mechanical energy added to the reward, which makes it easy to learn.

    Episodes are scored by what Gymnasium pays; see :meth:`bonus`.
    """

    def bonus(self, before: Array, after: Array) -> Array:
        """The added reward (B,), 5 for each thousandth of energy gained; learners see it, scores not."""
        energy_before, energy_after = (
            0.0025 / 3 * np.sin(3 * state[:, 0]) + 0.5 * state[:, 1] ** 2 for state in (before, after)
        )
        return 5000.0 * (energy_after - energy_before)


class Pendulum:
    """Swing up and hold a pendulum; the torque is one of a few; reward minus angle, speed and effort."""

    features = 3
    uniforms = 2
    _bins = (16, 12)
    cells = 16 * 12

    def __init__(self, torques: int) -> None:
        """Let actions be ``torques`` values from -2 to 2."""
        self.actions = torques
        self._torque = np.linspace(-2.0, 2.0, torques)

    def reset(self, uniform: Array) -> Array:
        """Any angle, small speeds."""
        return (2 * uniform - 1) * np.array([np.pi, 1.0])

    def step(self, state: Array, action: Integers, uniform: Array) -> tuple[Array, Array, Flags]:
        """One step of 0.05 s; it never ends by itself."""
        angle, speed = state.T
        torque = self._torque[action]
        upright = (angle + np.pi) % (2 * np.pi) - np.pi
        cost = upright**2 + 0.1 * speed**2 + 0.001 * torque**2
        speed = np.clip(speed + (15.0 * np.sin(angle) + 3.0 * torque) * 0.05, -8.0, 8.0)
        return np.stack([angle + speed * 0.05, speed], axis=1), -cost, np.zeros(len(cost), dtype=bool)

    def observe(self, state: Array) -> NDArray[np.float32]:
        """Cosine and sine of the angle, and the speed, scaled."""
        angle, speed = state.T
        return np.stack([np.cos(angle), np.sin(angle), speed / 8.0], axis=1).astype(np.float32)

    def cell(self, state: Array) -> Integers:
        """A grid over angle (from upright) and speed."""
        upright = (state[:, 0] + np.pi) % (2 * np.pi) - np.pi
        rim = np.array([np.pi, 8.0])
        return _grid_cell(np.stack([upright, state[:, 1]], axis=1), -rim, rim, self._bins)


class Acrobot:
    """Swing a two-link arm, driven at the elbow, up to a height; reward -1 a step (Sutton 1996)."""

    actions = 3
    features = 6
    uniforms = 4
    _bins = (10, 10, 5, 5)
    cells = 10 * 10 * 5 * 5
    _rim = np.array([np.pi, np.pi, 4 * np.pi, 9 * np.pi])

    def reset(self, uniform: Array) -> Array:
        """Hanging, almost at rest, in single precision as Gymnasium has it."""
        return (-0.1 + 0.2 * uniform).astype(np.float32).astype(np.float64)

    def step(self, state: Array, action: Integers, uniform: Array) -> tuple[Array, Array, Flags]:
        """One step of 0.2 s by the classical Runge-Kutta method."""
        torque = action - 1.0
        now = state.T
        first = self._rates(now, torque)
        second = self._rates(now + 0.1 * first, torque)
        third = self._rates(now + 0.1 * second, torque)
        fourth = self._rates(now + 0.2 * third, torque)
        after = (now + 0.2 / 6.0 * (first + 2 * second + 2 * third + fourth)).T
        angles = after[:, :2]
        turns = np.where(np.abs(angles) > np.pi, np.round(angles / (2 * np.pi)), 0.0)
        after[:, :2] = angles - 2 * np.pi * turns
        after[:, 2:] = np.clip(after[:, 2:], -self._rim[2:], self._rim[2:])
        high = -np.cos(after[:, 0]) - np.cos(after[:, 1] + after[:, 0]) > 1.0
        return after, np.where(high, 0.0, -1.0), high

    @staticmethod
    def _rates(state: Array, torque: Array) -> Array:
        """Time derivatives (4, B); all masses and lengths are 1, centres of mass at half length."""
        shoulder, elbow, shoulder_speed, elbow_speed = state
        cosine, sine = np.cos(elbow), np.sin(elbow)
        inertia = 3.5 + cosine
        coupling = 1.25 + 0.5 * cosine
        lower = 4.9 * np.cos(shoulder + elbow - np.pi / 2)
        upper = (
            -0.5 * elbow_speed**2 * sine
            - elbow_speed * shoulder_speed * sine
            + 14.7 * np.cos(shoulder - np.pi / 2)
            + lower
        )
        elbow_rate = (torque + coupling / inertia * upper - 0.5 * shoulder_speed**2 * sine - lower) / (
            1.25 - coupling**2 / inertia
        )
        shoulder_rate = -(coupling * elbow_rate + upper) / inertia
        return np.stack([shoulder_speed, elbow_speed, shoulder_rate, elbow_rate])

    def observe(self, state: Array) -> NDArray[np.float32]:
        """Cosines and sines of both angles, and the speeds, scaled."""
        angles, speeds = state[:, :2], state[:, 2:] / self._rim[2:]
        return np.concatenate([np.cos(angles), np.sin(angles), speeds], axis=1).astype(np.float32)

    def cell(self, state: Array) -> Integers:
        """A grid over the state."""
        return _grid_cell(state, -self._rim, self._rim, self._bins)


class TableTask:
    """A toy-text task that Gymnasium keeps as a table of transitions: frozen lake, cliff walking, taxi."""

    uniforms = 1

    def __init__(self, environment: Any) -> None:
        """Copy the table of an unwrapped Gymnasium environment."""
        table = environment.P
        self.cells = self.features = len(table)
        self.actions = len(table[0])
        widest = max(len(ways) for row in table.values() for ways in row.values())
        shape = (self.cells, self.actions, widest)
        self._chance = np.zeros(shape)
        self._next = np.zeros(shape)
        self._reward = np.zeros(shape)
        self._ends = np.zeros(shape, dtype=bool)
        for cell, row in table.items():
            for action, ways in row.items():
                for way, (chance, after, reward, ends) in enumerate(ways):
                    self._chance[cell, action, way] = chance
                    self._next[cell, action, way] = after
                    self._reward[cell, action, way] = reward
                    self._ends[cell, action, way] = ends
        self._chance = np.cumsum(self._chance, axis=2)
        self._start = np.cumsum(environment.initial_state_distrib)

    def reset(self, uniform: Array) -> Array:
        """A cell by the table of first cells."""
        return (self._start > uniform).argmax(axis=1)[:, None].astype(np.float64)

    def step(self, state: Array, action: Integers, uniform: Array) -> tuple[Array, Array, Flags]:
        """A way by its chance."""
        cell = self.cell(state)
        way = (self._chance[cell, action] > uniform).argmax(axis=1)
        place = (cell, action, way)
        return self._next[place][:, None], self._reward[place], self._ends[place]

    def observe(self, state: Array) -> NDArray[np.float32]:
        """The cell as a unit vector."""
        return np.eye(self.cells, dtype=np.float32)[self.cell(state)]

    def cell(self, state: Array) -> Integers:
        """The cell itself."""
        return state[:, 0].astype(np.int64)


class Blackjack:
    """Draw cards against a dealer, by the rules of Sutton & Barto, example 5.1.

    A state is the player's sum with aces as 1, whether there is an ace, the number of cards, the same three
    of the dealer's hand, and the dealer's open card.
    """

    actions = 2
    features = 3 + 10
    cells = 32 * 11 * 2
    uniforms = 14
    _deck = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10])

    def _cards(self, uniform: Array) -> Integers:
        return self._deck[(uniform * 13).astype(np.int64)]

    def reset(self, uniform: Array) -> Array:
        """Deal two cards to the dealer, then two to the player."""
        cards = self._cards(uniform[:, :4])
        dealer, player = cards[:, :2], cards[:, 2:]
        two = np.full(len(cards), 2)
        columns = [player.sum(axis=1), (player == 1).any(axis=1), two]
        columns += [dealer.sum(axis=1), (dealer == 1).any(axis=1), two, dealer[:, 0]]
        return np.stack(columns, axis=1).astype(np.float64)

    def step(self, state: Array, action: Integers, uniform: Array) -> tuple[Array, Array, Flags]:
        """Draw one card (1), or let the dealer draw up to 17 and compare (0)."""
        cards = self._cards(uniform)
        after = state.copy()
        hit = action == 1
        _draw(after[:, :3], cards[:, 0], hit)
        bust = hit & (after[:, 0] > 21)
        for card in cards.T:
            _draw(after[:, 3:6], card, ~hit & (_total(after[:, 3:6]) < 17))
        player, dealer = after[:, :3], after[:, 3:6]
        points = np.sign(_score(player) - _score(dealer))
        points = np.where(_natural(player) & ~_natural(dealer), 1.0, points)
        return after, np.where(hit, np.where(bust, -1.0, 0.0), points), ~hit | bust

    def observe(self, state: Array) -> NDArray[np.float32]:
        """The player's sum, its part above 11, a usable ace, and the open card as a unit vector."""
        total, usable = _total(state[:, :3]), _total(state[:, :3]) != state[:, 0]
        parts = [total[:, None] / 21, np.maximum(total - 11, 0)[:, None] / 10, usable[:, None]]
        return np.concatenate([*parts, np.eye(10)[state[:, 6].astype(np.int64) - 1]], axis=1).astype(
            np.float32
        )

    def cell(self, state: Array) -> Integers:
        """The player's sum, the open card and a usable ace."""
        total = _total(state[:, :3])
        usable = total != state[:, 0]
        places = (
            np.minimum(total, 31).astype(np.int64),
            state[:, 6].astype(np.int64),
            usable.astype(np.int64),
        )
        return np.ravel_multi_index(places, (32, 11, 2))


def _draw(hand: Array, card: Integers, draws: Flags) -> None:
    """Add cards (B,) in place to the hands (B, 3: sum, ace, cards) that draw."""
    hand[:, 0] += np.where(draws, card, 0)
    hand[:, 1] = np.where(draws & (card == 1), 1.0, hand[:, 1])
    hand[:, 2] += draws


def _total(hand: Array) -> Array:
    """The sum (B,) with one ace as 11 where that is at most 21."""
    return hand[:, 0] + 10.0 * ((hand[:, 1] > 0) & (hand[:, 0] + 10 <= 21))


def _score(hand: Array) -> Array:
    """The sum (B,), 0 beyond 21."""
    total = _total(hand)
    return np.where(total > 21, 0.0, total)


def _natural(hand: Array) -> Flags:
    """Whether a hand is an ace and a ten, and nothing else."""
    return (hand[:, 2] == 2) & (hand[:, 1] > 0) & (hand[:, 0] == 11)
