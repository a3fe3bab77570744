"""Forecasts on people's logs are the study's forecasts, in the log's own numbers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mara.curves.corpus import load_corpus
from mara.curves.readers.log import Log
from mara.errors import InputError
from mara.live.forecast import Question, forecast_all, forecast_remaining
from mara.predictors.forecast import Query
from mara.predictors.kalman import Kalman

STEPS = np.arange(1, 61) * 250.0
LOSS = 2 * np.arange(1, 61) ** -0.5


def log_of(values: np.ndarray, position: np.ndarray = STEPS, **changes: object) -> Log:
    log = Log("run", Path("run.csv"), "csv", "loss", "step", "step", position[: len(values)], values, False)
    return replace(log, **changes)  # type: ignore[arg-type]


def test_the_answer_is_the_predictors_in_the_logs_axis() -> None:
    query = Query.of(LOSS[None] / LOSS[0], np.array([60]), np.array([0.23 / LOSS[0]]))
    units = Kalman().forecast(query)
    remaining = forecast_remaining(log_of(LOSS), 0.23, deadline=2500, predictor=Kalman())
    np.testing.assert_allclose(remaining.cdf, units.cdf[0])
    assert remaining.median == units.median()[0] * 250
    assert remaining.interval == (units.quantile(0.1)[0] * 250, units.quantile(0.9)[0] * 250)
    assert remaining.chance_of_deadline == pytest.approx(units.probability_within(10)[0])
    assert remaining.horizon == 120 * 250


def test_scale_and_axis_do_not_matter() -> None:
    plain = forecast_remaining(log_of(LOSS), 0.23)
    scaled = forecast_remaining(log_of(1e9 * LOSS, STEPS * 1e-3), 0.23e9)
    np.testing.assert_allclose(plain.cdf, scaled.cdf, atol=1e-4)
    assert scaled.median == pytest.approx(plain.median * 1e-3)


def test_an_accuracy_is_forecast_as_its_distance_to_the_best() -> None:
    accuracy = log_of(1 - LOSS / 4, metric="accuracy", rising=True)
    error = log_of(LOSS / 4)
    one, other = forecast_all([Question(accuracy, 0.94), Question(error, 0.06)])
    np.testing.assert_allclose(one.cdf, other.cdf, atol=1e-5)


def test_what_is_decided_needs_no_forecast() -> None:
    assert forecast_remaining(log_of(LOSS), 1.0).reached
    assert forecast_remaining(log_of(LOSS), 1.0).median == 0
    broken = forecast_remaining(log_of(LOSS, diverged=True), 0.2)
    assert broken.median == np.inf
    assert broken.cdf[-1] == 0
    assert forecast_remaining(log_of(LOSS[:1]), 0.2).cdf.shape == (121,)


def test_many_answers_are_those_of_single_questions() -> None:
    questions = [Question(log_of(LOSS[:count]), target) for count in (5, 30, 60) for target in (0.1, 0.25)]
    for question, answer in zip(questions, forecast_all(questions), strict=True):
        alone = forecast_remaining(question.log, question.target)
        np.testing.assert_allclose(answer.cdf, alone.cdf, atol=1e-5)


def test_longer_is_surer() -> None:
    remaining = forecast_remaining(log_of(LOSS), 0.23)
    chances = [remaining.chance_within(length) for length in np.linspace(0, 40_000, 50)]
    assert np.all(np.diff(chances) >= 0)
    low, high = remaining.interval
    assert low <= remaining.median <= high


def test_a_negative_deadline_is_refused() -> None:
    with pytest.raises(InputError, match="0 or more"):
        forecast_remaining(log_of(LOSS), 0.2, deadline=-1)


def test_intervals_on_recorded_curves_hold_what_happened() -> None:
    """As logs with steps of 7 and scale 3, seen up to point 60, asked about what point 100 had reached."""
    corpus = load_corpus().of(family="vision")
    rows = np.flatnonzero(corpus.diverged_at == 200)[::4]
    loss = corpus.loss[rows].astype(float) * 3
    smoothed = np.array([np.convolve(row, np.ones(5) / 5, "valid") for row in loss])
    target = smoothed[:, 96] * 1.0001
    first = np.array([np.flatnonzero(row <= goal)[0] + 4 for row, goal in zip(smoothed, target, strict=True)])
    open_ = np.flatnonzero(first > 60)
    questions = [Question(log_of(loss[k, :61], 7.0 * np.arange(61)), float(target[k])) for k in open_]
    answers = forecast_all(questions)
    inside = [
        a.interval[0] <= 7 * (first[k] - 60) <= a.interval[1] for a, k in zip(answers, open_, strict=True)
    ]
    assert len(inside) > 50
    assert 0.6 < np.mean(inside) <= 1
