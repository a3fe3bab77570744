"""The direct head: proper distributions, invariances, censored likelihood."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from mara.config.flow import DirectSettings, ExampleSettings, TrainingSettings
from mara.curves.synthetic import draw_curves
from mara.predictors.direct import DirectPredictor
from mara.predictors.flow.features import Description, describe_query
from mara.predictors.flow.passage import interval_cdf, interval_shares
from mara.predictors.flow.trajectory import KNOT, KNOTS
from mara.predictors.flow.window import crossing_loss
from mara.predictors.forecast import Query

SETTINGS = DirectSettings(
    examples=ExampleSettings(examples=4000, synthetic_curves=200, altered_copies=1, trials=400),
    training=TrainingSettings(steps=60, batch=256, warm_up=5, checkpoint_every=30),
    hidden=48,
    depth=1,
)


torch.set_num_threads(1)


@pytest.fixture(scope="module")
def corpus():
    curves = draw_curves(400, np.random.default_rng(5))
    number = np.arange(400) // 8
    return replace(
        curves,
        family=np.full(400, "supervised"),
        group=np.array([f"group-{k}" for k in number]),
        split=np.where(number % 3 == 0, "calibration", "train"),
    )


@pytest.fixture(scope="module")
def direct(corpus):
    return DirectPredictor(SETTINGS, deadline=True).fit(corpus, np.random.default_rng(0))


def queries(corpus, factor: float = 1.0, window=None) -> Query:
    length = np.minimum(np.random.default_rng(2).integers(1, 120, len(corpus)), corpus.diverged_at)
    loss = corpus.loss * np.float32(factor)
    best = Query.of(loss, length, np.ones(len(corpus))).best_smoothed()
    return Query.of(loss, length, 0.7 * best, corpus.schedule, window)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_examples_come_from_the_mix_of_curves_that_the_settings_name(corpus, share, monkeypatch):
    examples = SETTINGS.examples.model_copy(
        update={
            "examples": 400,
            "altered_copies": 0,
            "synthetic_share": share,
            "longest_prefix": 30,
            "trials": 50,
        }
    )
    training = SETTINGS.training.model_copy(update={"steps": 1})
    settings = SETTINGS.model_copy(update={"examples": examples, "training": training})
    asked = []

    def spy(query: Query) -> Description:
        asked.append(query)
        return describe_query(query)

    monkeypatch.setattr("mara.predictors.direct.describe_query", spy)
    monkeypatch.setattr("mara.predictors.direct._PRIOR_PREFIXES", 1000)
    large = replace(corpus, loss=corpus.loss * np.float32(1e8))
    for deadline in (False, True):
        asked.clear()
        DirectPredictor(settings, deadline).fit(large, np.random.default_rng(1))
        fitted_on = asked[0]
        assert len(fitted_on) == 400
        assert np.mean(fitted_on.loss[:, 0] < 1e4) == share, "synthetic curves lie lower here"
        assert 20 < fitted_on.length.max() <= 30
        hidden = np.isnan(fitted_on.schedule).all(axis=1).mean()
        assert hidden > 0.2
        assert np.isfinite(fitted_on.window).any() == (deadline and share < 1)


def test_gives_proper_distributions_that_scale_and_order_do_not_change(direct, corpus):
    query = queries(corpus)
    forecast = direct.forecast(query)
    assert np.all(np.diff(forecast.cdf, axis=1) >= 0)
    assert np.all((forecast.cdf >= 0) & (forecast.cdf <= 1))
    assert np.abs(forecast.cdf - direct.forecast(queries(corpus, 1024.0)).cdf).max() < 0.05
    order = np.random.default_rng(1).permutation(len(query))
    assert np.abs(forecast.cdf[order] - direct.forecast(query.rows(order)).cdf).max() < 0.02


def test_the_window_is_an_input(direct, corpus):
    near, far = (direct.forecast(queries(corpus, window=np.full(len(corpus), w))) for w in (5.0, 120.0))
    assert np.abs(near.cdf - far.cdf).max() > 0.01


def test_only_the_prefix_counts(direct, corpus):
    query = queries(corpus)
    spoiled = replace(query, loss=np.where(query.seen(), query.loss, np.float32(1e-3)))
    np.testing.assert_array_equal(direct.forecast(query).cdf, direct.forecast(spoiled).cdf)


def test_odd_prefixes_get_defined_answers(direct):
    loss = np.stack([np.ones(200), np.full(200, np.nan), np.linspace(1, 2, 200), np.ones(200), np.ones(200)])
    query = Query.of(loss, np.array([1, 20, 50, 30, 30]), np.array([0.5, 0.5, 0.5, 1.5, 0.0]))
    forecast = direct.forecast(query)
    assert np.all(np.isfinite(forecast.cdf))
    assert np.all(forecast.cdf[3] == 1)
    assert np.all(forecast.cdf[4] == 0)


def test_saving_and_loading_keeps_the_forecasts(direct, corpus, tmp_path: Path):
    direct.save(tmp_path / "direct")
    loaded = DirectPredictor.load(tmp_path / "direct")
    np.testing.assert_array_equal(loaded.forecast(queries(corpus)).cdf, direct.forecast(queries(corpus)).cdf)


def test_shares_and_cdf_are_inverse():
    share = np.random.default_rng(0).dirichlet(np.ones(KNOTS + 1), 20).astype(np.float32)
    np.testing.assert_allclose(interval_shares(interval_cdf(share)), share, atol=1e-6)


def test_a_censored_crossing_counts_as_any_later_one():
    logits = torch.zeros(2, KNOTS + 1)
    last = torch.tensor([10, KNOTS])
    exact = crossing_loss(logits[:1], torch.tensor([3]), last[:1])
    assert exact.item() == pytest.approx(np.log(KNOTS + 1))
    tail = crossing_loss(logits[:1], torch.tensor([KNOTS]), last[:1])
    assert tail.item() == pytest.approx(-np.log((KNOTS + 1 - 10) / (KNOTS + 1)), rel=1e-5)


def test_knots_end_the_intervals():
    share = np.zeros((1, KNOTS + 1), dtype=np.float32)
    share[0, 20] = 1
    cdf = interval_cdf(share)[0]
    assert cdf[KNOT[20]] == 1
    assert cdf[KNOT[19]] == 0
