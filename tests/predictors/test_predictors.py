"""What every predictor without a network must satisfy, and closed forms of the simple ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mara.config.predictors import (
    BoostingSettings,
    CalibrationSettings,
    MarginalSettings,
    NeighbourSettings,
    PredictorSettings,
)
from mara.config.workload import TaskSettings
from mara.curves.smoothing import demand, smooth
from mara.errors import InputError
from mara.evaluation.prediction import ask, protocol_cases
from mara.predictors.forecast import Query
from mara.predictors.registry import PREDICTORS, load_predictor, make_predictor
from mara.predictors.table import tabulate
from mara.workload.tasks import make_pool

SMALL = PredictorSettings(
    marginal=MarginalSettings(tasks=400, window_classes=3),
    calibration=CalibrationSettings(examples=1500),
    neighbours=NeighbourSettings(synthetic_curves=100),
    boosting=BoostingSettings(examples=1500, synthetic_curves=100, trees=15, samples_per_leaf=20),
)
NAMES = [name for name in PREDICTORS if not name.startswith(("flow", "direct"))]
BLIND = ("oracle", "marginal", "marginal_deadline")


@pytest.fixture(scope="module")
def fitted(corpus):
    return {name: make_predictor(name, SMALL).fit(corpus, np.random.default_rng(1)) for name in NAMES}


@pytest.fixture(scope="module")
def query(corpus):
    """Questions of many lengths and targets, with windows and truths."""
    rng = np.random.default_rng(3)
    curve = rng.integers(len(corpus), size=60)
    length = rng.integers(1, 150, size=60)
    best = Query.of(corpus.loss[curve], length, np.ones(60)).best_smoothed()
    target = best * rng.choice([0.95, 0.8, 0.5, 0.2], size=60)
    window = rng.integers(5, 120, size=60).astype(float)
    asked = Query.of(corpus.loss[curve], length, target, corpus.schedule[curve], window)
    return asked.rows(np.arange(60), truth=rng.integers(1, 200, size=60).astype(float))


def same(first, second, tolerance=0.0):
    np.testing.assert_allclose(first.cdf, second.cdf, atol=tolerance)
    np.testing.assert_allclose(first.point, second.point, rtol=1e-4 if tolerance else 0)


@pytest.mark.parametrize("name", NAMES)
def test_is_a_distribution_on_the_asked_grid(fitted, query, name):
    assert fitted[name].name == name
    for horizon in (1, 120, 180):
        answer = fitted[name].forecast(query, horizon)
        assert answer.cdf.shape == (60, horizon + 1)
        assert answer.cdf.dtype == answer.point.dtype == np.float32
        assert np.isfinite(answer.cdf).all()
        assert (answer.cdf >= 0).all()
        assert (answer.cdf <= 1).all()
        assert (np.diff(answer.cdf, axis=1) >= 0).all()
        assert not np.isnan(answer.point).any()


@pytest.mark.parametrize("name", NAMES)
def test_scaling_loss_and_target_changes_nothing(fitted, query, name):
    scaled = Query(
        query.loss * 64, query.length, query.schedule, query.target * 64, query.window, query.truth
    )
    same(fitted[name].forecast(query), fitted[name].forecast(scaled), tolerance=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_the_future_changes_nothing(fitted, query, corpus, name):
    rng = np.random.default_rng(0)
    other = np.where(query.seen(), query.loss, rng.lognormal(size=query.loss.shape)).astype(np.float32)
    asked = Query(other, query.length, query.schedule, query.target, query.window, query.truth)
    same(fitted[name].forecast(query), fitted[name].forecast(asked))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "oracle"])
def test_nobody_but_the_oracle_reads_the_truth(fitted, query, name):
    lie = query.rows(np.arange(60), truth=np.full(60, 3.0))
    same(fitted[name].forecast(query), fitted[name].forecast(lie))


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("_deadline")])
def test_only_deadline_variants_read_the_window(fitted, query, name):
    without = query.rows(np.arange(60), window=np.full(60, np.nan, dtype=np.float32))
    same(fitted[name].forecast(query), fitted[name].forecast(without))


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("_deadline")])
def test_deadline_variants_do_read_it(fitted, query, name):
    short = query.rows(np.arange(60), window=np.full(60, 6.0, dtype=np.float32))
    long = query.rows(np.arange(60), window=np.full(60, 110.0, dtype=np.float32))
    assert np.abs(fitted[name].forecast(short).cdf - fitted[name].forecast(long).cdf).max() > 0.02


@pytest.mark.parametrize("name", NAMES)
def test_order_and_company_in_a_batch_change_nothing(fitted, query, name):
    order = np.random.default_rng(0).permutation(60)
    whole = fitted[name].forecast(query)
    mixed = fitted[name].forecast(query.rows(order))
    np.testing.assert_allclose(mixed.cdf, whole.cdf[order], atol=1e-6)
    alone = fitted[name].forecast(query.rows(np.array([7])))
    np.testing.assert_allclose(alone.cdf, whole.cdf[[7]], atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_odd_prefixes_get_defined_answers(fitted, defined_answers, name):
    defined_answers(fitted[name])


@pytest.mark.parametrize("name", ["wls", "slope_loglog", "slope_semilog", "wls_best"])
def test_what_does_not_fall_never_arrives(fitted, odd, name):
    for oddity in ("constant", "rising"):
        assert fitted[name].forecast(odd[oddity]).point[0] == np.inf


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BLIND and "calibrated" not in name])
def test_harder_targets_are_never_sooner(fitted, query, name):
    harder = query.rows(np.arange(60), target=query.target * np.float32(0.8))
    easy, hard = fitted[name].forecast(query), fitted[name].forecast(harder)
    assert (hard.cdf <= easy.cdf + 1e-5).all()


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded_it_says_the_same(fitted, query, tmp_path, name):
    fitted[name].save(tmp_path / "saved")
    same(fitted[name].forecast(query), load_predictor(name, tmp_path / "saved").forecast(query))
    with pytest.raises(InputError, match="not a saved predictor"):
        load_predictor(name, tmp_path / "missing")


@pytest.mark.parametrize("name", ["wls", "oracle", "neighbours", "slope_calibrated_deadline"])
def test_table_rows_equal_direct_forecasts(fitted, corpus, name):
    pool = make_pool(corpus.of(split="test"), TaskSettings(templates=12), np.random.default_rng(0))
    table = tabulate(fitted[name], pool, corpus, batch=64)
    curve = pool.rows_in(corpus)
    for template in range(0, 12, 4):
        rows = np.arange(table.offset[template], table.offset[template + 1])
        count = len(rows)
        asked = Query.of(
            corpus.loss[np.full(count, curve[template])],
            np.arange(count) + 1,
            np.full(count, pool.target[template]),
            corpus.schedule[np.full(count, curve[template])],
            np.full(count, pool.window[template]),
        )
        left = pool.demand[template] - np.arange(count, dtype=float)
        truth = np.where(pool.demand[template] < 200, left, np.inf)
        direct = fitted[name].forecast(asked.rows(np.arange(count), truth=truth))
        np.testing.assert_allclose(table.cdf[rows], direct.cdf, atol=1e-6)
        np.testing.assert_allclose(table.point[rows], direct.point, rtol=1e-6)


def test_unknown_names_get_a_suggestion():
    with pytest.raises(InputError, match="did you mean slope_loglog"):
        make_predictor("slope_loglag")


def test_a_file_of_another_predictor_is_refused(fitted, tmp_path):
    fitted["wls"].save(tmp_path / "saved")
    with pytest.raises(InputError, match="holds Wls, expected Kalman"):
        load_predictor("kalman", tmp_path / "saved")


@pytest.mark.parametrize(("exponent", "length"), [(0.5, 6), (0.5, 100), (1.5, 30)])
def test_wls_is_exact_on_a_power_law(exponent, length):
    unit = np.arange(200)
    loss = 3.0 * np.maximum(unit, 0.5) ** -exponent
    target = 3.0 * (length + 36.5) ** -exponent
    asked = Query.of(loss[None], np.array([length]), np.array([target]))
    answer = make_predictor("wls").forecast(asked)
    assert answer.point[0] == pytest.approx(length + 36.5 - (length - 1), rel=1e-3)
    assert answer.median()[0] == 38  # the first whole unit at or after 37.5


def test_wls_forgets():
    early = 5.0 * np.exp(-0.5 * np.arange(60))
    late = 2.0 * np.maximum(np.arange(200), 0.5) ** -0.5
    loss = np.where(np.arange(200) < 60, late * (1 + np.pad(early, (0, 140))), late)
    asked = Query.of(loss[None], np.array([150]), np.array([2.0 * 170**-0.5]))
    assert make_predictor("wls").forecast(asked).point[0] == pytest.approx(170 - 149, rel=0.02)


def test_slopes_are_exact_on_their_own_curves():
    unit = np.arange(200)
    exponential = np.exp(-0.01 * unit)
    level = smooth(exponential)[99]
    answer = make_predictor("slope_semilog").forecast(
        Query.of(exponential[None], np.array([100]), np.array([level * np.exp(-0.25)]))
    )
    assert answer.point[0] == pytest.approx(25, rel=1e-3)
    power = (unit + 1.0) ** -0.7
    level = smooth(power)[99]
    answer = make_predictor("slope_loglog").forecast(
        Query.of(power[None], np.array([100]), np.array([level * 1.3**-0.7]))
    )
    assert answer.point[0] == pytest.approx(30, rel=1e-3)


@pytest.mark.parametrize(
    "loss",
    [
        0.3 + 2.0 * (np.arange(200) + 1.0) ** -0.5,
        0.3 + 2.0 * np.exp(-np.arange(200) / 32.0),
        0.3 + 2.0 * np.exp(-np.sqrt(np.arange(200) / 10.0)),
        2.0 - 0.3 * np.log(np.arange(200) + 4.0),
        2.0 * (np.arange(200) + 16.0) ** -0.4,
        2.0 * np.exp(-0.02 * np.arange(200)),
    ],
    ids=["power", "exponential", "stretched", "logarithmic", "pure power", "pure exponential"],
)
def test_best_of_six_families_is_exact_on_each(loss):
    asked = Query.of(loss[None], np.array([60]), np.array([loss[90]]))
    assert make_predictor("wls_best").forecast(asked).point[0] == pytest.approx(90 - 59, abs=1.0)


def test_kalman_is_right_about_a_noisy_power_law():
    rng = np.random.default_rng(0)
    clean = 3.0 * (np.arange(200) + 1.0) ** -0.6
    loss = clean * np.exp(0.02 * rng.standard_normal((200, 200)))
    target = np.full(200, clean[110])
    truth = demand(smooth(loss), target) - 59
    answer = make_predictor("kalman").forecast(Query.of(loss, np.full(200, 60), target))
    inside = (answer.quantile(0.05) <= truth) & (truth <= answer.quantile(0.95))
    assert inside.mean() > 0.8
    assert np.median(answer.median()) == pytest.approx(np.median(truth), rel=0.15)


def test_marginal_is_the_survival_of_the_demand(corpus):
    name, rng = "marginal", np.random.default_rng(1)
    fitted = make_predictor(name, SMALL).fit(corpus, rng)
    train = corpus.of(split="train", part="predictor")
    pool = make_pool(train, TaskSettings(templates=400), np.random.default_rng(1))
    alive = pool.demand > 10
    expected = np.mean(pool.demand[alive] <= 40)
    loss = np.linspace(9, 8, 200)[None]
    answer = fitted.forecast(Query.of(loss, np.array([11]), np.array([1.0])))
    assert answer.probability_within(30)[0] == pytest.approx(expected, abs=0.02)


def test_nearest_neighbour_of_a_training_curve_is_itself(corpus):
    nearest = make_predictor("neighbours", PredictorSettings(neighbours=NeighbourSettings(neighbours=1)))
    nearest.fit(corpus, np.random.default_rng(0))
    train = corpus.of(split="train", part="predictor")
    best = np.minimum.accumulate(smooth(train.loss), axis=1)
    later = best[:, 99]
    falls = np.flatnonzero(later < 0.9 * best[:, 39])[:20]
    assert len(falls) > 5
    target = later[falls].astype(np.float64) * (1 + 1e-6)
    truth = demand(smooth(train.loss)[falls].astype(np.float64), target) - 39
    answer = nearest.forecast(Query.of(train.loss[falls], np.full(len(falls), 40), target))
    np.testing.assert_array_equal(answer.point, truth)


@pytest.mark.parametrize("name", ["boosting", "slope_calibrated", "wls_calibrated"])
def test_learning_beats_never(fitted, corpus, name):
    held_out = corpus.of(split="test")
    cases = protocol_cases(held_out)
    within = cases.truth <= cases.left
    answer = ask(fitted[name], cases, held_out)
    row = np.arange(len(cases))
    chance = answer.cdf[row, cases.left - 1]
    assert np.mean((chance - within) ** 2) < np.mean(within) * (1 - np.mean(within))


@pytest.mark.parametrize(
    "name",
    [
        *("boosting", "neighbours", "marginal", "slope_calibrated"),
        *("direct", "flow", "flow_deadline", "flow_distilled", "flow_history"),
    ],
)
def test_unfitted_predictors_say_so(query, name, tmp_path: Path):
    predictor = make_predictor(name)
    with pytest.raises(InputError, match=f"^{name}: not fitted$"):
        predictor.forecast(query)
    with pytest.raises(InputError, match=f"^{name}: not fitted$"):
        predictor.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
