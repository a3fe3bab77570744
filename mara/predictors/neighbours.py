"""The nearest curves at the same age: what became of runs that looked alike so far.

A prefix is described by its log losses at geometrically growing ages before the newest point, relative to
the newest smoothed loss, so the scale of the loss does not matter. The demand is read off the continuations
of the nearest training curves, each relative to its own newest smoothed loss.

Shape legend: B questions, C library curves, N points a curve, F features, K neighbours, H horizon.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from mara.config.predictors import NeighbourSettings
from mara.curves.corpus import Corpus
from mara.curves.smoothing import smooth
from mara.predictors.examples import training_curves
from mara.predictors.forecast import HORIZON, BasePredictor, Forecast, Query
from mara.predictors.trend import log_target, newest_smoothed

Floats = NDArray[np.float64]

AGES = np.array([0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 64, 85, 113, 150, 199])
"""Ages of the points that describe a prefix; those before the start count as point 0."""


class Neighbours(BasePredictor):
    """Continuations of the nearest training curves."""

    name = "neighbours"
    learned = "log_loss"

    def __init__(self, settings: NeighbourSettings | None = None) -> None:
        self.settings = settings or NeighbourSettings()
        self.log_loss: Floats | None = None
        self.log_smoothed: Floats = np.empty((0, 0))

    def fit(self, corpus: Corpus, rng: np.random.Generator) -> Self:
        """Keep the training curves; a curve that diverges stays at infinity from there on."""
        curves = training_curves(corpus, self.settings.synthetic_curves, rng)
        loss = np.where(np.isfinite(curves.loss), curves.loss, np.inf).astype(np.float64)
        self.log_loss = np.log(loss)
        self.log_smoothed = np.log(smooth(loss))
        return self

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """Weighted share of the neighbours that have got as far below their level within b units."""
        self.check_fitted()
        cdf = np.zeros((len(query), horizon + 1))
        level = newest_smoothed(query)
        drop = log_target(query) - level
        usable = ~query.diverged()
        for length in np.unique(query.length[usable]):
            rows = np.flatnonzero(usable & (query.length == length))
            cdf[rows] = self._same_age(query, rows, int(length), level[rows], drop[rows], horizon)
        return Forecast.from_cdf(cdf).settled(query)

    def _same_age(
        self, query: Query, rows: NDArray[np.int64], length: int, level: Floats, drop: Floats, horizon: int
    ) -> Floats:
        """(len(rows), H+1) for questions of one length; longer prefixes than the library's are cut in front."""
        assert self.log_loss is not None
        s = self.settings
        unit = min(length, self.log_loss.shape[1]) - 1
        mine = _shape(np.log(query.loss[rows].astype(np.float64)), level, length - 1)
        theirs = _shape(self.log_loss, self.log_smoothed[:, unit], unit)
        alive = np.flatnonzero(np.isfinite(theirs).all(axis=1))
        theirs = theirs[alive]
        weight = (1.0 + AGES) ** -s.recency
        count = min(s.neighbours, len(alive))
        distance = _squared_distances(mine * np.sqrt(weight), theirs * np.sqrt(weight))
        nearest = np.argpartition(distance, count - 1, axis=1)[:, :count]
        near = np.take_along_axis(distance, nearest, axis=1)
        closeness = 1 / (near + s.softness * near.mean(axis=1, keepdims=True) + 1e-9)
        closeness /= closeness.sum(axis=1, keepdims=True)
        future = self.log_smoothed[alive, unit:][:, : horizon + 1] - self.log_smoothed[alive, unit][:, None]
        lowest = np.minimum.accumulate(np.nan_to_num(future, nan=np.inf), axis=1)
        passed = lowest[nearest] <= drop[:, None, None]
        within = np.einsum("bk,bkh->bh", closeness, passed)
        cdf = np.empty((len(rows), horizon + 1))
        cdf[:, : within.shape[1]] = within
        cdf[:, within.shape[1] :] = within[:, -1:]
        return cdf


def _shape(log_loss: Floats, level: Floats, unit: int) -> Floats:
    """(B, F) log losses at the ``AGES`` before ``unit``, relative to ``level`` (B,)."""
    with np.errstate(invalid="ignore"):  # a diverged curve is infinitely far above itself
        return log_loss[:, np.maximum(unit - AGES, 0)] - level[:, None]


def _squared_distances(first: Floats, second: Floats) -> Floats:
    """(B, C) squared Euclidean distances."""
    square = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * first @ second.T
    return np.maximum(square, 0)
