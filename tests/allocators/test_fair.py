"""The fairness-constrained index: no constraint is the index, a strict one evens out the families."""

from dataclasses import replace

import numpy as np
import pytest

from mara.allocators.registry import make_policy
from mara.config.allocators import FairWeights, IndexWeights
from mara.errors import InputError
from mara.simulator.simulate import Outcome, simulate
from mara.workload.tasks import TaskPool
from tests.allocators.tiny import cluster, oracle, pool_of, trace_of

COUNT = 300
TASKS = [(3 * (k // 2), 3 * (k // 2) + 12, 4 if k % 2 else 6) for k in range(COUNT)]
"""Two tasks every three slots on two nodes: the short ones are served first, the long ones starve."""


@pytest.fixture(scope="module")
def pool() -> TaskPool:
    return replace(pool_of(TASKS), family=np.where(np.arange(COUNT) % 2, "short", "long"))


def play(pool: TaskPool, name: str, weights: IndexWeights) -> Outcome:
    forecasts, machine = oracle(pool), cluster(2)
    policy = make_policy(name, weights, forecasts, machine, pool)
    return simulate(trace_of(TASKS), pool, machine, policy, forecasts)


def rates(outcome: Outcome) -> tuple[float, float]:
    return float(outcome.completed[1::2].mean()), float(outcome.completed[::2].mean())


def test_without_strength_it_is_the_index(pool: TaskPool) -> None:
    index, fair = play(pool, "index", IndexWeights()), play(pool, "fair_index", FairWeights(strength=0.0))
    assert np.array_equal(index.finish, fair.finish)


def test_strength_evens_out_the_families(pool: TaskPool) -> None:
    short, long = rates(play(pool, "index", IndexWeights()))
    assert short - long > 0.3
    gaps = [short - long]
    for strength in (4.0, 64.0):
        fair_short, fair_long = rates(play(pool, "fair_index", FairWeights(strength=strength)))
        gaps.append(abs(fair_short - fair_long))
    assert gaps[2] < gaps[1] < gaps[0]
    assert gaps[2] < 0.1


def test_it_needs_the_families(pool: TaskPool) -> None:
    with pytest.raises(InputError, match="needs the task pool"):
        make_policy("fair_index", FairWeights(), oracle(pool))
