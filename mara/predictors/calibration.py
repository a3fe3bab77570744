"""Point forecasts made into distributions by the errors they made on the calibration split.

The error of a point forecast r is log((R + 1) / (r + 1)). Its empirical distribution is taken within classes
of r, of the units so far and, where ``deadline`` is set, of the window; a class borrows from the pool of all
its windows, and that from all ages, so that small classes do not overfit.

Shape legend: B questions, E examples, K classes, L error levels, H horizon.
"""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from mara.config.predictors import CalibrationSettings
from mara.curves.corpus import Corpus
from mara.predictors.examples import draw_examples
from mara.predictors.forecast import HORIZON, BasePredictor, Forecast, Query

LARGEST_POINT = 400.0
"""Point forecasts beyond this, never among them, are one class; the error is then about this value."""


class PointPredictor(Protocol):
    """What can be calibrated."""

    def remaining(self, query: Query) -> NDArray[np.float64]:
        """(B,) units still to go; inf = never."""


class Calibrated(BasePredictor):
    """A point predictor with the error distribution that it showed on the calibration split."""

    learned = "table"

    def __init__(
        self,
        base: PointPredictor,
        name: str,
        deadline: bool = False,
        settings: CalibrationSettings | None = None,
    ) -> None:
        self.name = f"{name}_deadline" if deadline else name
        self.base = base
        self.deadline = deadline
        self.settings = settings or CalibrationSettings()
        self.edges: list[NDArray[np.float64]] = []
        self.errors = np.linspace(-6.0, 6.0, self.settings.error_levels)
        self.table: NDArray[np.float64] | None = None

    def fit(self, corpus: Corpus, rng: np.random.Generator) -> Self:
        """Collect the errors on examples from the calibration split."""
        s = self.settings
        examples = draw_examples(corpus.of(split="calibration"), s.examples, self.deadline, rng)
        point = self._point(examples.query)
        units = examples.query.length.astype(np.float64) - 1
        window = np.asarray(examples.query.window, dtype=np.float64)
        self.edges = [
            _inner_quantiles(point, s.point_classes),
            _inner_quantiles(units, s.age_classes),
            _inner_quantiles(window[np.isfinite(window)], s.window_classes if self.deadline else 1),
        ]
        error = np.log1p(examples.remaining) - np.log1p(point)
        below = error[:, None] <= self.errors
        self.table = self._shrunk(self._classes(examples.query, point), below.astype(np.float64))
        return self

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """The error distribution of the question's class, about its point forecast."""
        self.check_fitted()
        assert self.table is not None
        point = self._point(query)
        table = self.table[self._classes(query, point)]
        error = np.log1p(np.arange(horizon + 1)) - np.log1p(point)[:, None]
        place = np.clip((error - self.errors[0]) / (self.errors[1] - self.errors[0]), 0, len(self.errors) - 1)
        low = np.minimum(place.astype(np.int64), len(self.errors) - 2)
        row = np.arange(len(query))[:, None]
        share = place - low
        return Forecast.from_cdf(table[row, low] * (1 - share) + table[row, low + 1] * share).settled(query)

    def _point(self, query: Query) -> NDArray[np.float64]:
        return np.clip(np.nan_to_num(self.base.remaining(query), nan=np.inf), 1.0, LARGEST_POINT)

    def _classes(self, query: Query, point: NDArray[np.float64]) -> tuple[NDArray[np.int64], ...]:
        """Class of the point, of the age and of the window (last: not given), (B,) each."""
        given = np.isfinite(query.window)
        window = np.searchsorted(self.edges[2], np.nan_to_num(query.window))
        return (
            np.searchsorted(self.edges[0], point),
            np.searchsorted(self.edges[1], query.length - 1.0),
            np.where(given & self.deadline, window, len(self.edges[2]) + 1),
        )

    def _shrunk(
        self, classes: tuple[NDArray[np.int64], ...], below: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Distribution functions of the error, (point, age, window, L), each pulled to its parent's."""
        weight = self.settings.borrowed
        shape = tuple(len(edges) + 1 for edges in self.edges)
        hits = np.zeros((shape[0], shape[1], shape[2] + 1, below.shape[1]))
        trials = np.zeros((*hits.shape[:3], 1))
        np.add.at(hits, classes, below)
        np.add.at(trials, classes, 1.0)
        by_point = (hits.sum((1, 2)) + weight * below.mean(axis=0)) / (trials.sum((1, 2)) + weight)
        by_age = (hits.sum(2) + weight * by_point[:, None]) / (trials.sum(2) + weight)
        return (hits + weight * by_age[:, :, None]) / (trials + weight)


def _inner_quantiles(values: NDArray[np.float64], classes: int) -> NDArray[np.float64]:
    """Edges between classes of about equal size; ties make fewer classes."""
    if classes < 2 or not len(values):
        return np.empty(0)
    return np.unique(np.quantile(values, np.linspace(0, 1, classes + 1)[1:-1]))
