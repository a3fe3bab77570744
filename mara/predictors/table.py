"""Fills a forecast table: asks a predictor about every (template, units) of a pool, in large batches.

Prefixes that templates share (same curve, same units, other target or window) are handed over once to
predictors that can use that. Rows go in order of prefix length, so that a batch is as narrow as it can be.

Shape legend: J templates, R rows, P prefixes of a batch, N points a curve, H horizon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mara.predictors.forecast import HORIZON, Forecast, KnowsHistory, ManyTargets, Predictor, Query
from mara.workload.forecast_table import ForecastTable, row_offsets

if TYPE_CHECKING:
    from mara.curves.corpus import Corpus
    from mara.workload.tasks import TaskPool


def tabulate(
    predictor: Predictor,
    pool: TaskPool,
    corpus: Corpus,
    batch: int = 4096,
    horizon: int = HORIZON,
) -> ForecastTable:
    """Forecast after 0, 1, 2, … units of every template up to its demand.

    ``corpus`` must hold the curves of the pool, and of their groups what predictors may know as earlier runs;
    the run that set a template's target is none of them. ``batch`` is the number of rows asked at a time.
    """
    offset = row_offsets(pool.demand)
    curve = pool.rows_in(corpus)
    template = np.repeat(np.arange(len(curve)), np.diff(offset))
    units = np.arange(offset[-1]) - offset[template]
    cdf = np.empty((offset[-1], horizon + 1), dtype=np.float32)
    point = np.empty(offset[-1], dtype=np.float32)
    order = np.lexsort((curve[template], units))
    runs = _earlier_runs(predictor, pool, corpus, curve)
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        which = template[rows]
        if isinstance(predictor, KnowsHistory) and runs is not None:
            at = curve[which]
            query = Query.of(
                corpus.loss[at], units[rows] + 1, pool.target[which], corpus.schedule[at], pool.window[which]
            )
            answer = predictor.forecast_among(query, corpus, at, runs[which], horizon)
        else:
            answer = _ask(predictor, pool, corpus, curve[which], which, units[rows], horizon)
        cdf[rows] = answer.cdf
        point[rows] = answer.point
    return ForecastTable(predictor.name, offset, cdf, point)


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
