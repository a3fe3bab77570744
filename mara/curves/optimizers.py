"""Five optimizers and five learning-rate schedules for many runs at once.

All runs of a batch keep their parameters in one matrix; one update rule with coefficients per run covers
every optimizer.

Shapes: R runs, P parameters of one run, N = 200 points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mara.curves.corpus import POINTS

# name: (weight of the gradient, weight of the momentum, momentum decay, gradient's share in it, square decay)
_COEFFICIENTS = {
    "sgd": (1.0, 0.0, 0.0, 0.0, 0.0),
    "momentum": (0.0, 1.0, 0.9, 1.0, 0.0),
    "nesterov": (1.0, 0.9, 0.9, 1.0, 0.0),
    "rmsprop": (1.0, 0.0, 0.0, 0.0, 0.99),
    "adam": (0.0, 1.0, 0.9, 0.1, 0.999),
}
OPTIMIZERS = tuple(_COEFFICIENTS)
SCHEDULES = ("constant", "step", "cosine", "exponential", "warmup")

LEARNING_RATES = {
    "sgd": (-2.0, 0.5),
    "momentum": (-2.7, -0.2),
    "nesterov": (-2.7, -0.2),
    "rmsprop": (-3.6, -1.3),
    "adam": (-3.4, -1.0),
}
"""Range of log10 of the learning rate from which runs are drawn, by optimizer."""

_EPSILON = 1e-8


class StackedOptimizer:
    """Updates R runs, each by its own optimizer, in place."""

    def __init__(self, optimizers: Sequence[str], weight_decay: Sequence[float], parameters: Tensor) -> None:
        """Set up for ``parameters`` (R, P), which :meth:`step` changes in place."""
        rows = torch.tensor([_COEFFICIENTS[name] for name in optimizers], dtype=parameters.dtype)
        self._gradient, self._momentum, self._decay, self._share, self._square = (
            column[:, None] for column in rows.unbind(1)
        )
        self._adaptive = self._square > 0
        self._corrected = torch.tensor([[name == "adam"] for name in optimizers])
        self._weight_decay = torch.tensor(weight_decay, dtype=parameters.dtype)[:, None]
        self._parameters = parameters
        self._first = torch.zeros_like(parameters)
        self._second = torch.zeros_like(parameters)
        self._steps = 0

    @torch.no_grad()
    def step(self, gradient: Tensor, rate: Tensor) -> None:
        """One update of every run from its gradient (R, P) with its learning rate (R,).

        Weight decay is decoupled from the gradient, as in AdamW.
        """
        self._steps += 1
        one = torch.ones_like(self._decay)
        first_bias = torch.where(self._corrected, 1 - self._decay**self._steps, one)
        second_bias = torch.where(self._corrected, 1 - self._square**self._steps, one)
        self._first.mul_(self._decay).addcmul_(gradient, self._share)
        self._second.mul_(self._square).addcmul_(gradient * gradient, 1 - self._square)
        direction = self._gradient * gradient + (self._momentum / first_bias) * self._first
        scale = (self._second / second_bias).sqrt_().add_(_EPSILON)
        direction = torch.where(self._adaptive, direction / scale, direction)
        direction.addcmul_(self._parameters, self._weight_decay)
        self._parameters.addcmul_(direction, rate[:, None], value=-1)


def learning_rates(schedule: str, peak: float) -> NDArray[np.float64]:
    """The learning rate at each of the N points; point 0 repeats point 1.

    constant; step: a tenth from the middle and a hundredth from three quarters on; cosine: to zero;
    exponential: to a hundredth; warmup: up over the first tenth, then linearly to zero.
    """
    done = np.arange(POINTS - 1) / (POINTS - 1)
    if schedule == "constant":
        shape = np.ones(POINTS - 1)
    elif schedule == "step":
        shape = np.where(done < 0.5, 1.0, np.where(done < 0.75, 0.1, 0.01))
    elif schedule == "cosine":
        shape = (1 + np.cos(np.pi * done)) / 2
    elif schedule == "exponential":
        shape = 0.01**done
    elif schedule == "warmup":
        shape = np.minimum((done + 0.005) / 0.1, (1 - done) / 0.9)
    else:
        raise ValueError(f"unknown schedule {schedule!r}; known are {', '.join(SCHEDULES)}")
    return peak * np.concatenate([shape[:1], shape])


def draw_settings(rng: np.random.Generator, shift: float = 0.0) -> dict[str, Any]:
    """Draw optimizer, schedule and learning rate of one run.

    Args:
        rng: source of the choice.
        shift: added to log10 of the learning rate's range.
    """
    optimizer = str(rng.choice(OPTIMIZERS))
    low, high = LEARNING_RATES[optimizer]
    rate = 10 ** (rng.uniform(low, high) + shift)
    return {
        "optimizer": optimizer,
        "schedule": str(rng.choice(SCHEDULES)),
        "learning_rate": float(f"{rate:.3g}"),
        "weight_decay": float(rng.choice([0.0, 0.0, 1e-3, 1e-2])),
    }
