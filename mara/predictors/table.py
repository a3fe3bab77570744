"""Fills a forecast table: asks a predictor about every (template, units) of a pool, in large batches.

Prefixes that templates share (same curve, same units, other target or window) are handed over once to
predictors that can use that. Rows go in order of prefix length, so that a batch is as narrow as it can be.

Shape legend: J templates, R rows, P prefixes of a batch, N points a curve, H horizon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mara.predictors.forecast import HORIZON, Forecast, ManyTargets, Predictor, Query
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

    ``corpus`` must be the one that ``pool.curve`` counts in; ``batch`` is the number of rows asked at a time.
    """
    offset = row_offsets(pool.demand)
    template = np.repeat(np.arange(len(pool.demand)), np.diff(offset))
    units = np.arange(offset[-1]) - offset[template]
    cdf = np.empty((offset[-1], horizon + 1), dtype=np.float32)
    point = np.empty(offset[-1], dtype=np.float32)
    order = np.lexsort((pool.curve[template], units))
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        answer = _ask(predictor, pool, corpus, template[rows], units[rows], horizon)
        cdf[rows] = answer.cdf
        point[rows] = answer.point
    return ForecastTable(predictor.name, offset, cdf, point)


def _ask(
    predictor: Predictor,
    pool: TaskPool,
    corpus: Corpus,
    template: NDArray[np.int64],
    units: NDArray[np.int64],
    horizon: int,
) -> Forecast:
    """Forecasts of templates (R,) after units (R,)."""
    key = np.stack([pool.curve[template], units], axis=1)
    prefix, owner = np.unique(key, axis=0, return_inverse=True)
    owner = owner.reshape(-1)
    curve, length = prefix[:, 0], prefix[:, 1] + 1
    target = pool.target[template].astype(np.float32)
    window = pool.window[template].astype(np.float32)
    blank = np.full(len(prefix), np.nan, dtype=np.float32)
    prefixes = Query.of(corpus.loss[curve], length, blank, corpus.schedule[curve])
    if isinstance(predictor, ManyTargets):
        return predictor.forecast_many_targets(prefixes, owner, target, window, horizon)
    truth = None
    if getattr(predictor, "sees_truth", False):
        demand = pool.demand[template].astype(np.float64)
        truth = np.where(demand >= np.iinfo(np.int32).max, np.inf, demand - units)
    return predictor.forecast(prefixes.rows(owner, target, window, truth), horizon)
