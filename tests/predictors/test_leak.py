"""Nothing that a scheduler reads after u units knows anything of a curve beyond point u."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mara.allocators.laira import laira_table
from mara.config.workload import TaskSettings
from mara.curves.corpus import Corpus, load_corpus
from mara.curves.smoothing import demand, smooth
from mara.predictors.registry import make_predictor
from mara.predictors.table import tabulate
from mara.simulator.progress import log_progress
from mara.workload.forecast_table import row_offsets
from mara.workload.tasks import TaskPool, make_pool

SEEN = 30
"""Units after which everything is changed."""


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    whole = load_corpus().of(family="supervised", split="validation")
    return whole.select(np.isin(whole.group, np.unique(whole.group)[:8]))


@pytest.fixture(scope="module")
def pool(corpus: Corpus) -> TaskPool:
    settings = TaskSettings(templates=60, feasible_share=None, long_share=None)
    return make_pool(corpus, settings, np.random.default_rng(1))


@pytest.fixture(scope="module")
def changed(corpus: Corpus, pool: TaskPool) -> tuple[Corpus, TaskPool]:
    """The same curves up to point SEEN, others after it; the same targets and windows."""
    rng = np.random.default_rng(2)
    future = np.arange(corpus.loss.shape[1]) > SEEN
    factor = np.exp(rng.normal(0, 1, corpus.loss.shape)).astype(np.float32)
    loss = np.where(future, corpus.loss * factor, corpus.loss)
    other = replace(corpus, loss=loss)
    need = demand(smooth(loss)[pool.rows_in(corpus)], pool.target)
    return other, replace(pool, demand=need)


def rows_seen(pool: TaskPool, other: TaskPool) -> tuple[np.ndarray, np.ndarray]:
    """Rows of both tables for the same template after the same units, at most SEEN."""
    first, second = row_offsets(pool.demand), row_offsets(other.demand)
    common = np.minimum(np.minimum(np.diff(first), np.diff(second)), SEEN + 1)
    units = np.concatenate([np.arange(n) for n in common])
    template = np.repeat(np.arange(len(common)), common)
    return first[template] + units, second[template] + units


@pytest.mark.parametrize("name", ["wls", "wls_best", "slope_loglog", "slope_semilog", "kalman"])
def test_forecasts_do_not_see_the_future(
    name: str, corpus: Corpus, pool: TaskPool, changed: tuple[Corpus, TaskPool]
) -> None:
    predictor = make_predictor(name)
    before, after = tabulate(predictor, pool, corpus), tabulate(predictor, changed[1], changed[0])
    rows, others = rows_seen(pool, changed[1])
    assert len(rows) > 500
    np.testing.assert_array_equal(before.cdf[rows], after.cdf[others])
    np.testing.assert_array_equal(before.point[rows], after.point[others])


def test_the_oracle_does_and_the_test_sees_it(
    corpus: Corpus, pool: TaskPool, changed: tuple[Corpus, TaskPool]
) -> None:
    oracle = make_predictor("oracle")
    before, after = tabulate(oracle, pool, corpus), tabulate(oracle, changed[1], changed[0])
    rows, others = rows_seen(pool, changed[1])
    assert np.any(before.cdf[rows] != after.cdf[others])


def test_laira_and_progress_do_not_see_the_future(
    corpus: Corpus, pool: TaskPool, changed: tuple[Corpus, TaskPool]
) -> None:
    rows, others = rows_seen(pool, changed[1])
    before, after = laira_table(pool, corpus), laira_table(changed[1], changed[0])
    np.testing.assert_array_equal(before[rows], after[others])
    progress = log_progress(pool, corpus), log_progress(changed[1], changed[0])
    np.testing.assert_array_equal(progress[0][:, : SEEN + 1], progress[1][:, : SEEN + 1])
