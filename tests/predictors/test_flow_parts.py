"""The flow's pieces: solver, path, trajectory, prior, passage, calibration, features."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from mara.config.flow import FlowSettings
from mara.curves.smoothing import demand, smooth
from mara.curves.synthetic import draw_curves
from mara.predictors.examples import Examples
from mara.predictors.flow.calibration import LEVELS, NO_GROUP, PlainRecalibration
from mara.predictors.flow.features import describe
from mara.predictors.flow.network import FlowNetwork, initialise
from mara.predictors.flow.passage import cut, lowest_so_far, passage_cdf
from mara.predictors.flow.path import draw_times, independent_source, straight_line
from mara.predictors.flow.pool import pooled
from mara.predictors.flow.prior import PathPrior
from mara.predictors.flow.solver import midpoint
from mara.predictors.flow.trajectory import DIVERGED, KNOT, future_knots
from mara.predictors.forecast import Query
from mara.predictors.kalman import Kalman

UNKNOWN = np.nan


@pytest.fixture(scope="module")
def curves():
    return draw_curves(400, np.random.default_rng(3))


@pytest.fixture(scope="module")
def prefixes(curves):
    rng = np.random.default_rng(4)
    rows = np.repeat(np.arange(len(curves)), 6)
    length = np.minimum(rng.integers(1, 150, len(rows)), curves.diverged_at[rows])
    loss = curves.loss[rows]
    return describe(loss, length, curves.schedule[rows]), future_knots(loss, length), loss, length


def gaussian_field(mean: float, spread: float):
    """The exact velocity that carries N(0, 1) to N(mean, spread**2) along straight lines."""

    def field(x, t):
        variance = (1 - t) ** 2 + (t * spread) ** 2
        return mean + (t * spread**2 - (1 - t)) / variance * (x - t * mean)

    return field


def test_midpoint_is_of_second_order():
    start = torch.linspace(-2, 2, 41, dtype=torch.float64)
    exact = start * math.exp(0.5)
    errors = [(midpoint(lambda x, t: x * t, start, n) - exact).abs().max().item() for n in (8, 16, 32)]
    orders = [math.log2(a / b) for a, b in pairwise(errors)]
    assert all(1.8 < order < 2.2 for order in orders), orders


def test_midpoint_follows_a_gaussian_field_to_its_end():
    start = torch.linspace(-2, 2, 41, dtype=torch.float64)
    assert torch.allclose(midpoint(gaussian_field(1.5, 0.4), start, 32), 1.5 + 0.4 * start, atol=2e-3)


def test_four_midpoint_steps_cover_as_they_should():
    start = torch.randn(20_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    end = midpoint(gaussian_field(1.0, 0.3), start, 4)
    inside = ((end - 1.0).abs() < 1.2816 * 0.3).double().mean().item()
    assert 0.76 < inside < 0.86


def test_no_steps_leave_the_start():
    start = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(midpoint(lambda x, t: x * math.nan, start, 0), start)


def test_straight_line_starts_and_ends_where_it_should_and_its_velocity_is_its_slope():
    generator = torch.Generator().manual_seed(1)
    target = torch.randn(64, 5, generator=generator)
    source = independent_source(target, generator)
    zero, one = torch.zeros(64, 1), torch.ones(64, 1)
    assert torch.equal(straight_line(source, target, zero)[0], source)
    assert torch.equal(straight_line(source, target, one)[0], target)
    half, velocity = straight_line(source, target, 0.5 * one)
    assert torch.allclose(half + 0.5 * velocity, target, atol=1e-6)


def test_times_are_spread_evenly():
    times = draw_times(100, torch.Generator().manual_seed(0))[:, 0].sort().values
    assert torch.all((times * 100).floor() == torch.arange(100))


def test_knots_of_a_power_law_are_its_smoothed_losses(curves):
    loss = (5.0 * (np.arange(200) + 1.0) ** -0.5)[None]
    knots = future_knots(loss, np.array([30]))[0]
    smoothed = smooth(loss)[0]
    inside = (KNOT >= 5) & (29 + KNOT < 200)
    np.testing.assert_allclose(knots[inside], np.log(smoothed[29 + KNOT[inside]] / smoothed[29]), atol=1e-5)
    assert np.isnan(knots[29 + KNOT >= 200]).all()
    np.testing.assert_allclose(knots[0], np.log(loss[0, 30] / smoothed[29]), atol=1e-5)


def test_knots_after_divergence_lie_above_every_target():
    loss = np.ones((1, 200), dtype=np.float32)
    loss[0, 40:] = np.nan
    knots = future_knots(loss, np.array([31]))[0]
    assert np.allclose(knots[KNOT <= 9], 0, atol=1e-6)
    assert np.all(knots[(KNOT > 12) & (KNOT < 169)] == DIVERGED)


def test_description_does_not_change_with_scale_or_future(curves):
    length = np.full(len(curves), 17)
    plain = describe(curves.loss, np.minimum(length, curves.diverged_at), curves.schedule)
    other = np.where(np.arange(200) < 17, 1e3 * curves.loss, 7.0)
    scaled = describe(other, np.minimum(length, curves.diverged_at), 0.1 * curves.schedule)
    np.testing.assert_allclose(plain.shape, scaled.shape, atol=2e-5)
    np.testing.assert_allclose(plain.plain, scaled.plain, atol=1e-2)
    np.testing.assert_allclose(plain.schedule, scaled.schedule, atol=1e-4)
    np.testing.assert_allclose(plain.level + np.log(1e3), scaled.level, atol=1e-5)


def test_description_of_an_unknown_schedule_is_zero(curves):
    known = describe(curves.loss, np.full(len(curves), 1), curves.schedule)
    unknown = describe(curves.loss, np.full(len(curves), 1), np.full_like(curves.schedule, UNKNOWN))
    assert np.all(unknown.schedule == 0)
    assert np.all(known.schedule[:, -1] == 1)


def test_prior_goes_to_white_and_back(prefixes):
    description, future, _, _ = prefixes
    prior = PathPrior.fit(description, future)
    white = prior.to_white(description, future)
    np.testing.assert_allclose(np.nanstd(white, axis=0), 1.0, atol=0.05)
    back = prior.to_future(description, np.nan_to_num(white).astype(np.float32)[:, None, :])[:, 0]
    near = np.isfinite(future) & (np.abs(future) < 3)
    error = np.abs(back - future)[near] / (prior.scale(description)[near] + np.abs(future[near]))
    assert np.quantile(error, 0.99) < 1e-2


def test_first_passage_of_the_true_future_is_the_demand(prefixes):
    description, future, loss, length = prefixes
    whole = np.isfinite(future[:, KNOT <= 48]).all(axis=1)
    path = np.nan_to_num(future, nan=DIVERGED)[:, None, :]
    best = Query.of(loss, length, np.ones(len(loss))).best_smoothed()
    target = 0.8 * best
    cdf = passage_cdf(
        lowest_so_far(description, path), np.arange(len(loss)), np.log(target) - description.level
    )
    found = np.where(cdf[:, -1] > 0, (cdf >= 1).argmax(axis=1), 10_000)
    true = demand(smooth(loss.astype(np.float64)), target) - (length - 1)
    unit = whole & (true <= 12)
    assert unit.sum() > 50
    # Rounding may move a crossing that is a tie in float32.
    assert np.mean(found[unit] == true[unit]) > 0.99
    middle = whole & (true > 12) & (true <= 48)
    assert np.abs(found - true)[middle].max() <= 4
    assert np.all(found[whole & (true > 48)] > 48)


def test_passage_counts_paths_and_never_is_never():
    lowest = (
        np.minimum.accumulate(np.linspace(0, -1, len(KNOT)))[None, None].repeat(4, axis=1).astype(np.float32)
    )
    lowest[0, :2] = 1.0
    cdf = passage_cdf(lowest, np.zeros(3, dtype=int), np.array([-0.5, -np.inf, np.nan]))
    assert cdf[0, -1] == 0.5
    assert np.all(cdf[1:] == 0)
    assert cut(cdf, 250).shape == (3, 251)
    assert cut(cdf, 10).shape == (3, 11)


def forecasts_of_uniform(width: float, count: int, rng: np.random.Generator):
    """Demands uniform over middle +- 40, forecast as uniform over middle +- 40 * width; with contexts."""
    middle = rng.uniform(60, 100, count)
    truth = np.ceil(middle + rng.uniform(-40, 40, count))
    grid = np.arange(181)
    cdf = np.clip((grid - (middle[:, None] - 40 * width)) / (80 * width), 0, 1)
    query = Query.of(np.ones((count, 200)), np.full(count, 10), np.ones(count))
    group = np.array([f"g{k}" for k in range(count)])
    examples = Examples(query, truth, np.full(count, 180), group)
    return cdf.astype(np.float32), examples, rng.normal(size=(count, 2))


def test_calibration_widens_what_is_too_narrow_and_leaves_what_is_right():
    rng = np.random.default_rng(0)
    right = PlainRecalibration.fit(*forecasts_of_uniform(1.0, 4000, rng))
    assert np.abs(right.value - LEVELS).max() < 0.08
    narrow = PlainRecalibration.fit(*forecasts_of_uniform(0.8, 4000, rng))
    assert np.abs(narrow.value - LEVELS).max() > 0.07
    cdf, trials, where = forecasts_of_uniform(0.8, 4000, rng)
    at = trials.remaining.astype(int)
    for forecast, fits in ((cdf, False), (narrow(cdf, where), True)):
        level = forecast[np.arange(len(at)), at]
        inside = np.mean((level > 0.1) & (level <= 0.9))
        assert (abs(inside - 0.8) < 0.03) == fits, inside


def test_calibration_is_wider_the_fewer_groups_it_saw():
    cdf, trials, where = forecasts_of_uniform(1.0, 4000, np.random.default_rng(4))
    kept = []
    for groups in (5, 50, 4000):
        some = replace(trials, group=np.array([f"g{k % groups}" for k in range(4000)]))
        kept.append(PlainRecalibration.fit(cdf, some, where).value)
        one_more = 1.0 / groups
        ends = kept[-1][:, [1, -2]] * (1 + one_more) - 0.5 * one_more
        np.testing.assert_allclose(ends, kept[0][:, [1, -2]] * 1.2 - 0.1, atol=0.01)
    assert (kept[0][:, 1] > kept[1][:, 1]).all()
    assert (kept[1][:, 1] > kept[2][:, 1]).all()
    nameless = replace(trials, group=np.full(4000, NO_GROUP))
    np.testing.assert_allclose(PlainRecalibration.fit(cdf, nameless, where).value, kept[2], atol=1e-3)


def test_the_filter_counts_more_on_rough_prefixes():
    query = Query.of(2.0 / np.sqrt(1 + np.arange(200))[None].repeat(3, 0), np.full(3, 50), np.full(3, 0.2))
    where = np.column_stack([np.zeros(3), [-3.0, -0.5, 2.0]])
    nothing = np.zeros((3, 181), np.float32)
    filtered = Kalman().forecast(query, 180).cdf
    alone = FlowSettings(kalman_share=0.0, rough_kalman_share=0.0)
    weight = np.array([[0.4], [0.6], [0.8]])
    np.testing.assert_allclose(pooled(nothing, query, where, FlowSettings()), weight * filtered, atol=1e-6)
    np.testing.assert_array_equal(pooled(nothing, query, where, alone), nothing)


def test_calibration_keeps_order_and_ends():
    cdf, trials, where = forecasts_of_uniform(0.5, 50, np.random.default_rng(1))
    g = PlainRecalibration.fit(cdf, trials, where)
    assert np.all(g.value[:, 0] == 0)
    assert np.all(g.value[:, -1] == 1)
    assert np.all(np.diff(g(np.linspace(0, 1, 1001)[None].repeat(50, 0), where)) >= 0)


def test_calibration_holds_for_each_kind_of_curve():
    rng = np.random.default_rng(2)
    parts = [forecasts_of_uniform(width, 4000, rng) for width in (1.5, 0.85)]
    where = np.zeros((8000, 2))
    where[4000:, 1] = 1.0
    cdf = np.concatenate([part[0] for part in parts])
    trials = Examples.concatenate([part[1] for part in parts])
    calibrated = PlainRecalibration.fit(cdf, trials, where)(cdf, where)
    level = calibrated[np.arange(8000), trials.remaining.astype(int)]
    for kind in (slice(0, 4000), slice(4000, 8000)):
        assert abs(np.mean((level[kind] > 0.1) & (level[kind] <= 0.9)) - 0.8) < 0.05


def test_calibration_of_a_strange_kind_is_that_of_the_nearest():
    g = PlainRecalibration.fit(*forecasts_of_uniform(0.8, 500, np.random.default_rng(3)))
    far = np.array([[50.0, 50.0]])
    last = np.array([[g.age[-1], g.roughness[-1]]])
    line = np.linspace(0, 1, 181, dtype=np.float32)[None]
    np.testing.assert_array_equal(g(line, far), g(line, last))


def test_the_velocity_is_the_same_with_and_without_gradients():
    network = FlowNetwork(5, 7, 16, 12, 2)
    generator = torch.Generator().manual_seed(3)
    initialise(network, generator)
    with torch.no_grad():
        network.velocity.leave.weight.normal_(generator=generator)
    path, time, seen = (torch.randn(9, size, generator=generator) for size in (7, 1, 5))
    with_gradients = network(path, time, seen)
    assert with_gradients.requires_grad
    with torch.inference_mode():
        without = network(path, time, seen)
    assert with_gradients.abs().max() > 0.1
    torch.testing.assert_close(with_gradients.detach(), without.clone())
