"""The model that the package ships."""

from __future__ import annotations

import numpy as np

from mara.curves.corpus import load_corpus
from mara.predictors.examples import draw_examples
from mara.predictors.flow.calibration import mean_ncrps
from mara.predictors.flow.lightweight import PRETRAINED, LightweightPredictor
from mara.predictors.kalman import Kalman


def test_is_small_and_beats_the_filter_that_it_starts_from():
    assert PRETRAINED.stat().st_size < 3_000_000
    model = LightweightPredictor.load()
    asked = draw_examples(load_corpus().of(split="validation"), 1500, True, np.random.default_rng(0))
    error = [mean_ncrps(predictor.forecast(asked.query, 180).cdf, asked) for predictor in (model, Kalman())]
    assert error[0] < 0.8 * error[1], error
