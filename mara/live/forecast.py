"""How much more training a run needs: the study's predictors on people's own logs.

>>> from mara.curves.readers.read import read_log
>>> from mara.live.forecast import forecast_remaining
>>> log = read_log("runs/resnet/metrics.csv")                                        # doctest: +SKIP
>>> forecast_remaining(log, target=0.3).median                                      # doctest: +SKIP

Deadlines are not shown to the predictor. In the study they say something about the demand, as users set them
by what they expect; a deadline that someone asks about says nothing, and a chance must grow with it.
Learning rates to come are not in a log, so they are taken to stay as they are: on the study's curves that
costs the shipped predictor little, whereas it is far too hopeful where it is told that they are unknown.

Shapes: B questions, H horizon in units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mara.curves.readers.log import Log, Shortfall, shortfall
from mara.errors import InputError
from mara.live.units import Units, to_units
from mara.predictors.flow.lightweight import LightweightPredictor
from mara.predictors.forecast import HORIZON, Forecast, Query


class Forecaster(Protocol):
    """What is needed of a predictor; all of :mod:`mara.predictors.registry` will do, once fitted."""

    name: str

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """Distributions of the remaining units."""


LEVEL = 0.8
"""Share of the outcomes that the interval is to hold."""


@dataclass(frozen=True)
class Question:
    """Asks about one run.

    log: as :func:`~mara.curves.readers.read.read_log` gives it. target: wanted value of its metric.
    best: the best value that the metric can have, see :func:`~mara.curves.readers.log.shortfall`.
    deadline: how much of the axis is left from the newest point on; None if there is no deadline.
    """

    log: Log
    target: float
    best: float | None = None
    deadline: float | None = None


@dataclass(frozen=True)
class Remaining:
    """What is known about one run's remaining training; all lengths are on the log's own axis.

    question: what was asked. shortfall: the metric as a loss. units: the curve as the predictor saw it.
    reached: whether the smoothed metric has been at the target already.
    cdf: (H+1,) float64, chance that ``b`` further units suffice, b = 0..H.
    predictor: name of the predictor.
    """

    question: Question
    shortfall: Shortfall
    units: Units
    reached: bool
    cdf: NDArray[np.float64]
    predictor: str

    @property
    def horizon(self) -> float:
        """How far ahead the forecast sees."""
        return (len(self.cdf) - 1) * self.units.size

    @property
    def median(self) -> float:
        """As likely too much as too little; inf where that lies beyond the horizon, 0 where reached."""
        return self.quantile(0.5)

    @property
    def interval(self) -> tuple[float, float]:
        """The middle 80 % of the outcomes; inf for an end beyond the horizon."""
        return self.quantile((1 - LEVEL) / 2), self.quantile((1 + LEVEL) / 2)

    @property
    def chance_of_deadline(self) -> float | None:
        """Chance to reach the target by the deadline; None without one, a lower bound beyond the horizon."""
        deadline = self.question.deadline
        return None if deadline is None else self.chance_within(deadline)

    def quantile(self, level: float) -> float:
        """The least length that suffices with this chance; inf where it lies beyond the horizon."""
        enough = self.cdf >= level - 1e-6
        return float(enough.argmax()) * self.units.size if enough[-1] else float("inf")

    def chance_within(self, length: float) -> float:
        """Chance that this much further training suffices; a lower bound for lengths beyond the horizon."""
        return float(np.interp(length / self.units.size, np.arange(len(self.cdf)), self.cdf))


def forecast_remaining(
    log: Log,
    target: float,
    best: float | None = None,
    deadline: float | None = None,
    predictor: Forecaster | None = None,
) -> Remaining:
    """Forecast the remaining training of one run; the arguments are those of :class:`Question`.

    ``predictor`` is the one that ships with the package unless another, fitted, is given.

    Raises:
        InputError: for a target that no run can reach, a negative deadline, or numbers that are not finite.
    """
    return forecast_all([Question(log, target, best, deadline)], predictor)[0]


def forecast_all(questions: Sequence[Question], predictor: Forecaster | None = None) -> list[Remaining]:
    """Forecast many runs at once; see :func:`forecast_remaining`."""
    if not questions:
        return []
    predictor = predictor or shipped_predictor()
    losses = [_loss(question) for question in questions]
    curves = [
        to_units(question.log.position, loss.values, question.deadline, HORIZON)
        for question, loss in zip(questions, losses, strict=True)
    ]
    scale = np.array([curve.loss[0] for curve in curves])
    diverged = np.array([question.log.diverged for question in questions])
    length = np.array([len(curve.loss) for curve in curves]) + diverged
    loss = np.full((len(questions), length.max()), np.nan)
    for row, curve in enumerate(curves):
        loss[row, : len(curve.loss)] = curve.loss / scale[row]
    target = np.array([loss.target for loss in losses]) / scale
    schedule = np.ones((len(questions), loss.shape[1]), dtype=np.float32)
    answer = predictor.forecast(Query.of(loss, length, target, schedule), HORIZON)
    return [
        Remaining(
            question=question,
            shortfall=losses[row],
            units=curves[row],
            reached=bool(answer.cdf[row, 0] >= 1),
            cdf=answer.cdf[row].astype(np.float64),
            predictor=predictor.name,
        )
        for row, question in enumerate(questions)
    ]


def _loss(question: Question) -> Shortfall:
    deadline = question.deadline
    if deadline is not None and not 0 <= deadline < np.inf:
        raise InputError(f"{question.log.path}: deadline {deadline:g}; expected what is left, 0 or more")
    return shortfall(question.log, question.target, question.best)


def shipped_predictor() -> Forecaster:
    """The study's flow, distilled and trained, as it comes with the package; torch is not needed."""
    return LightweightPredictor.load()
