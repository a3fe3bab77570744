"""The flow as a whole: invariances, odd prefixes, resuming, the window."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from mara.config.flow import ExampleSettings, FlowSettings, TrainingSettings, WindowSettings
from mara.curves.synthetic import draw_curves
from mara.predictors.flow.features import describe_query
from mara.predictors.flow.predictor import FlowPredictor
from mara.predictors.flow.training import Run
from mara.predictors.forecast import Predictor, Query

EXAMPLES = ExampleSettings(examples=6000, synthetic_curves=300, altered_copies=1, trials=400)
TRAINING = TrainingSettings(steps=40, batch=256, warm_up=5, checkpoint_every=20)
SETTINGS = FlowSettings(
    examples=EXAMPLES,
    training=TRAINING,
    hidden=48,
    width=48,
    depth=1,
    window=WindowSettings(tasks=300, steps=60),
)


torch.set_num_threads(1)


def make_corpus(count: int = 400):
    """Synthetic curves as if they were recorded ones, in groups of eight, a third of them for calibration."""
    curves = draw_curves(count, np.random.default_rng(5))
    number = np.arange(count) // 8
    return replace(
        curves,
        family=np.full(count, "supervised"),
        group=np.array([f"group-{k}" for k in number]),
        split=np.where(number % 3 == 0, "calibration", "train"),
    )


@pytest.fixture(scope="module")
def corpus():
    return make_corpus()


@pytest.fixture(scope="module")
def flow(corpus):
    return FlowPredictor(SETTINGS, deadline=True).fit(corpus, np.random.default_rng(0))


def queries(corpus, factor: float = 1.0, window=None) -> Query:
    rng = np.random.default_rng(2)
    length = np.minimum(rng.integers(1, 120, len(corpus)), corpus.diverged_at)
    loss = corpus.loss * np.float32(factor)
    best = Query.of(loss, length, np.ones(len(corpus))).best_smoothed()
    target = best * rng.uniform(0.3, 0.95, len(corpus))
    return Query.of(loss, length, target, corpus.schedule, window)


def test_is_a_predictor_with_proper_distributions(flow, corpus):
    assert isinstance(flow, Predictor)
    for horizon in (30, 120, 199):
        forecast = flow.forecast(queries(corpus), horizon)
        assert forecast.cdf.shape == (len(corpus), horizon + 1)
        assert np.all(np.diff(forecast.cdf, axis=1) >= 0)
        assert forecast.cdf.min() >= 0
        assert forecast.cdf.max() <= 1
    assert 0.05 < forecast.cdf[:, -1].mean() < 0.95


def test_scale_changes_nothing(flow, corpus):
    plain, scaled = flow.forecast(queries(corpus)), flow.forecast(queries(corpus, 1024.0))
    assert np.abs(plain.cdf - scaled.cdf).mean() < 1e-3
    assert np.quantile(np.abs(plain.cdf - scaled.cdf), 0.99) < 0.05


def test_order_of_a_batch_changes_nothing(flow, corpus):
    query = queries(corpus)
    order = np.random.default_rng(1).permutation(len(query))
    whole, shuffled = flow.forecast(query), flow.forecast(query.rows(order))
    np.testing.assert_allclose(whole.cdf[order], shuffled.cdf, atol=0.04)
    assert np.abs(whole.cdf[order] - shuffled.cdf).mean() < 1e-3


def test_only_the_prefix_counts(flow, corpus):
    query = queries(corpus)
    future = np.arange(200) >= query.length[:, None]
    spoiled = replace(query, loss=np.where(future, np.float32(1e-3), query.loss))
    np.testing.assert_array_equal(flow.forecast(query).cdf, flow.forecast(spoiled).cdf)


def test_many_targets_agree_with_one_by_one(flow, corpus):
    query = queries(corpus)
    owner = np.repeat(np.arange(len(query)), 2)
    target = np.repeat(query.target, 2) * np.tile([1.0, 0.8], len(query)).astype(np.float32)
    window = np.repeat(query.window, 2)
    many = flow.forecast_many_targets(query, owner, target, window)
    one = flow.forecast(query.rows(owner, target, window))
    assert np.abs(many.cdf - one.cdf).mean() < 1e-3
    assert np.all(many.cdf[0::2] >= many.cdf[1::2] - 1e-6), "a lower target comes no earlier"


def test_no_solver_steps_are_the_prior(flow, corpus):
    still = FlowPredictor(SETTINGS.model_copy(update={"solver_steps": 0}))
    still.__dict__ |= {key: value for key, value in flow.__dict__.items() if key != "settings"}
    description = describe_query(queries(corpus))
    start = np.broadcast_to(flow.start, (len(description), *flow.start.shape))
    np.testing.assert_allclose(still.paths(description), flow.prior.to_future(description, start), rtol=1e-5)
    moved = flow.paths(description)
    assert np.median(np.abs(moved - still.paths(description))) > 1e-4


def test_an_untrained_flow_is_the_prior(corpus):
    settings = SETTINGS.model_copy(
        update={"training": TRAINING.model_copy(update={"steps": 1, "learning_rate": 1e-9})}
    )
    flow = FlowPredictor(settings).fit(corpus, np.random.default_rng(0))
    description = describe_query(queries(corpus))
    start = np.broadcast_to(flow.start, (len(description), *flow.start.shape))
    prior = flow.prior.to_future(description, start)
    np.testing.assert_allclose(flow.paths(description), prior, rtol=1e-3, atol=1e-3)


def test_a_window_moves_the_forecast_and_its_absence_does_not(flow, corpus):
    query = queries(corpus)
    short = flow.forecast(queries(corpus, window=query.length + 2.0))
    long = flow.forecast(queries(corpus, window=np.full(len(query), 120.0)))
    assert np.abs(short.cdf - long.cdf).max() > 0.01
    plain = FlowPredictor(SETTINGS)
    plain.__dict__ |= {key: value for key, value in flow.__dict__.items() if key != "ratio"} | {"ratio": None}
    np.testing.assert_array_equal(plain.forecast(query).cdf, flow.forecast(query).cdf)


def test_odd_prefixes_get_defined_answers(flow):
    points = 200
    fall = np.linspace(2.0, 1.0, points)
    rows = {
        "one point": (fall, 1, 1.0),
        "constant": (np.ones(points), 50, 0.5),
        "rising": (fall[::-1], 50, 0.9),
        "NaN inside": (np.where(np.arange(points) == 7, np.nan, fall), 50, 0.5),
        "infinity inside": (np.where(np.arange(points) == 7, np.inf, fall), 50, 0.5),
        "zero inside": (np.where(np.arange(points) == 7, 0.0, fall), 50, 0.5),
        "reached": (fall, 100, 1.9),
        "target 0": (fall, 50, 0.0),
        "target below 0": (fall, 50, -1.0),
        "target NaN": (fall, 50, np.nan),
        "all NaN": (np.full(points, np.nan), 50, 0.5),
        "tiny": (fall * 1e-30, 50, 1e-30),
        "spike": (np.where(np.arange(points) == 49, 1e30, fall), 50, 0.5),
    }
    loss = np.stack([row[0] for row in rows.values()])
    length = np.array([row[1] for row in rows.values()])
    target = np.array([row[2] for row in rows.values()])
    for window in (None, np.full(len(rows), 30.0), np.zeros(len(rows))):
        forecast = flow.forecast(Query.of(loss, length, target, None, window))
        assert np.all(np.isfinite(forecast.cdf))
        assert not np.isnan(forecast.point).any()
        by_name = dict(zip(rows, forecast.cdf, strict=True))
        assert np.all(by_name["reached"] == 1)
        for name in ("target 0", "target below 0", "NaN inside", "infinity inside", "zero inside"):
            assert np.all(by_name[name] == 0), name


def test_a_prefix_of_a_hundred_thousand_points(flow):
    loss = (1.0 + np.arange(100_000)) ** -0.3
    query = Query.of(loss[None], np.array([100_000]), np.array([0.5 * loss[-1]]))
    cdf = flow.forecast(query).cdf
    assert np.all(np.isfinite(cdf))
    assert cdf[0, -1] < 0.2


def test_an_interrupted_run_ends_with_the_same_bytes(corpus, tmp_path: Path, monkeypatch):
    whole = FlowPredictor(SETTINGS).fit(
        corpus, np.random.default_rng(7), Run(tmp_path / "a.pt", tmp_path / "a.csv")
    )
    whole.save(tmp_path / "whole")

    class Stop(Exception):
        pass

    import mara.predictors.flow.training as training

    write = training._write_checkpoint

    def write_and_stop(*arguments):
        write(*arguments)
        raise Stop

    run = Run(tmp_path / "b.pt", tmp_path / "b.csv")
    with monkeypatch.context() as patch:
        patch.setattr(training, "_write_checkpoint", write_and_stop)
        with pytest.raises(Stop):
            FlowPredictor(SETTINGS).fit(corpus, np.random.default_rng(7), run)
    assert run.checkpoint is not None
    assert run.checkpoint.exists()
    FlowPredictor(SETTINGS).fit(corpus, np.random.default_rng(7), run).save(tmp_path / "resumed")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "resumed").read_bytes()
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    run.finished()
    assert not run.checkpoint.exists()


def test_saving_and_loading_keeps_the_forecasts(flow, corpus, tmp_path: Path):
    flow.save(tmp_path / "flow")
    loaded = FlowPredictor.load(tmp_path / "flow")
    np.testing.assert_array_equal(loaded.forecast(queries(corpus)).cdf, flow.forecast(queries(corpus)).cdf)
