"""Policies and critics of many runs as stacked perceptrons, and what policy-gradient learners share.

Shapes: R runs, B cases of a run, D observed numbers, A actions, P parameters of one run, T steps, E actors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu}


class ActorCritic:
    """A policy and a critic of the same hidden sizes, apart from each other, for R runs at once."""

    def __init__(self, features: int, actions: int, hidden: Sequence[int], activation: str) -> None:
        """Work out the weights' shapes; no hidden layer gives a linear policy and critic."""
        self._activation = _ACTIVATIONS[activation]
        self._policy = _shapes((features, *hidden, actions))
        self._critic = _shapes((features, *hidden, 1))

    def initial(self, gain: float, generator: torch.Generator) -> Tensor:
        """Draw the parameters (P,) of one run: normal weights of deviation gain / sqrt(inputs), biases 0.

        The last layer of the policy is a hundredth of that, so that an untrained policy is nearly uniform.
        """
        parts = []
        for shapes, last in ((self._policy, 0.01), (self._critic, 1.0)):
            for place, shape in enumerate(shapes):
                deviation = gain / math.sqrt(shape[0]) if place % 2 == 0 else 0.0
                deviation *= last if place == len(shapes) - 2 else 1.0
                parts.append(deviation * torch.randn(math.prod(shape), generator=generator))
        return torch.cat(parts)

    def log_chances(self, parameters: Tensor, observation: Tensor) -> Tensor:
        """Logarithms (R, B, A) of each action's chances, given parameters (R, P) and inputs (R, B, D)."""
        return torch.log_softmax(self._run(self._policy_weights(parameters), observation), dim=2)

    def behaviour(self, parameters: Tensor) -> Callable[[Tensor], Tensor]:
        """The chances (R, B, A) as a function of inputs; it follows changes of ``parameters`` in place."""
        weights = self._policy_weights(parameters.detach())
        return lambda observation: torch.softmax(self._run(weights, observation), dim=2)

    def values(self, parameters: Tensor, observation: Tensor) -> Tensor:
        """The critic's values (R, B)."""
        weights = _split(parameters[:, _size(self._policy) :], self._critic)
        return self._run(weights, observation)[:, :, 0]

    def _policy_weights(self, parameters: Tensor) -> list[Tensor]:
        return _split(parameters[:, : _size(self._policy)], self._policy)

    def _run(self, weights: list[Tensor], hidden: Tensor) -> Tensor:
        for place in range(0, len(weights), 2):
            if place:
                hidden = self._activation(hidden)
            hidden = torch.baddbmm(weights[place + 1], hidden, weights[place])
        return hidden


def _shapes(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Shapes of the weights and biases between layers of the given sizes."""
    found: list[tuple[int, ...]] = []
    for inputs, outputs in pairwise(sizes):
        found += [(inputs, outputs), (1, outputs)]
    return found


def _size(shapes: list[tuple[int, ...]]) -> int:
    """Number of parameters of the given shapes."""
    return sum(math.prod(shape) for shape in shapes)


def _split(parameters: Tensor, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """Cut parameters (R, P) into weights and biases (R, ...), as views."""
    parts = torch.split_with_sizes(parameters, [math.prod(shape) for shape in shapes], dim=1)
    return [part.reshape(len(parameters), *shape) for part, shape in zip(parts, shapes, strict=True)]


def per_run(configs: Sequence[dict], name: str) -> Tensor:
    """A setting of each run as a column (R, 1)."""
    return torch.tensor([float(config[name]) for config in configs])[:, None]


def flat_cases(array: NDArray) -> Tensor:
    """Turn (T, R, E, ...) into (R, T * E, ...), floats in single precision."""
    moved = np.moveaxis(array, 1, 0)
    flat = np.ascontiguousarray(moved).reshape(moved.shape[0], -1, *moved.shape[3:])
    return torch.from_numpy(flat.astype(np.float32) if flat.dtype == np.float64 else flat)


def clipped(gradient: Tensor, norm: float = 1.0) -> Tensor:
    """Scale each run's gradient (R, P) down to a norm of at most ``norm``."""
    return gradient * (norm / gradient.norm(dim=1, keepdim=True).clamp(min=norm))


def advantages(
    reward: NDArray,
    value: NDArray,
    next_value: NDArray,
    terminated: NDArray,
    done: NDArray,
    gamma: NDArray,
    lam: NDArray,
) -> NDArray[np.float64]:
    """Generalised advantage estimates (Schulman et al. 2016, equation 16), all arrays (T, R, E).

    ``next_value`` is that of the state reached, before a new episode starts: what lies beyond a time limit is
    estimated by the critic, what lies beyond a termination is 0. ``gamma`` and ``lam`` are (R, 1).
    """
    error = reward + gamma * next_value * ~terminated - value
    found = np.zeros_like(error)
    running = np.zeros(error.shape[1:])
    for step in reversed(range(len(error))):
        running = error[step] + gamma * lam * running * ~done[step]
        found[step] = running
    return found
