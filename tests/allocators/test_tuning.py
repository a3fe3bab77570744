import numpy as np
import pytest

from mara.allocators.registry import ALLOCATORS, default_weights, make_policy, reweighted
from mara.allocators.tuning import Space, calibrate_rate, search, tune
from mara.config.allocators import (
    AllocatorSettings,
    EstimateWeights,
    GittinsWeights,
    IndexWeights,
    LaraWeights,
    NoWeights,
    TunerSettings,
)
from mara.config.base import Section
from mara.config.methods import METHODS
from mara.config.workload import ArrivalSettings, TaskSettings
from mara.errors import InputError
from mara.simulator.simulate import simulate
from mara.workload.tasks import make_pool
from mara.workload.trace import make_trace
from tests.allocators.tiny import cluster, oracle
from tests.workload.curve_groups import make_groups

SMALL = TunerSettings(population=8, generations=12)
SHORT = ArrivalSettings(warm_up=30, scored=60, cool_down=10)
CORPUS = make_groups(20, 8, np.random.default_rng(0))
POOL = make_pool(CORPUS, TaskSettings(templates=200), np.random.default_rng(1))


@pytest.mark.parametrize("name", ALLOCATORS)
def test_the_space_holds_the_defaults(name: str) -> None:
    space = Space(default_weights(name))
    if space.size:
        assert ((space.point() >= 0) & (space.point() <= 1)).all()
        again = space.weights(space.point())
        np.testing.assert_allclose(
            list(again.model_dump().values()), list(space.section.model_dump().values())
        )


def hill(weights: Section) -> float:
    assert isinstance(weights, IndexWeights)
    return -(
        (np.log(weights.horizon) - np.log(2)) ** 2 + (weights.chance - 0.7) ** 2 + (weights.sticky - 1.5) ** 2
    )


def test_the_search_climbs_and_is_seeded() -> None:
    found, history = search(hill, IndexWeights(), SMALL, np.random.default_rng(3))
    assert hill(found[1]) > hill(IndexWeights()) * 0.25
    assert history[-1] > history[0]
    again, _ = search(hill, IndexWeights(), SMALL, np.random.default_rng(3))
    assert found == again
    other, _ = search(hill, IndexWeights(), SMALL, np.random.default_rng(4))
    assert found != other


def test_tuning_repairs_bad_weights_and_never_returns_worse_than_the_start() -> None:
    trace = make_trace(POOL, SHORT, 0.45, 20, np.random.default_rng(2))
    forecasts = oracle(POOL)
    few = TunerSettings(population=6, generations=4)
    bad = LaraWeights(explore=20, safety=0.3, refresh=12)
    tuned = [
        tune("lara", bad, trace, POOL, cluster(8), few, np.random.default_rng(5), forecasts) for _ in range(2)
    ]
    assert tuned[0].tuned_rate > tuned[0].default_rate + 0.02
    assert tuned[0] == tuned[1]
    held_back = trace.select(np.arange(12, 20))
    policy = make_policy("lara", tuned[0].weights, forecasts)
    assert simulate(held_back, POOL, cluster(8), policy, forecasts).completion_rate == tuned[0].tuned_rate


def test_tuning_what_has_no_weights_returns_it() -> None:
    trace = make_trace(POOL, SHORT, 0.45, 4, np.random.default_rng(2))
    tuned = tune("edf", NoWeights(), trace, POOL, cluster(8), SMALL, np.random.default_rng(0))
    assert tuned.weights == NoWeights()


def test_calibration_hits_the_target() -> None:
    forecasts = oracle(POOL)
    rate, found = calibrate_rate(0.6, POOL, SHORT, cluster(8), forecasts, 20, 7, tolerance=0.01)
    trace = make_trace(POOL, SHORT, rate, 20, np.random.default_rng(7))
    outcome = simulate(trace, POOL, cluster(8), make_policy("lara", None, forecasts), forecasts)
    assert outcome.completion_rate == found == pytest.approx(0.6, abs=0.01)


def test_every_method_has_its_allocator() -> None:
    assert {method.allocator for method in METHODS.values()} - {"mat"} <= set(ALLOCATORS)


def test_weights_come_from_the_settings() -> None:
    settings = AllocatorSettings(gittins=GittinsWeights(wait=3))
    assert default_weights("gittins", settings) == GittinsWeights(wait=3)
    assert type(default_weights("lara")) is LaraWeights


def test_reweighting_is_the_same_as_building_anew() -> None:
    forecasts = oracle(POOL)
    new = IndexWeights(horizon=1.5, sticky=0.3)
    policy = reweighted(make_policy("index", None, forecasts), new)
    np.testing.assert_array_equal(policy.params, make_policy("index", new, forecasts).params)
    with pytest.raises(TypeError):
        reweighted(make_policy("srpt", None, forecasts), EstimateWeights())


def test_bad_requests_are_refused() -> None:
    with pytest.raises(InputError, match="unknown; known are"):
        make_policy("sjf")
    with pytest.raises(InputError, match="needs a forecast table"):
        make_policy("lara")
    with pytest.raises(InputError, match="its weights are"):
        make_policy("edf", LaraWeights())
    with pytest.raises(InputError, match="task pool and its curves"):
        make_policy("laira")
