"""The model that the package ships."""

from __future__ import annotations

import numpy as np

from mara.curves.corpus import load_corpus
from mara.predictors.examples import draw_examples
from mara.predictors.flow.calibration import mean_ncrps
from mara.predictors.flow.lightweight import PRETRAINED, LightweightPredictor
from mara.predictors.forecast import Query
from mara.predictors.kalman import Kalman


def test_is_small_and_beats_the_filter_that_it_starts_from():
    assert PRETRAINED.stat().st_size < 3_000_000
    model = LightweightPredictor.load()
    asked = draw_examples(load_corpus().of(split="validation"), 1500, True, np.random.default_rng(0))
    error = [mean_ncrps(predictor.forecast(asked.query, 180).cdf, asked) for predictor in (model, Kalman())]
    assert error[0] < 0.8 * error[1], error


def test_needs_no_schedule():
    loss = 2.0 / np.sqrt(1.0 + np.arange(200.0))
    asked = Query.of(loss[None], np.array([30]), np.array([0.25]))
    assert 30 <= LightweightPredictor.load().forecast(asked).point[0] <= 45, "the power law crosses after 36"
