import numpy as np
import pytest

from mara.allocators import laira
from mara.allocators.registry import make_policy
from mara.config.allocators import LairaWeights
from mara.config.workload import ArrivalSettings, TaskSettings
from mara.simulator.simulate import Outcome, simulate
from mara.workload.tasks import make_pool
from mara.workload.trace import make_trace
from tests.allocators.tiny import cluster
from tests.workload.curve_groups import make_groups


def power_law(slope: float, level: float, points: int = 200) -> np.ndarray:
    """Log losses (1, N) of exp(level) units^slope; point 0 as point 1."""
    return (level + slope * np.log(np.maximum(np.arange(points), 1)))[None]


def test_filter_and_regression_find_a_power_law() -> None:
    states = laira._states(power_law(-0.7, -0.2))[0]
    for n in (20, 60, 150):
        np.testing.assert_allclose(states[n, :2], [-0.7, -0.2], atol=0.05)
        np.testing.assert_allclose(states[n, 6:8], [-0.7, -0.2], atol=0.12)
    assert np.abs(states[:, 2:6]).max() < 0.05


def test_regression_solves_the_discounted_normal_equations() -> None:
    rng = np.random.default_rng(0)
    losses = power_law(-0.4, 0.0) + 0.05 * rng.standard_normal((1, 200))
    n = 30
    unit = np.arange(1, n + 1)
    feature = np.stack([np.log(unit), np.ones(n)], axis=1)
    weight = laira.FORGETTING ** (n - unit)
    penalised = laira.PENALTY * np.eye(2) + (feature.T * weight) @ feature
    expected = np.linalg.solve(penalised, (feature.T * weight) @ losses[0, 1 : n + 1])
    np.testing.assert_allclose(laira._states(losses)[0, n, 6:8], expected, rtol=1e-9)
    packed = laira.constants(200).reshape(200, 4)[n]
    np.testing.assert_allclose(packed[:3], np.linalg.inv(penalised)[[0, 0, 1], [0, 1, 1]], rtol=1e-9)


def test_beta_grows_and_the_bound_lies_below_the_fit() -> None:
    beta = laira.constants(200).reshape(200, 4)[:, 3]
    assert (np.diff(beta) >= 0).all()
    known = laira.constants(200).reshape(200, 4)[20]
    theta = np.array([-0.5, 0.1])
    fit = theta[0] * np.log(25) + theta[1]
    bounds = [laira.optimistic_log_loss(theta, known, c, np.log(25)) for c in (0.0, 0.5, 1.0)]
    assert bounds[0] == pytest.approx(fit)
    assert bounds[0] > bounds[1] > bounds[2]


def test_feasible_moves_the_law_ahead() -> None:
    still = np.array([-0.5, 0.0, 0, 0, 0, 0])
    assert laira.feasible(still, 10.0, 90.0, np.log(0.1001))
    assert not laira.feasible(still, 10.0, 90.0, np.log(0.0999))
    steeper = np.array([-0.5, 0.0, -0.01, 0, 0, 0])
    assert laira.feasible(steeper, 10.0, 90.0, np.log(0.01))


def test_the_slice_follows_the_controller() -> None:
    assert laira.next_slice(4.0, -0.1, -0.1, -0.1, 20.0, 5.0) == 4
    assert laira.next_slice(4.0, 0.0, -0.1, -0.2, 20.0, 5.0) == 6  # errors shrink steadily: longer
    assert laira.next_slice(4.0, -0.2, -0.1, 0.0, 20.0, 5.0) == 2
    assert laira.next_slice(1.0, -5.0, 0.0, 0.0, 20.0, 5.0) == 1


def test_a_diverged_run_is_never_feasible() -> None:
    losses = power_law(-0.5, 0.0)
    losses[0, 12:] = np.nan
    states = laira._states(losses)[0]
    assert states[11, 8] < 0
    assert (states[12:, 8] == laira.LOST).all()
    assert np.isfinite(states).all()


def test_it_beats_chance_and_keeps_its_slices() -> None:
    rng = np.random.default_rng(0)
    corpus = make_groups(20, 8, rng)
    pool = make_pool(corpus, TaskSettings(templates=200), rng)
    trace = make_trace(pool, ArrivalSettings(warm_up=40, scored=80, cool_down=20), 0.5, 15, rng)

    def play(name: str, weights: LairaWeights | None = None) -> Outcome:
        policy = make_policy(name, weights, pool=pool, corpus=corpus)
        return simulate(trace, pool, cluster(8), policy)

    assert play("laira").completion_rate > play("random").completion_rate + 0.1
    fixed = {"proportional": 0.0, "derivative": 0.0}
    short, long = (play("laira", LairaWeights(first_slice=m, **fixed)) for m in (1, 20))
    assert long.totals["switches"].sum() < 0.95 * short.totals["switches"].sum()
