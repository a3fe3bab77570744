"""Forecasts made wrong on purpose: what each change must do to what the forecasts say."""

import numpy as np
import pytest

from mara.config.distortion import ForecastSettings
from mara.workload.distortion import delayed, distort, inverted, scaled, shuffled
from mara.workload.forecast_table import ForecastTable, join_tables, row_offsets

HORIZON = 40


@pytest.fixture
def table() -> ForecastTable:
    """Exact forecasts: remaining demand = demand - units, certain."""
    demand = np.array([5, 12, 30, 3])
    offset = row_offsets(demand)
    template = np.repeat(np.arange(4), np.diff(offset))
    remaining = demand[template] - (np.arange(offset[-1]) - offset[template])
    cdf = (np.arange(HORIZON + 1) >= remaining[:, None]).astype(np.float32)
    return ForecastTable("exact", offset, cdf, remaining.astype(np.float32))


def median(table: ForecastTable) -> np.ndarray:
    reached = table.cdf >= 0.5
    return np.where(reached[:, -1], reached.argmax(axis=1), np.inf)


def test_the_defaults_change_nothing(table: ForecastTable) -> None:
    same = distort(table, ForecastSettings(), np.random.default_rng(0))
    assert np.array_equal(same.cdf, table.cdf)
    assert np.array_equal(same.point, table.point)


def test_a_scaled_forecast_names_the_multiple_of_the_demand(table: ForecastTable) -> None:
    double = scaled(table, 2.0)
    inside = 2 * table.point <= HORIZON
    assert np.array_equal(median(double)[inside], 2 * table.point[inside])
    assert np.all(np.isinf(median(double)[~inside]))
    assert np.array_equal(double.point, 2 * table.point)
    assert np.array_equal(median(scaled(table, 0.5)), np.ceil(table.point / 2))


def test_shuffling_keeps_whole_templates_together(table: ForecastTable) -> None:
    mixed = shuffled(table, np.random.default_rng(1))
    for j in range(4):
        first, last = table.offset[j], table.offset[j + 1]
        step = -np.diff(mixed.point[first:last])
        assert np.all((step == 1) | (step == 0))
        assert mixed.point[first] in table.point[table.offset[:-1]]


def test_inverting_turns_the_order_round_and_keeps_the_forecasts(table: ForecastTable) -> None:
    wrong = inverted(table)
    assert sorted(wrong.point) == sorted(table.point)
    assert np.array_equal(np.sort(table.point)[::-1], wrong.point[np.argsort(table.point, kind="stable")])
    assert np.array_equal(inverted(wrong).point, table.point)


def test_an_exact_forecast_loses_nothing_by_delay(table: ForecastTable) -> None:
    late = delayed(table, 4)
    assert np.array_equal(late.point, table.point)
    assert np.array_equal(median(late), median(table))


def test_a_delayed_forecast_is_the_old_one_given_that_the_task_runs_on() -> None:
    offset = row_offsets(np.array([HORIZON]))
    old = np.clip(np.arange(HORIZON + 1) / 20, 0, 1)  # remaining uniform on 1..20, at every row
    table = ForecastTable(
        "uniform", offset, np.tile(old, (HORIZON, 1)).astype(np.float32), np.full(HORIZON, 10.0)
    )
    late = delayed(table, 5)
    assert late.cdf[0] == pytest.approx(old)
    assert late.cdf[9][:16] == pytest.approx(np.arange(16) / 15)
    assert late.point[9] == 5


def test_joined_tables_hold_the_first_templates_of_each(table: ForecastTable) -> None:
    joined = join_tables([table, table], 3)
    assert np.array_equal(joined.offset, [0, 5, 17, 47, 52, 64, 94])
    assert np.array_equal(joined.point, np.tile(table.point[:47], 2))
