"""Questions, answers and the table that holds them."""

from __future__ import annotations

import numpy as np
import pytest

from mara.errors import InputError
from mara.predictors.forecast import Forecast, Query
from mara.workload.forecast_table import ForecastTable, row_offsets


def test_query_blanks_the_future_and_measures_the_prefix():
    loss = np.array([[4.0, 3.0, 2.0, 1.0], [4.0, np.inf, 2.0, 1.0]])
    query = Query.of(loss, np.array([3, 4]), np.array([1.0, 1.0]))
    assert np.isnan(query.loss[0, 3])
    np.testing.assert_array_equal(query.diverged(), [False, True])
    np.testing.assert_allclose(query.best_smoothed(), [3.0, 4.0])  # mean(4, 3, 2); only point 0 counts
    with pytest.raises(InputError, match=r"1\.\.4"):
        Query.of(loss, np.array([0, 2]), np.array([1.0, 1.0]))


def test_step_distribution_reads_back_its_point():
    forecast = Forecast.from_point(np.array([0.0, 2.4, 7.0, 500.0, np.inf, np.nan]), horizon=10)
    np.testing.assert_array_equal(forecast.median(), [0, 3, 7, np.inf, np.inf, np.inf])
    within = forecast.probability_within(np.array([0, 2, 7, 99, 99, 99]))
    np.testing.assert_array_equal(within, [1, 0, 1, 0, 0, 0])
    assert forecast.point[3] == 500


def test_from_cdf_is_monotone_and_clipped():
    forecast = Forecast.from_cdf(np.array([[-0.1, 0.4, 0.3, np.nan, 1.2]]))
    np.testing.assert_allclose(forecast.cdf, [[0, 0.4, 0.4, 0.4, 1]])
    assert forecast.point[0] == 4
    np.testing.assert_allclose(forecast.probability_within(-1), [0])
    np.testing.assert_allclose(forecast.probability_within(2.9), [0.4], rtol=1e-6)


def test_settled_answers_what_the_prefix_decides():
    whole = [2.0, 1.0, 0.5]
    loss = np.array([whole, whole, [2.0, 1.0, np.nan], [2.0, np.nan, 0.1], whole])
    target = np.array([1.5, 0.5, 1.5, 0.1, -1.0])
    query = Query.of(loss, np.full(5, 3), target)
    settled = Forecast.from_point(np.full(5, 0.2), horizon=5).settled(query)
    np.testing.assert_array_equal(settled.point, [0, 1, 0, np.inf, np.inf])
    np.testing.assert_array_equal(settled.cdf[:, 0], [1, 0, 1, 0, 0])
    np.testing.assert_array_equal(settled.cdf[:, 5], [1, 1, 1, 0, 0])


def test_table_on_disk_and_row_look_up(tmp_path):
    rng = np.random.default_rng(0)
    offset = row_offsets(np.array([3, np.iinfo(np.int32).max, 1]))
    np.testing.assert_array_equal(offset, [0, 3, 203, 204])
    cdf = np.sort(rng.random((204, 11)).astype(np.float32), axis=1)
    table = ForecastTable("wls", offset, cdf, np.full(204, np.inf, dtype=np.float32))
    table.save(tmp_path / "wls")
    back = ForecastTable.load(tmp_path / "wls")
    assert back.predictor == "wls"
    assert back.cdf.dtype == np.float32
    assert np.abs(back.cdf - cdf).max() <= 0.5 / 65535 + 1e-7
    assert np.isinf(back.point).all()
    np.testing.assert_array_equal(
        table.row(np.array([0, 0, 1, 2]), np.array([0.9, 9.0, 150.5, 5.0])), [0, 2, 153, 203]
    )
    (tmp_path / "wls" / "point.npy").unlink()
    with pytest.raises(InputError, match="not a forecast table"):
        ForecastTable.load(tmp_path / "wls")
