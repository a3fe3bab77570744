from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mara.allocators.heuristics import remaining_table
from mara.config.allocators import EstimateWeights
from mara.simulator.cluster import Cluster
from tests.allocators.tiny import Tasks, believed, cluster, finishes, oracle, play, pool_of

POINT = EstimateWeights(quantile=0)


def test_fifo_goes_by_arrival() -> None:
    tasks = [(0, 20, 4), (1, 9, 3), (2, 9, 1)]
    assert finishes(play("fifo", tasks)) == [3, 6, 7]


def test_edf_goes_by_deadline_and_pre_empts() -> None:
    tasks = [(0, 20, 4), (1, 9, 3), (2, 4, 1)]
    assert finishes(play("edf", tasks)) == [7, 4, 2]


def test_srpt_goes_by_remaining_demand() -> None:
    tasks = [(0, 20, 4), (1, 9, 3), (2, 9, 1)]
    # In slot 1 the first task needs 3 more, like the second, and has come earlier.
    assert finishes(play("srpt", tasks, weights=POINT)) == [4, 7, 2]


def test_least_laxity_goes_by_laxity_and_leaves_the_hopeless_last() -> None:
    # Laxities 0, 2 and -1: the last cannot be completed.
    assert finishes(play("least_laxity", [(0, 3, 3), (0, 5, 3), (0, 4, 5)], weights=POINT)) == [2, -1, -1]
    assert finishes(play("least_laxity", [(0, 9, 3), (0, 3, 3), (0, 4, 5)], weights=POINT)) == [5, 2, -1]


def test_moore_hodgson_drops_the_longest() -> None:
    # By deadlines 4 + 3 + 2 = 9 exceeds 8: the task of 4 goes, the others are in time.
    assert finishes(play("moore_hodgson", [(0, 5, 4), (0, 8, 3), (0, 8, 2)], weights=POINT)) == [-1, 2, 4]


def test_random_draws_depend_on_the_episode_alone() -> None:
    tasks = [(0, 30, 5)] * 6
    first, second = play("random", tasks), play("random", tasks)
    assert finishes(first) == finishes(second)
    assert len(set(finishes(first))) == 6
    assert finishes(first) != sorted(finishes(first))


def test_the_best_task_gets_the_fastest_node_and_keeps_it() -> None:
    fast = Cluster(speeds=np.array([1.0, 2.0]))
    assert finishes(play("edf", [(0, 10, 6), (0, 9, 6)], fast)) == [4, 2]
    alike = cluster(2, switching_cost=1.0)
    outcome = play("edf", [(0, 30, 4), (0, 20, 4), (2, 10, 2)], alike)
    assert outcome.totals["switches"][0] == 4  # two starts, one pre-emption, one return


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 12), st.integers(1, 5)), min_size=1, max_size=6))
def test_edf_completes_all_that_one_node_can_complete(raw: list[tuple[int, int, int]]) -> None:
    """Processor-demand test: feasible iff no interval holds more work than slots; EDF then misses nothing."""
    tasks = [(a, a + w, n) for a, w, n in raw]
    starts, ends = {a for a, _, _ in tasks}, {d for _, d, _ in tasks}
    feasible = all(
        sum(n for a, d, n in tasks if a >= start and d <= end) <= end - start
        for start in starts
        for end in ends
        if end > start
    )
    assert feasible == bool(play("edf", tasks).completed.all())


def best_set(tasks: Tasks) -> int:
    """The most tasks of a common arrival that one node can complete, by trying all subsets."""
    for size in range(len(tasks), 0, -1):
        for some in combinations(sorted(tasks, key=lambda t: t[1]), size):
            if all(sum(n for _, _, n in some[: k + 1]) <= some[k][1] for k in range(size)):
                return size
    return 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 14), st.integers(1, 6)), min_size=1, max_size=7))
def test_moore_hodgson_is_optimal_on_one_node(raw: list[tuple[int, int]]) -> None:
    tasks = [(0, d, n) for d, n in raw]
    assert play("moore_hodgson", tasks, weights=POINT).completed.sum() == best_set(tasks)


@pytest.mark.parametrize(
    "name", ["fifo", "edf", "srpt", "least_laxity", "moore_hodgson", "gittins", "index", "lara"]
)
def test_ties_go_to_the_earlier_task_in_any_order_of_templates(name: str) -> None:
    tasks = [(0, 12, 3)] * 5
    finish = finishes(play(name, tasks, cluster(2)))
    assert finish == sorted(finish, key=lambda f: f if f >= 0 else 99)


def test_remaining_is_the_asked_quantile_or_the_point() -> None:
    pool = pool_of([(0, 9, 2), (0, 9, 1)])
    cdf = np.minimum(np.arange(121) / 100, 0.6)[None].repeat(2, axis=0)
    table = believed(pool, cdf)
    assert remaining_table(table, 0.25)[0, 0] == 25
    assert remaining_table(table, 0.5)[0, 0] == table.point[0] == 50
    assert remaining_table(table, 0.7)[0, 0] == 100 * 120
    assert remaining_table(oracle(pool), 0)[:, 0].tolist() == [2, 1, 1]
