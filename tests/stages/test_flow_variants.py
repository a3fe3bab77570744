"""The table of what the flow's parts are worth: what each variant may know, and a difference that is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mara.config.evaluation import EvaluationSettings
from mara.curves.synthetic import draw_curves
from mara.evaluation.prediction import protocol_cases
from mara.predictors.flow.history import RUNS, HistoryFlowPredictor
from mara.predictors.forecast import Forecast
from mara.stages.flow_variants import EVERY, asked, row, with_runs


class Recorder(HistoryFlowPredictor):
    """Notes the runs that it is shown."""

    def forecast_among(self, query, corpus, curve, runs, horizon=120):
        self.seen = runs
        return Forecast.from_point(np.full(len(query), 9.0), horizon)


@pytest.fixture(scope="module")
def corpus():
    curves = draw_curves(12, np.random.default_rng(0))
    return replace(curves, group=np.repeat(["a", "b"], 6), family=np.full(12, "vision"))


@pytest.mark.parametrize("count", [0, 1, RUNS])
def test_a_variant_with_runs_knows_so_many_of_the_own_group(corpus, count):
    cases = protocol_cases(corpus)
    predictor = Recorder()
    asked(with_runs(predictor, corpus, count), cases)
    there = predictor.seen >= 0
    assert np.all(there.sum(axis=1) == count)
    owner = np.broadcast_to(cases.curve[:, None], there.shape)
    assert np.all(corpus.group[predictor.seen[there]] == corpus.group[owner[there]])
    assert not np.any(predictor.seen == owner)


def test_a_row_holds_the_difference_to_the_flow(corpus):
    cases = protocol_cases(corpus)
    cases = cases.select(np.arange(0, len(cases), EVERY))
    assert set(cases.fraction) == {0.9, 0.7, 0.5, 0.25}
    horizon = int(cases.left.max())
    right = Forecast.from_point(cases.truth, horizon)
    never = Forecast.from_point(np.full(len(cases), np.inf), horizon)
    found = row("never", never, right, cases, EvaluationSettings(resamples=100))
    assert found["split"] == "held_out"
    assert found["nmae_to_flow"] == pytest.approx(found["nmae"]) != 0
    assert found["cdf_distance"] == pytest.approx(right.cdf.mean())
    same = row("flow", right, right, cases, EvaluationSettings(resamples=100))
    assert same["ncrps_to_flow"] == same["ncrps_diff_low"] == same["ncrps_diff_high"] == 0
