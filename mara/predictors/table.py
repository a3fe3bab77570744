"""Fills a forecast table: asks a predictor about every (template, units) of a pool, in large batches.

Prefixes that templates share (same curve, same units, other target or window) are forecast once by
predictors that can use that. Rows go in order of prefix length, so that a batch is as narrow as it can be.

Shape legend: J templates, R rows, P prefixes of a batch, N points a curve, H horizon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mara.predictors.forecast import HORIZON, Forecast, KnowsHistory, ManyTargets, Predictor, Query
from mara.workload.forecast_table import ROWS_MAX, ForecastTable, row_offsets

if TYPE_CHECKING:
    from mara.curves.corpus import Corpus
    from mara.workload.tasks import TaskPool


def tabulate(
    predictor: Predictor,
    pool: TaskPool,
    corpus: Corpus,
    batch: int = 4096,
    horizon: int = HORIZON,
    refresh: float = 0.0,
    earlier_runs: int | None = None,
) -> ForecastTable:
    """Forecast after 0, 1, 2, … units of every template up to its demand.

    Args:
        predictor: whom to ask; with ``refresh``, one that answers with distributions.
        pool: the templates.
        corpus: the curves of the pool, and of their groups what predictors may know as earlier runs; the run
            that set a template's target is none of them.
        batch: rows asked at a time.
        horizon: units that forecasts look ahead.
        refresh: ask only when the units have grown by this share; in between, the last forecast is carried
            on: what it said of the units since then did not come true.
        earlier_runs: how many runs are known at most; None for as many as the predictor looks at.
    """
    offset = row_offsets(pool.demand)
    curve = pool.rows_in(corpus)
    template = np.repeat(np.arange(len(curve)), np.diff(offset))
    units = np.arange(offset[-1]) - offset[template]
    since = units_since_asked(refresh)[units]
    asked = np.flatnonzero(since == 0)
    ahead = horizon + int(since.max(initial=0))
    cdf = np.empty((len(asked), ahead + 1), dtype=np.float32)
    point = np.empty(len(asked), dtype=np.float32)
    order = np.lexsort((curve[template[asked]], units[asked]))
    runs = _earlier_runs(predictor, pool, corpus, curve)
    if runs is not None and earlier_runs is not None:
        runs[:, earlier_runs:] = -1
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        which, after = template[asked[rows]], units[asked[rows]]
        if isinstance(predictor, KnowsHistory) and runs is not None:
            at = curve[which]
            query = Query.of(
                corpus.loss[at], after + 1, pool.target[which], corpus.schedule[at], pool.window[which]
            )
            answer = predictor.forecast_among(query, corpus, at, runs[which], ahead)
        else:
            answer = _ask(predictor, pool, corpus, curve[which], which, after, ahead)
        cdf[rows] = answer.cdf
        point[rows] = answer.point
    if refresh:
        last = np.searchsorted(asked, np.arange(len(units)) - since)
        cdf = np.concatenate(
            [
                carried(cdf[last[rows]], since[rows], horizon)
                for rows in np.array_split(np.arange(len(units)), 1 + len(units) // batch)
            ]
        )
        point = Forecast.from_cdf(cdf).point
    return ForecastTable(predictor.name, offset, cdf, point)


def units_since_asked(refresh: float) -> NDArray[np.int64]:
    """For 0, 1, 2, … units, how many of them came after the last forecast; 0 where one is asked for."""
    last = np.zeros(ROWS_MAX, dtype=np.int64)
    for unit in range(1, ROWS_MAX):
        due = unit >= last[unit - 1] * (1.0 + refresh)
        last[unit] = unit if due else last[unit - 1]
    return np.arange(ROWS_MAX) - last


def carried(cdf: NDArray[np.float32], since: NDArray[np.int64], horizon: int) -> NDArray[np.float32]:
    """Forecasts (B, horizon+1) of what remains, from cdf (B, H+1) of ``since`` (B,) units ago.

    They are conditioned on the target not having been reached in the meantime; what was certain to be is
    expected with the next unit. H must be at least ``horizon + max(since)``.
    """
    column = since[:, None] + np.arange(horizon + 1)
    before = np.take_along_axis(cdf, since[:, None], axis=1)
    left = 1.0 - before
    later = (np.take_along_axis(cdf, column, axis=1) - before) / np.maximum(left, 1e-6)
    sure = np.arange(horizon + 1) >= 1
    out = np.where(left > 1e-6, later, sure)
    return np.where(since[:, None] == 0, cdf[:, : horizon + 1], out).astype(np.float32)


def _earlier_runs(
    predictor: Predictor, pool: TaskPool, corpus: Corpus, curve: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Runs (J, R) that each template's forecasts know; None where the predictor looks at none."""
    if not isinstance(predictor, KnowsHistory):
        return None
    barred = None
    if pool.reference_id is not None:
        row = {name: i for i, name in enumerate(corpus.id)}
        barred = np.array([row.get(name, -1) for name in pool.reference_id], dtype=np.int64)
    return predictor.choose(corpus, curve, barred)


def _ask(
    predictor: Predictor,
    pool: TaskPool,
    corpus: Corpus,
    curve: NDArray[np.int64],
    template: NDArray[np.int64],
    units: NDArray[np.int64],
    horizon: int,
) -> Forecast:
    """Forecasts of templates (R,), which have the curves (R,), after units (R,)."""
    prefix, owner = np.unique(np.stack([curve, units], axis=1), axis=0, return_inverse=True)
    owner = owner.reshape(-1)
    target = pool.target[template].astype(np.float32)
    window = pool.window[template].astype(np.float32)
    blank = np.full(len(prefix), np.nan, dtype=np.float32)
    row, length = prefix[:, 0], prefix[:, 1] + 1
    prefixes = Query.of(corpus.loss[row], length, blank, corpus.schedule[row])
    if isinstance(predictor, ManyTargets):
        return predictor.forecast_many_targets(prefixes, owner, target, window, horizon)
    truth = None
    if getattr(predictor, "sees_truth", False):
        demand = pool.demand[template].astype(np.float64)
        truth = np.where(demand >= np.iinfo(np.int32).max, np.inf, demand - units)
    return predictor.forecast(prefixes.rows(owner, target, window, truth), horizon)
