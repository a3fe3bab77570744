"""Tables whose forecasts are made now and then: what is carried on in between, and how often is asked."""

from __future__ import annotations

import numpy as np
import pytest

from mara.config.workload import TaskSettings
from mara.predictors.forecast import Forecast
from mara.predictors.table import carried, tabulate, units_since_asked
from mara.workload.forecast_table import row_offsets
from mara.workload.tasks import make_pool


class Geometric:
    """Every unit reaches the target with the same chance: a forecast without memory."""

    name = "geometric"

    def __init__(self):
        self.lengths = []

    def forecast(self, query, horizon=120):
        self.lengths += query.length.tolist()
        grid = 1.0 - 0.9 ** np.arange(horizon + 1)
        return Forecast.from_cdf(np.tile(grid, (len(query), 1)))


@pytest.mark.parametrize("refresh", [0.0, 0.1, 0.5])
def test_asks_again_when_the_units_have_grown_by_the_share(refresh):
    since = units_since_asked(refresh)
    units = np.arange(len(since))
    assert since[0] == since[1] == 0
    assert (since <= np.ceil(refresh * (units - since))).all()
    gaps = np.diff(np.flatnonzero(since == 0))
    assert (np.diff(gaps) >= -1).all()
    assert refresh or not since.any()


def test_what_is_carried_on_is_conditioned_on_not_having_been_reached():
    rng = np.random.default_rng(0)
    cdf = np.cumsum(rng.random((6, 61)), axis=1)
    cdf = (cdf - cdf[:, :1]) / (cdf[:, -1:] + rng.random((6, 1)))
    since = np.array([0, 1, 2, 5, 10, 20])
    later = carried(cdf.astype(np.float32), since, 40)
    for row, gone in enumerate(since):
        expected = (cdf[row, gone : gone + 41] - cdf[row, gone]) / (1 - cdf[row, gone])
        np.testing.assert_allclose(later[row], expected, atol=1e-5)
    sure = carried(np.ones((1, 61), np.float32), np.array([3]), 40)
    assert sure[0, 0] == 0
    assert (sure[0, 1:] == 1).all()


def test_a_forecast_without_memory_fills_the_same_table_from_fewer_questions(corpus):
    pool = make_pool(
        corpus, TaskSettings(templates=20, feasible_share=None, long_share=None), np.random.default_rng(0)
    )
    often, seldom = Geometric(), Geometric()
    full = tabulate(often, pool, corpus)
    thinned = tabulate(seldom, pool, corpus, refresh=0.2)
    np.testing.assert_allclose(thinned.cdf, full.cdf, atol=1e-5)
    np.testing.assert_array_equal(thinned.point, full.point)
    assert len(often.lengths) == row_offsets(pool.demand)[-1]
    assert len(seldom.lengths) < 0.5 * len(often.lengths)
    assert set(np.array(seldom.lengths) - 1) <= set(np.flatnonzero(units_since_asked(0.2) == 0))
