"""Which templates a trace draws: a range of slack, a mix of families, several pools in one."""

from dataclasses import replace

import numpy as np
import pytest

from mara.config.workload import ArrivalSettings
from mara.errors import InputError
from mara.workload.tasks import TaskPool, join_pools
from mara.workload.trace import draw_weights, make_trace

COUNT = 400


@pytest.fixture
def pool() -> TaskPool:
    rng = np.random.default_rng(0)
    name = np.array([f"c{k}" for k in range(COUNT)])
    return TaskPool(
        curve=np.arange(COUNT, dtype=np.int32),
        curve_id=name,
        group=name,
        family=np.where(np.arange(COUNT) % 4 == 0, "rl", "vision"),
        target=np.full(COUNT, 0.5, np.float32),
        window=rng.integers(5, 100, COUNT).astype(np.int32),
        demand=rng.integers(3, 90, COUNT).astype(np.int32),
        reference_units=rng.integers(5, 60, COUNT).astype(np.int32),
        natural={"feasible": 0.5},
    )


def templates(pool: TaskPool, weight: np.ndarray | None) -> np.ndarray:
    return make_trace(pool, ArrivalSettings(), 0.5, 40, np.random.default_rng(3), weight).template


def test_equal_weights_draw_what_no_weights_draw(pool: TaskPool) -> None:
    assert np.array_equal(templates(pool, None), templates(pool, draw_weights(pool)))


def test_only_tasks_of_the_slack_are_drawn(pool: TaskPool) -> None:
    drawn = templates(pool, draw_weights(pool, slack=(0.0, 1.5)))
    ratio = pool.window / pool.reference_units
    assert ratio[drawn].max() <= 1.5
    assert len(np.unique(drawn)) > 0.8 * (ratio <= 1.5).sum()


def test_families_arrive_in_the_shares_of_the_mix(pool: TaskPool) -> None:
    drawn = templates(pool, draw_weights(pool, mix={"rl": 3.0, "vision": 1.0}))
    share, n = float((pool.family[drawn] == "rl").mean()), len(drawn)
    assert abs(share - 0.75) < 4 * np.sqrt(0.75 * 0.25 / n)


def test_a_mix_of_a_family_that_is_not_there_is_refused(pool: TaskPool) -> None:
    with pytest.raises(InputError, match="the pool has none"):
        draw_weights(pool, mix={"supervised": 1.0})
    with pytest.raises(InputError, match="no task template is left"):
        draw_weights(pool, slack=(500.0, 600.0))


def test_joined_pools_keep_every_template(pool: TaskPool) -> None:
    other = replace(pool, natural={"feasible": 0.7})
    joined = join_pools([pool, other], 150)
    assert len(joined) == 300
    assert np.array_equal(joined.window[150:], pool.window[:150])
    assert joined.natural["feasible"] == pytest.approx(0.6)
