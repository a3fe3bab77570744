"""The true remaining demand, for bounds: the only predictor that is told the answer."""

from __future__ import annotations

from mara.errors import InputError
from mara.predictors.forecast import HORIZON, BasePredictor, Forecast, Query


class Oracle(BasePredictor):
    """A step at the truth."""

    name = "oracle"
    sees_truth = True

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """Repeat ``query.truth``; an :class:`InputError` says so where it is missing."""
        if query.truth is None:
            raise InputError("oracle: the query lacks the true demand; only recorded curves have it")
        return Forecast.from_point(query.truth, horizon).settled(query)
