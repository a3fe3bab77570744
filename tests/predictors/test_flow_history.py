"""The flow with earlier runs: which it may see, and that they help."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from mara.config.flow import ExampleSettings, FlowSettings, TrainingSettings
from mara.config.workload import TaskSettings
from mara.curves.smoothing import demand, smooth
from mara.predictors.examples import Examples
from mara.predictors.flow.calibration import mean_ncrps
from mara.predictors.flow.features import describe_query
from mara.predictors.flow.history import RUNS, Earlier, HistoryFlowPredictor, choose_runs, tokens
from mara.predictors.forecast import KnowsHistory, Query
from mara.predictors.table import tabulate
from mara.workload.tasks import make_pool

torch.set_num_threads(1)

SETTINGS = FlowSettings(
    examples=ExampleSettings(
        examples=6000, synthetic_curves=50, synthetic_share=0.1, altered_copies=2, trials=300
    ),
    training=TrainingSettings(steps=250, batch=256, warm_up=20, checkpoint_every=250, average=0.98),
    hidden=64,
    width=64,
    depth=1,
)


def histories(corpus, curve, count, rng) -> Earlier:
    """``count`` earlier runs for prefixes of curves."""
    return Earlier.of(corpus, curve, choose_runs(corpus.group, curve, np.full(len(curve), count), rng))


@pytest.fixture(scope="module")
def flow(corpus):
    return HistoryFlowPredictor(SETTINGS).fit(corpus, np.random.default_rng(0))


def test_chooses_other_runs_of_the_group_but_not_the_barred_one(corpus):
    rng = np.random.default_rng(0)
    curve = rng.integers(len(corpus), size=200)
    barred = choose_runs(corpus.group, curve, np.ones(200, dtype=int), rng)[:, 0]
    count = rng.integers(0, RUNS + 1, 200)
    runs = choose_runs(corpus.group, curve, count, rng, barred)
    there = runs >= 0
    assert np.all(there.sum(axis=1) == count)
    assert np.all(corpus.group[runs[there]] == np.broadcast_to(corpus.group[curve, None], runs.shape)[there])
    assert not np.any(runs == curve[:, None])
    assert not np.any(runs == barred[:, None])


def test_tokens_do_not_change_with_the_scale(corpus):
    curve, length = np.arange(60), np.full(60, 30)
    earlier = histories(corpus, curve, 2, np.random.default_rng(1))
    plain = tokens(describe_query(Query.of(corpus.loss[curve], length, np.ones(60))), earlier)
    bigger = Earlier(1024 * earlier.loss, earlier.schedule, earlier.kinship, earlier.configuration)
    scaled = tokens(describe_query(Query.of(1024 * corpus.loss[curve], length, np.ones(60))), bigger)
    np.testing.assert_allclose(plain[0], scaled[0], atol=1e-3)
    assert np.all(plain[1].sum(axis=1) == 3)


def test_earlier_runs_of_the_same_curve_help(flow, corpus):
    held_out = corpus.of(split="validation")
    rng = np.random.default_rng(3)
    curve = rng.integers(len(held_out), size=400)
    length = rng.integers(5, 60, 400)
    best = Query.of(held_out.loss[curve], length, np.ones(400)).best_smoothed()
    target = 0.7 * best
    query = Query.of(held_out.loss[curve], length, target, held_out.schedule[curve])
    reached = demand(smooth(held_out.loss[curve].astype(np.float64)), target).astype(float)
    remaining = np.where(reached < 200, reached - length + 1, np.inf)
    examples = Examples(query, remaining, 200 - length, held_out.group[curve])
    error = [
        mean_ncrps(flow.forecast_with(query, histories(held_out, curve, runs, rng), 199).cdf, examples)
        for runs in (0, 3)
    ]
    assert error[1] < 0.9 * error[0], error


def test_without_history_it_is_an_ordinary_predictor(flow, corpus):
    length = np.full(len(corpus), 20)
    query = Query.of(corpus.loss, length, 0.8 * corpus.loss[:, 19])
    nothing = flow.forecast_with(query, Earlier.nothing(len(corpus), 200))
    np.testing.assert_allclose(flow.forecast(query).cdf, nothing.cdf, atol=1e-6)
    assert flow.name == "flow_history"


def test_a_table_knows_earlier_runs_but_never_the_one_that_set_the_target(flow, corpus, monkeypatch):
    held_out = corpus.of(split="validation")
    tasks = TaskSettings(templates=12, feasible_share=None, long_share=None)
    pool = make_pool(held_out, tasks, np.random.default_rng(0))
    curve = pool.rows_in(held_out)
    asked = list(zip(curve.tolist(), pool.target.astype(np.float32).tolist(), strict=True))
    assert len(set(asked)) == len(asked), "curve and target tell the templates apart"
    seen = {}

    def spy(query, among, rows, runs, horizon=120):
        for row, target, chosen in zip(rows, query.target, runs, strict=True):
            seen.setdefault((int(row), float(target)), set()).update(chosen.tolist())
        return HistoryFlowPredictor.forecast_among(flow, query, among, rows, runs, horizon)

    monkeypatch.setattr(flow, "forecast_among", spy)
    assert isinstance(flow, KnowsHistory)
    with_runs = tabulate(flow, pool, held_out)
    alone = flow.forecast(
        Query.of(
            held_out.loss[curve], np.ones(12, dtype=int), pool.target, held_out.schedule[curve], pool.window
        )
    )
    assert np.abs(with_runs.cdf[with_runs.offset[:-1]] - alone.cdf).max() > 0.01
    assert set(seen) == set(asked)
    reference = {name: row for row, name in enumerate(held_out.id)}
    for template, question in enumerate(asked):
        assert reference[pool.reference_id[template]] not in seen[question]
        assert len(seen[question] - {-1}) == RUNS


def test_of_the_present_run_only_the_prefix_counts(flow, corpus):
    held_out = corpus.of(split="validation")
    _, curve = np.unique(held_out.group, return_index=True)
    length = np.arange(10, 10 + len(curve))
    target = 0.7 * held_out.loss[curve, 9]
    runs = flow.choose(held_out, curve)

    def cdf(changed: np.ndarray, factor: float) -> np.ndarray:
        """Forecasts where the losses of rows ``changed`` (B,) after the B prefixes are multiplied."""
        loss = held_out.loss.copy()
        future = np.arange(loss.shape[1]) >= length[:, None]
        loss[changed] *= np.where(future, np.float32(factor), np.float32(1))
        among = replace(held_out, loss=loss)
        np.testing.assert_array_equal(flow.choose(among, curve), runs)
        query = replace(Query.of(loss[curve], length, target, held_out.schedule[curve]), loss=loss[curve])
        return flow.forecast_among(query, among, curve, runs).cdf

    unchanged = cdf(curve, 1.0)
    np.testing.assert_array_equal(cdf(curve, 0.3), unchanged)
    assert np.abs(cdf(runs[:, 0], 0.3) - unchanged).max() > 0.01, "futures of earlier runs are known"


def test_a_table_may_know_fewer_runs(flow, corpus):
    held_out = corpus.of(split="validation")
    pool = make_pool(
        held_out,
        TaskSettings(templates=6, feasible_share=None, long_share=None),
        np.random.default_rng(0),
    )
    curve = pool.rows_in(held_out)
    first = Query.of(
        held_out.loss[curve], np.ones(6, dtype=int), pool.target, held_out.schedule[curve], pool.window
    )
    none = Earlier.of(held_out, curve, np.full((6, RUNS), -1))
    table = tabulate(flow, pool, held_out, refresh=0.5, earlier_runs=0)
    np.testing.assert_allclose(table.cdf[table.offset[:-1]], flow.forecast_with(first, none).cdf, atol=2e-3)


def test_questions_about_one_prefix_that_know_the_same_runs_are_answered_as_if_asked_alone(flow, corpus):
    held_out = corpus.of(split="validation")
    curve = np.array([0, 1, 0, 0, 1])
    runs = flow.choose(held_out, curve, barred=np.array([2, 3, 3, 2, 3]))
    query = Query.of(
        held_out.loss[curve], np.array([9, 9, 9, 9, 5]), np.linspace(0.2, 0.5, 5) * held_out.loss[curve, 0]
    )
    together = flow.forecast_among(query, held_out, curve, runs)
    for row in range(5):
        alone = np.array([row])
        one = flow.forecast_among(query.rows(alone), held_out, curve[alone], runs[alone])
        np.testing.assert_allclose(one.cdf[0], together.cdf[row], atol=0.02)
