import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from mara.allocators.index import gittins_table
from mara.allocators.matching import match
from mara.config.allocators import GittinsWeights, IndexWeights, MatchingWeights
from mara.simulator.cluster import Cluster
from mara.workload.forecast_table import ForecastTable
from tests.allocators.tiny import HORIZON, believed, cluster, finishes, play, pool_of


def random_table(rows: int, rng: np.random.Generator) -> ForecastTable:
    mass = rng.dirichlet(np.full(HORIZON + 2, 0.1), size=rows)  # the last place is "never"
    mass[:, 1] += mass[:, 0]
    mass[:, 0] = 0
    cdf = np.minimum(np.cumsum(mass, axis=1)[:, : HORIZON + 1], 1).astype(np.float32)
    return ForecastTable("random", np.array([0, rows]), cdf, np.ones(rows, np.float32))


@pytest.mark.parametrize("setup", [0.0, 2.0])
def test_gittins_index_is_the_best_ratio_by_brute_force(setup: float) -> None:
    table = random_table(20, np.random.default_rng(0))
    found = gittins_table(table, setup)[:, -(HORIZON + 1) :]
    mass = np.diff(table.cdf.astype(np.float64), axis=1, prepend=0)
    units = np.arange(HORIZON + 1)
    for r in range(20):
        for left in (1, 7, 60, HORIZON):
            ratios = []
            for b in range(1, left + 1):
                within = mass[r, : b + 1].sum()
                expected = (mass[r, : b + 1] * units[: b + 1]).sum() + b * (1 - within)
                ratios.append(within / (expected + setup))
            assert found[r, left] == pytest.approx(max(ratios), rel=1e-4)


def test_gittins_index_in_closed_form() -> None:
    """A sure demand n gives 1/n from n units on and 0 before; a geometric one its rate at any horizon."""
    sure = np.zeros((1, HORIZON + 1), np.float32)
    sure[0, 10:] = 1
    geometric = (1 - 0.8 ** np.arange(HORIZON + 1))[None].astype(np.float32)
    rows = np.array([0, 1])
    point = np.ones(1, np.float32)
    index = gittins_table(ForecastTable("sure", rows, sure, point))
    assert not index[0, :10].any()
    np.testing.assert_allclose(index[0, 10:], 0.1, rtol=1e-6)
    index = gittins_table(ForecastTable("geometric", rows, geometric, point))
    np.testing.assert_allclose(index[0, 1:], 0.2, rtol=1e-4)


def test_gittins_prefers_the_likely_quick_task() -> None:
    """Half of the first kind need 2 units and half 40; the second kind needs 12 for sure; both have time."""
    cdf = np.zeros((2, HORIZON + 1))
    cdf[0, 2:], cdf[0, 40:] = 0.5, 1.0
    cdf[1, 12:] = 1.0
    tasks = [(0, 60, 2), (0, 60, 12)]
    table = believed(pool_of(tasks), cdf)
    assert finishes(play("gittins", tasks, forecasts=table)) == [1, 13]
    # When the quick one turns out slow after 2 units (38 more), the index moves on to the other.
    slow = [(0, 60, 40), (0, 60, 12)]
    table = believed(pool_of(slow), cdf)
    assert finishes(play("gittins", slow, forecasts=table)) == [51, 13]


def test_urgency_lets_the_patient_task_wait() -> None:
    # The second has the higher Gittins index, 1/5, but it can wait; the first, 1/6, cannot.
    tasks = [(0, 7, 6), (0, 60, 5)]
    assert finishes(play("gittins", tasks, weights=GittinsWeights(wait=8, floor=0.1))) == [5, 10]
    assert finishes(play("gittins", tasks, weights=GittinsWeights(wait=8, floor=1.0))) == [5, 10]
    assert finishes(play("index", tasks, weights=IndexWeights(urgency=0.0))) == [-1, 4]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_index_with_its_first_weights_ranks_as_gittins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tasks = [(int(a), int(a + w), int(n)) for a, w, n in zip(*rng.integers(1, 30, (3, 12)), strict=True)]
    tasks.sort()
    pool = pool_of(tasks)
    mass = rng.dirichlet(np.full(HORIZON + 1, 0.3), size=12)
    mass[:, 1] += mass[:, 0]
    mass[:, 0] = 0
    table = believed(pool, np.minimum(np.cumsum(mass, axis=1), 1))
    gittins, index = (play(name, tasks, cluster(2), table) for name in ("gittins", "index"))
    assert finishes(gittins) == finishes(index)
    matched = play("index_matching", tasks, cluster(2), table, weights=MatchingWeights())
    assert finishes(matched) == finishes(index)


def test_set_up_counts_in_the_index_of_a_task_that_is_not_set_up() -> None:
    """Remaining 6 against 5: worth a change when free, not when it costs 3 slots."""
    tasks = [(0, 100, 8), (2, 100, 5)]
    assert finishes(play("index", tasks)) == [12, 6]
    assert finishes(play("index", tasks, cluster(switching_cost=3.0))) == [10, 18]


def test_sticky_keeps_a_running_task() -> None:
    tasks = [(0, 100, 8), (2, 100, 5)]
    assert finishes(play("index", tasks, weights=IndexWeights(sticky=1.0))) == [7, 12]


def test_bundles_take_the_number_of_nodes_of_the_best_index() -> None:
    # 8 units in 5 slots take two nodes until one is enough (slot 3: 2 units in 2 slots).
    machine = cluster(2, max_nodes_per_task=2)
    assert finishes(play("index", [(0, 5, 8), (0, 60, 6)], machine)) == [4, 6]
    slow = cluster(2, max_nodes_per_task=2, speedup_exponent=0.5)
    assert finishes(play("index", [(0, 60, 6), (0, 60, 6)], slow)) == [5, 5]
    assert finishes(play("index", [(0, 60, 6)], machine)) == [2]


def test_matching_gives_the_fast_node_to_the_task_that_needs_it() -> None:
    """The short task has the higher index but makes it on the slow node; the long one needs the fast one."""
    machine = Cluster(speeds=np.array([2.0, 1.0]))
    tasks = [(0, 6, 12), (0, 9, 4)]
    assert finishes(play("index_matching", tasks, machine, weights=MatchingWeights(speed=0.1))) == [5, 3]
    assert finishes(play("index", tasks, machine)) == [-1, 1]


def test_matching_moves_a_running_task_in_spite_of_its_bonus() -> None:
    """With free switching the bonus is the task's on every node: it still leaves the fast one to who needs it."""
    machine = Cluster(speeds=np.array([1.0, 2.0]))
    tasks = [(0, 20, 4), (1, 7, 12)]
    for sticky in (0.0, 2.0):
        weights = MatchingWeights(speed=0.1, sticky=sticky)
        assert finishes(play("index_matching", tasks, machine, weights=weights)) == [2, 6]


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32 - 1), st.booleans())
def test_match_is_the_best_assignment(rows: int, columns: int, seed: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    worth = rng.integers(0, 4, (rows, columns)).astype(float) if coarse else rng.uniform(size=(rows, columns))
    partner = match(worth)
    taken = np.flatnonzero(partner >= 0)
    assert len(taken) == min(rows, columns)
    assert len(set(partner[taken])) == len(taken)
    best = worth[linear_sum_assignment(worth, maximize=True)].sum()
    assert worth[taken, partner[taken]].sum() == pytest.approx(best)
