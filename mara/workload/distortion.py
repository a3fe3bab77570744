"""Forecast tables made wrong on purpose: scaled, given to other tasks, turned upside down, out of date.

All are cheap changes of a table that exists, so the predictor is not asked again. Point estimates go the
way of their distributions, so allocators of both kinds read the same error.

Shape legend: J templates, R rows, H horizon in units.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mara.config.distortion import ForecastSettings
from mara.workload.forecast_table import ForecastTable


def distort(table: ForecastTable, settings: ForecastSettings, rng: np.random.Generator) -> ForecastTable:
    """The table with its forecasts out of date, given to other tasks and scaled, in this order.

    ``rng`` draws whose forecast a task shows where they are shuffled.
    """
    if settings.delay:
        table = delayed(table, settings.delay)
    if settings.order == "shuffled":
        table = shuffled(table, rng)
    elif settings.order == "inverted":
        table = inverted(table)
    return scaled(table, settings.scale) if settings.scale != 1.0 else table


def scaled(table: ForecastTable, factor: float) -> ForecastTable:
    """P(factor * remaining <= b): read at b / factor, and held at the horizon's value beyond it."""
    column = np.minimum(np.floor(np.arange(table.horizon + 1) / factor).astype(np.int64), table.horizon)
    return replace(table, cdf=table.cdf[:, column], point=(table.point * factor).astype(np.float32))


def shuffled(table: ForecastTable, rng: np.random.Generator) -> ForecastTable:
    """Each template shows the forecasts of another one after as many units (held at that one's last row)."""
    template, units = _places(table)
    other = rng.permutation(len(table.offset) - 1)[template]
    row = table.row(other, units)
    return replace(table, cdf=table.cdf[row], point=table.point[row])


def inverted(table: ForecastTable) -> ForecastTable:
    """The worst order: the row with the least expected remaining demand shows the forecast of the most."""
    expected = (1.0 - table.cdf.astype(np.float64)).sum(axis=1)  # E[min(remaining, H + 1)]
    rising = np.lexsort((table.point, expected))
    row = np.empty_like(rising)
    row[rising] = rising[::-1]
    return replace(table, cdf=table.cdf[row], point=table.point[row])


def delayed(table: ForecastTable, units: int) -> ForecastTable:
    """Forecasts made ``units`` units ago, given that the task has not finished in between."""
    template, now = _places(table)
    since = np.minimum(now, units)
    row = table.row(template, now - since)
    column = np.minimum(np.arange(table.horizon + 1) + since[:, None], table.horizon)
    cdf = np.take_along_axis(table.cdf[row], column, axis=1)
    passed = np.take_along_axis(table.cdf[row], since[:, None], axis=1)
    left = np.maximum(1.0 - passed, 1e-6)
    cdf = np.clip((cdf - passed) / left, 0.0, 1.0)
    point = np.maximum(table.point[row] - since, 1.0)
    return replace(table, cdf=cdf.astype(np.float32), point=point.astype(np.float32))


def _places(table: ForecastTable) -> tuple[np.ndarray, np.ndarray]:
    """Template (R,) and units (R,) of every row."""
    template = np.repeat(np.arange(len(table.offset) - 1), np.diff(table.offset))
    return template, np.arange(len(table)) - table.offset[template]
