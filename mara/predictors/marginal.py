"""The demand of tasks in general, without a look at the curve: what age and deadline alone tell.

The control that shows what prediction is worth. P(D <= u + b | D > u), with D the demands of tasks made from
the training curves just as the workload makes its tasks, all of them or those with a similar window.

Shape legend: B questions, W window classes, N points a curve, H horizon.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from mara.config.predictors import MarginalSettings
from mara.config.workload import TaskSettings
from mara.curves.corpus import Corpus
from mara.predictors.examples import training_curves
from mara.predictors.forecast import HORIZON, BasePredictor, Forecast, Query
from mara.workload.tasks import make_pool


class Marginal(BasePredictor):
    """Empirical survival of the demand, by age, and by window where ``deadline`` is set."""

    learned = "survival"

    def __init__(self, deadline: bool = False, settings: MarginalSettings | None = None) -> None:
        self.name = "marginal_deadline" if deadline else "marginal"
        self.deadline = deadline
        self.settings = settings or MarginalSettings()
        self.edges: NDArray[np.float64] = np.empty(0)
        self.survival: NDArray[np.float64] | None = None

    def fit(self, corpus: Corpus, rng: np.random.Generator) -> Self:
        """Make tasks of the training curves and count their demands; row W is for all windows together."""
        s = self.settings
        pool = make_pool(training_curves(corpus, 0, rng), TaskSettings(templates=s.tasks), rng)
        inner = np.linspace(0, 1, s.window_classes + 1)[1:-1]
        self.edges = np.quantile(pool.window, inner) if self.deadline else np.empty(0)
        kind = np.searchsorted(self.edges, pool.window)
        points = corpus.loss.shape[1]
        beyond = pool.demand[:, None] > np.arange(points)
        counts = [beyond[kind == k].sum(axis=0) for k in range(len(self.edges) + 1)]
        counts.append(beyond.sum(axis=0))
        # One task that never ends in every class: no age leaves the distribution empty.
        self.survival = np.array(counts, dtype=np.float64) + 1
        return self

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """Survival after the present age; beyond the recorded ages nothing more is reached."""
        self.check_fitted()
        assert self.survival is not None
        last = self.survival.shape[1] - 1
        kind = np.searchsorted(self.edges, np.nan_to_num(query.window))
        kind = np.where(np.isfinite(query.window), kind, len(self.survival) - 1)
        age = np.minimum(query.length - 1, last)
        ahead = np.minimum(age[:, None] + np.arange(horizon + 1), last)
        alive = self.survival[kind[:, None], ahead]
        return Forecast.from_cdf(1 - alive / alive[:, :1]).settled(query)
