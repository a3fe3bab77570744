from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mara.allocators.lara import accept
from mara.config.allocators import LaraDeadlineWeights, LaraWeights
from mara.workload.forecast_table import ForecastTable
from tests.allocators.tiny import cluster, finishes, oracle, play, pool_of

NO_EXPLORATION = LaraWeights(explore=0)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(0.01, 2.0) | st.just(np.inf), min_size=1, max_size=8),
    st.floats(0.1, 2.0),
    st.floats(0.0, 4.0),
)
def test_the_search_accepts_as_many_as_can_be(rates: list[float], limit: float, room: float) -> None:
    rate, accepted = np.array(rates), np.empty(len(rates))
    accept(rate, limit, room, accepted)
    chosen = accepted > 0
    assert rate[chosen].sum() <= room + 1e-8
    assert (rate[chosen] <= limit).all()
    possible = [r for r in rates if r <= limit]
    most = max(
        (size for size in range(len(possible) + 1) if min(map(sum, combinations(possible, size))) <= room),
        default=0,
    )
    assert chosen.sum() == most


def test_exploration_comes_first_in_order_of_arrival() -> None:
    tasks = [(0, 40, 10), (1, 40, 3), (1, 40, 30)]
    # Explored: task 0 in slots 0-4, task 1 finishes in 5-7 within its exploration, task 2 in 8-12;
    # then task 0 (5 left of 27 slots) and task 2 (25 of 27) need a rate above 1: only task 0 is accepted.
    assert finishes(play("lara", tasks, weights=LaraWeights(explore=5))) == [17, 7, -1]


def test_accepted_tasks_run_by_deadline_and_the_others_by_required_rate() -> None:
    # Rates 4/20, 6/10, 5/8 and 9/30 on one node: the first, the second no longer fits after the fourth.
    tasks = [(0, 20, 4), (0, 10, 6), (0, 8, 5), (0, 30, 9)]
    assert finishes(play("lara", tasks, weights=NO_EXPLORATION))[0] == 3


def test_safety_scales_the_estimate() -> None:
    # Rates 3/7 and 5/12 fit together; doubled they do not, and only the second is accepted.
    tasks = [(0, 7, 3), (0, 12, 5)]
    assert finishes(play("lara", tasks, weights=NO_EXPLORATION)) == [2, 7]
    assert finishes(play("lara", tasks, weights=LaraWeights(explore=0, safety=2.0))) == [-1, 4]


def test_a_search_lasts_until_the_next_refresh() -> None:
    # The short task arrives in slot 1; with a search every 4 slots it has to wait for slot 4.
    tasks = [(0, 30, 8), (1, 12, 2)]
    assert finishes(play("lara", tasks, weights=NO_EXPLORATION)) == [9, 2]
    assert finishes(play("lara", tasks, weights=LaraWeights(explore=0, refresh=4))) == [9, 5]


def test_never_is_served_only_by_idle_nodes() -> None:
    tasks = [(0, 20, 3), (0, 25, 4)]
    pool = pool_of(tasks)
    true = oracle(pool)
    lost = ForecastTable("x", true.offset, true.cdf, np.where(np.arange(len(true)) < 3, np.inf, true.point))
    assert finishes(play("lara", tasks, forecasts=lost, weights=NO_EXPLORATION)) == [6, 3]
    assert finishes(play("lara", tasks, cluster(2), lost, NO_EXPLORATION)) == [2, 3]


def test_the_deadline_prior_rules_at_first_and_fades() -> None:
    """Estimates say 'never'; only a prior from the window lets tasks be accepted, the shorter one first."""
    tasks = [(0, 24, 6), (0, 8, 4)]
    pool = pool_of(tasks)
    true = oracle(pool)
    never = ForecastTable("x", true.offset, true.cdf, np.full(len(true), np.inf, np.float32))
    plain = play("lara", tasks, forecasts=never, weights=NO_EXPLORATION)
    informed = play(
        "lara_deadline",
        tasks,
        forecasts=never,
        weights=LaraDeadlineWeights(explore=0, prior_units=100, prior_share=0.4),
    )
    assert finishes(plain) == [5, -1]
    assert finishes(informed) == [9, 3]


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_true_estimates_meet_every_deadline_when_rates_fit(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    tasks = []
    room = nodes * 0.8
    while room > 0.3:
        window = int(rng.integers(10, 40))
        demand = max(1, int(window * min(rng.uniform(0.05, 0.4), room)))
        room -= demand / window
        tasks.append((0, window, demand))
    assert play("lara", tasks, cluster(nodes), weights=NO_EXPLORATION).completed.all()
