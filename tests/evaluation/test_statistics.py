"""Statistics against closed forms, and the intervals' coverage against a simulation."""

import time

import numpy as np
import pytest
from scipy import stats

from mara.evaluation.statistics import (
    Interval,
    Sums,
    combine_difference,
    contrast_p_value,
    holm,
    jain,
    overlap,
    percentile_interval,
    resample_weights,
    resampled_ratios,
)


def draw(sums, resamples=2000, seed=0):
    weights = resample_weights(sums[0].hits.shape[0], resamples, np.random.default_rng(seed))
    return resampled_ratios(sums, weights, np.random.default_rng([seed, 1]))


def test_weights_draw_every_unit_equally_often_and_as_many_as_there_are():
    weights = resample_weights(30, 4000, np.random.default_rng(1))
    assert (weights.sum(axis=1) == 30).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(30), abs=0.08)
    # a multinomial count has variance 1 - 1/U
    assert weights.var() == pytest.approx(1 - 1 / 30, abs=0.02)


def test_standard_error_of_independent_units_is_the_binomial_one():
    rng = np.random.default_rng(2)
    hits = (rng.random((2000, 1)) < 0.3).astype(float)
    samples = draw([Sums(hits, np.ones_like(hits))]).samples[:, 0]
    p = hits.mean()
    assert samples.std() == pytest.approx(np.sqrt(p * (1 - p) / 2000), rel=0.05)


def test_matches_scipy_bootstrap_on_a_plain_mean():
    values = np.random.default_rng(3).gamma(2.0, size=80)
    ours = draw([Sums(values[:, None], np.ones((80, 1)))], resamples=8000).interval([1.0])
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=8000, method="percentile", rng=4
    ).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=0.03)
    assert ours.high == pytest.approx(theirs.high, abs=0.03)


def test_units_with_more_tasks_weigh_more():
    sums = Sums(np.array([[9.0], [0.0]]), np.array([[10.0], [90.0]]))
    assert draw([sums]).estimate[0] == pytest.approx(0.09)


def test_difference_of_a_method_to_itself_is_exactly_zero():
    rng = np.random.default_rng(5)
    trials = rng.integers(1, 50, size=(40, 3)).astype(float)
    sums = Sums(np.floor(trials * rng.random((40, 3))), trials)
    assert draw([sums, sums]).interval([1.0, -1.0]) == Interval(0.0, 0.0, 0.0)


def test_pairing_narrows_the_interval_of_correlated_methods():
    rng = np.random.default_rng(6)
    trials = np.full((100, 1), 50.0)
    group_rate = rng.beta(2, 2, size=(100, 1))
    first = Sums(rng.binomial(50, group_rate).astype(float), trials)
    second = Sums(rng.binomial(50, np.minimum(group_rate + 0.05, 1.0)).astype(float), trials)
    paired = draw([second, first]).interval([1.0, -1.0])
    alone = combine_difference(draw([second]).interval([1.0]), draw([first], seed=9).interval([1.0]))
    assert paired.estimate == pytest.approx(alone.estimate)
    assert paired.high - paired.low < 0.5 * (alone.high - alone.low)


def test_seeds_of_methods_with_other_numbers_of_seeds_vary_independently():
    """The variance of the difference is then the sum of both; sorted seeds would hide a shared draw."""
    trials = np.ones((50, 1))
    first, second = (Sums(np.linspace(0.0, 1.0, n)[None, :] * trials, np.ones((50, n))) for n in (6, 8))
    samples = draw([first, second], resamples=8000).samples
    assert (samples[:, 0] - samples[:, 1]).var() == pytest.approx(samples.var(axis=0).sum(), rel=0.08)


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_without_spread_over_units_the_interval_is_the_classical_one_of_a_mean_over_seeds(seeds):
    rates = np.random.default_rng(7).normal(0.5, 0.1, size=seeds)
    interval = draw([Sums(np.tile(rates, (20, 1)), np.ones((20, seeds)))], resamples=40_000).interval([1.0])
    low, high = stats.t.interval(0.95, seeds - 1, rates.mean(), stats.sem(rates))
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.12 * (high - low))


def test_the_difference_of_methods_trained_with_the_same_seeds_is_paired_over_them():
    rng = np.random.default_rng(7)
    seed_effect, gain = rng.normal(0.0, 0.1, size=4), rng.normal(0.05, 0.01, size=4)
    first, second = (
        Sums(np.tile(0.5 + effect, (20, 1)), np.ones((20, 4))) for effect in (seed_effect + gain, seed_effect)
    )
    interval = draw([first, second], resamples=40_000).interval([1.0, -1.0])
    expected = stats.t.interval(0.95, 3, gain.mean(), stats.sem(gain))
    assert (interval.low, interval.high) == pytest.approx(expected, abs=0.002)


