"""The prediction scores against closed forms, and what the calibration scores accept and refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from mara.curves.synthetic import draw_curves
from mara.evaluation.prediction import (
    Cases,
    ask,
    capped_crps,
    interval_coverage,
    paired_difference,
    pit_histogram,
    probability_integral,
    protocol_cases,
    resampled_scores,
    scores,
)
from mara.predictors.forecast import Forecast, Query
from mara.predictors.registry import make_predictor


def cases_of(truth, left, group=None):
    """Cases with given answers and dummy questions."""
    truth = np.asarray(truth, dtype=np.float64)
    count = len(truth)
    return Cases(
        query=Query.of(np.ones((count, 5)), np.full(count, 5), np.full(count, 0.5)),
        truth=truth,
        left=np.broadcast_to(left, count).astype(np.int64),
        group=np.arange(count).astype(str) if group is None else np.asarray(group),
        family=np.full(count, "supervised"),
        fraction=np.full(count, 0.5),
        curve=np.arange(count),
    )


def geometric(chance, horizon, count):
    """P(R <= b) = 1 - (1 - chance)^b, as many times as there are cases."""
    return Forecast.from_cdf(np.tile(1 - (1 - chance) ** np.arange(horizon + 1), (count, 1)))


def power_law_corpus():
    rng = np.random.default_rng(0)
    corpus = draw_curves(6, rng)
    exponent = np.array([0.3, 0.5, 0.7, 1.0, 0.4, 0.6])
    loss = 2.0 * (np.arange(200) + 1.0) ** -exponent[:, None]
    loss[4, 30:] = np.nan
    group = np.array(["a", "a", "b", "b", "c", "c"])
    return replace(
        corpus,
        loss=loss.astype(np.float32),
        diverged_at=np.array([200, 200, 200, 200, 30, 200], dtype=np.int32),
        group=group,
    )


def test_protocol_cases_are_those_of_the_protocol():
    corpus = power_law_corpus()
    cases = protocol_cases(corpus)
    assert len(cases) == 5 * 12 + 4  # the diverged curve is alive at the shortest prefix only
    assert set(zip(cases.query.length.tolist(), cases.left.tolist(), strict=True)) == {
        (20, 180),
        (40, 160),
        (80, 120),
    }
    row = np.flatnonzero((cases.group == "a") & (cases.query.length == 20) & (cases.fraction == 0.7))[1]
    mean = np.convolve(corpus.loss[1].astype(float), np.ones(5) / 5, "valid")  # point 4 onwards
    target = 0.7 * mean[15]
    assert cases.query.target[row] == pytest.approx(target, rel=1e-5)
    assert cases.truth[row] == np.flatnonzero(mean <= target)[0] + 4 - 19
    assert np.isnan(cases.query.loss[row, 20:]).all()
    hard = (cases.group == "c") & (cases.left == 180) & (cases.fraction == 0.25)
    np.testing.assert_array_equal(np.isinf(cases.truth[hard]), [True, False])  # the first one has diverged


def test_oracle_makes_no_error():
    corpus = power_law_corpus()
    cases = protocol_cases(corpus)
    by_case = scores(ask(make_predictor("oracle"), cases, corpus, batch=7), cases)
    for score in ("nmae", "ncrps", "log_error", "brier", "false_never", "false_reach"):
        assert np.nanmax(by_case[score]) == 0


def test_crps_of_a_step_is_the_absolute_error_capped():
    cases = cases_of([10, 10, np.inf, 150], 100)
    forecast = Forecast.from_point(np.array([30.0, np.inf, 40.0, 160.0]), horizon=180)
    np.testing.assert_allclose(capped_crps(forecast, cases.truth, cases.left), [20, 90, 60, 0])
    np.testing.assert_allclose(scores(forecast, cases)["nmae"], [0.2, 0.9, 0.6, 0])


def test_crps_of_a_geometric_forecast_matches_the_closed_form():
    """With survival q^b, sum over b < y of (1 - q^b)^2 and over b >= y of q^(2b)."""
    q, y = 0.9, 7
    expected = y - 2 * (1 - q**y) / (1 - q) + (1 - q ** (2 * y)) / (1 - q**2) + q ** (2 * y) / (1 - q**2)
    crps = capped_crps(geometric(1 - q, 2000, 1), np.array([float(y)]), np.array([2000]))
    assert crps[0] == pytest.approx(expected, rel=1e-5)


def test_fair_crps_of_samples_is_unbiased_for_the_distribution():
    rng = np.random.default_rng(0)
    law = stats.geom(0.15)
    horizon, members, count = 120, 8, 20_000
    truth = law.rvs(count, random_state=rng).astype(float)
    paths = law.rvs((count, members), random_state=rng)
    cdf = (paths[:, :, None] <= np.arange(horizon + 1)).mean(axis=1)
    left = np.full(count, horizon)
    exact = capped_crps(geometric(0.15, horizon, count), truth, left).mean()
    fair = capped_crps(Forecast.from_cdf(cdf, samples=members), truth, left).mean()
    raw = capped_crps(Forecast.from_cdf(cdf), truth, left).mean()
    assert fair == pytest.approx(exact, rel=0.02)
    assert raw > 1.08 * exact


def test_crps_is_proper():
    rng = np.random.default_rng(1)
    truth = stats.geom(0.05).rvs(4000, random_state=rng).astype(float)
    left = np.full(4000, 60)
    score = {
        chance: capped_crps(geometric(chance, 60, 4000), truth, left).mean() for chance in (0.03, 0.05, 0.08)
    }
    assert min(score, key=score.get) == 0.05


def widened(law_width, width, count, rng):
    """Truths from a log-normal law and forecasts whose log width is off by a factor."""
    centre = rng.uniform(2, 4, size=count)
    truth = np.ceil(np.exp(centre + law_width * rng.standard_normal(count)))
    grid = np.log(np.maximum(np.arange(181), 1e-9))
    cdf = stats.norm.cdf((grid - centre[:, None]) / (law_width * width))
    return Forecast.from_cdf(cdf), truth


@pytest.mark.parametrize(("width", "accepted"), [(1.0, True), (0.8, False), (1.25, False)])
def test_coverage_accepts_the_right_width_only(width, accepted):
    forecast, truth = widened(0.5, width, 6000, np.random.default_rng(2))
    lower, upper = probability_integral(forecast, truth, np.full(6000, 180))
    coverage = interval_coverage(lower, upper).mean()
    assert (abs(coverage - 0.8) < 0.03) == accepted
    histogram = pit_histogram(lower, upper)
    assert histogram.mean() == pytest.approx(1)
    assert (np.abs(histogram - 1).max() < 0.12) == accepted


def test_coverage_is_exact_for_a_coarse_perfect_forecast():
    """Half of the targets are never reached, as forecast: quantile intervals would cover all of them."""
    rng = np.random.default_rng(3)
    truth = np.where(rng.random(5000) < 0.5, np.inf, 10.0)
    cdf = np.where(np.arange(101) >= 10, 0.5, 0.0)
    forecast = Forecast.from_cdf(np.tile(cdf, (5000, 1)))
    lower, upper = probability_integral(forecast, truth, np.full(5000, 100))
    assert interval_coverage(lower, upper).mean() == pytest.approx(0.8, abs=0.01)
    assert np.abs(pit_histogram(lower, upper) - 1).max() < 0.1


def test_false_alarms_are_counted_among_their_own():
    cases = cases_of([10, 20, np.inf, np.inf, np.inf], 100)
    forecast = Forecast.from_point(np.array([12.0, np.inf, 30.0, np.inf, np.inf]), horizon=120)
    by_case = scores(forecast, cases)
    assert np.nanmean(by_case["false_never"]) == pytest.approx(1 / 2)
    assert np.nanmean(by_case["false_reach"]) == pytest.approx(1 / 3)
    np.testing.assert_allclose(by_case["brier"], [0, 1, 1, 0, 0])


def test_interval_is_over_groups_not_cases():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(12), 200)
    truth = np.repeat(rng.uniform(10, 90, 12).round(), 200)
    cases = cases_of(truth, 100, group.astype(str))
    forecast = Forecast.from_point(np.full(len(truth), 50.0), horizon=100)
    by_case = scores(forecast, cases)
    shifted = {name: values + 0.05 for name, values in by_case.items()}
    difference = paired_difference(shifted, by_case, "nmae", cases.group, 500, rng)
    assert difference.low == pytest.approx(0.05)  # pairing takes away what the groups share
    assert difference.high == pytest.approx(0.05)
    interval = resampled_scores({"never": by_case}, "nmae", cases.group, 500, rng).interval([1.0])
    assert interval.low < interval.estimate < interval.high
    assert interval.high - interval.low > 0.1  # 2,400 cases, but twelve groups