@pytest.mark.parametrize(("seeds", "spread"), [(1, 0.0), (4, 0.02), (3, 0.1)])
def test_interval_covers_the_truth_when_groups_and_seeds_vary(seeds, spread):
    """Rates = base + group effect + seed effect; about 95 of 100 intervals must hold the base."""
    rng = np.random.default_rng(8)
    covered, repeats = 0, 400
    for repeat in range(repeats):
        group = rng.normal(0.0, 0.10, size=(60, 1))
        seed_effect = rng.normal(0.0, spread, size=(1, seeds))
        rate = 0.5 + group + seed_effect + rng.normal(0.0, 0.05, size=(60, seeds))
        interval = draw([Sums(rate * 20.0, np.full(rate.shape, 20.0))], 400, repeat).interval([1.0])
        covered += interval.low <= 0.5 <= interval.high
    assert 0.90 <= covered / repeats <= 0.985


def test_ignoring_the_groups_would_not_cover():
    """Negative control: episodes that share group effects give intervals that are far too narrow."""
    rng = np.random.default_rng(9)
    covered = 0
    for repeat in range(100):
        group = rng.normal(0.0, 0.15, size=20)
        members = rng.integers(0, 20, size=(100, 30))
        hits = (rng.random((100, 30)) < 0.5 + group[members]).sum(axis=1, keepdims=True).astype(float)
        interval = draw([Sums(hits, np.full((100, 1), 30.0))], 300, repeat).interval([1.0])
        covered += interval.low <= 0.5 <= interval.high
    assert covered < 75


def test_p_value_is_uniform_under_no_effect_and_small_under_one():
    rng = np.random.default_rng(10)
    trials = np.ones((50, 1))
    null = [
        draw([Sums(rng.normal(0.0, 1.0, (50, 1)), trials)], 300, seed).p_value([1.0]) for seed in range(200)
    ]
    assert 0.02 <= np.mean(np.array(null) < 0.1) <= 0.18
    assert draw([Sums(rng.normal(1.0, 1.0, (50, 1)), trials)]).p_value([1.0]) < 1e-4


def test_a_constant_difference_is_certain_and_a_constant_zero_is_none():
    assert contrast_p_value(0.1, np.full(10, 0.1), 20) == 0.0
    assert contrast_p_value(0.0, np.zeros(10), 20) == 1.0


def test_one_unit_gives_no_interval_rather_than_a_certain_one():
    result = draw([Sums(np.array([[3.0]]), np.array([[4.0]]))])
    interval = result.interval([1.0])
    assert interval.estimate == 0.75
    assert np.isnan([interval.low, interval.high]).all()
    assert np.isnan(result.p_value([1.0]))


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    adjusted = holm([0.01, np.nan, 0.02])
    assert np.isnan(adjusted[1])
    assert adjusted[[0, 2]] == pytest.approx([0.02, 0.02])


def test_holm_keeps_the_family_error_below_alpha():
    rng = np.random.default_rng(11)
    false_alarms = [holm(rng.random(20)).min() < 0.05 for _ in range(2000)]
    assert np.mean(false_alarms) < 0.065


def test_jain_by_hand():
    assert jain([1, 1, 1, 1]) == pytest.approx(1.0)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([0, 0, 0]) == pytest.approx(1.0)
    assert jain([0.2, 0.4, np.nan]) == pytest.approx(0.9)
    assert jain([2.0, 4.0]) == pytest.approx(jain([0.2, 0.4]))


def test_mover_of_symmetric_intervals_is_the_root_of_squares():
    difference = combine_difference(Interval(0.6, 0.57, 0.63), Interval(0.5, 0.46, 0.54))
    assert difference == pytest.approx((0.1, 0.05, 0.15))


def test_overlap_and_percentiles():
    assert overlap(Interval(1, 0, 2), Interval(3, 2, 4))
    assert not overlap(Interval(1, 0, 2), Interval(3, 2.1, 4))
    assert percentile_interval(0.0, np.arange(101.0), 0.9, 5) == pytest.approx((0.0, 5.0, 95.0))


def test_two_thousand_resamples_of_two_thousand_groups_are_quick():
    rng = np.random.default_rng(12)
    trials = rng.integers(1, 30, size=(2000, 5)).astype(float)
    methods = [Sums(np.floor(trials * rng.random(trials.shape)), trials) for _ in range(10)]
    start = time.process_time()
    draw(methods)
    assert time.process_time() - start < 1.5
