"""Advice is the study's index on people's jobs, and its outlook adds up."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mara.allocators.index import gittins_table
from mara.config.allocators import GittinsWeights
from mara.curves.readers.log import Log
from mara.errors import InputError
from mara.live.advice import MOST_SLOTS, Job, _Rule, advise, play
from mara.live.forecast import Question
from mara.workload.forecast_table import ForecastTable

STEPS = np.arange(60.0)
LOSS = 2 * np.arange(1, 61) ** -0.5


def job(name: str, target: float, deadline: float | None = None, **changes: object) -> Job:
    log = Log(name, Path(f"{name}.csv"), "csv", "loss", "step", "step", STEPS, LOSS, False)
    question = Question(replace(log, **changes), target, deadline=deadline)  # type: ignore[arg-type]
    return Job(name, question)


def cdfs(jobs: int, rng: np.random.Generator) -> np.ndarray:
    mass = rng.dirichlet(np.full(MOST_SLOTS + 2, 0.05), size=jobs)
    mass[:, 1] += mass[:, 0]
    mass[:, 0] = 0
    return np.minimum(np.cumsum(mass, axis=1)[:, : MOST_SLOTS + 1], 1)


def test_the_index_is_that_of_the_study() -> None:
    rng = np.random.default_rng(0)
    cdf = cdfs(30, rng)
    left = rng.integers(0, MOST_SLOTS, 30)
    table = gittins_table(
        ForecastTable("x", np.array([0, 30]), cdf.astype(np.float32), np.ones(30, np.float32))
    )
    weights = GittinsWeights()
    row = np.arange(30)
    earlier = np.where(left >= weights.wait, cdf[row, np.maximum(left - int(weights.wait), 0)], 0)
    expected = table[row, left] * (weights.floor + cdf[row, left] - earlier)
    rule = _Rule(cdf, np.ones(30, bool))
    np.testing.assert_allclose(
        rule.index(np.zeros((1, 30), np.int64), left[None])[0], expected, rtol=1e-4, atol=1e-9
    )


def test_after_some_slots_the_index_is_that_of_what_is_left() -> None:
    """The forecast after u slots is the conditional one: as if it were a new job with that forecast."""
    cdf = cdfs(5, np.random.default_rng(1))
    conditional = np.zeros_like(cdf)
    conditional[:, : MOST_SLOTS + 1 - 20] = (cdf[:, 20:] - cdf[:, 20:21]) / (1 - cdf[:, 20:21])
    conditional[:, MOST_SLOTS - 19 :] = conditional[:, MOST_SLOTS - 20 : MOST_SLOTS - 19]
    left = np.full((1, 5), 60)
    later = _Rule(cdf, np.ones(5, bool)).index(np.full((1, 5), 20), left)
    anew = _Rule(conditional, np.ones(5, bool)).index(np.zeros((1, 5), np.int64), left)
    np.testing.assert_allclose(later, anew, rtol=1e-4)


def test_with_nodes_for_all_every_job_has_its_own_chance() -> None:
    cdf = cdfs(8, np.random.default_rng(2))
    left = np.arange(10, 90, 10)
    chance = play(_Rule(cdf, np.ones(8, bool)), left, 8, np.random.default_rng(0))
    np.testing.assert_allclose(chance, cdf[np.arange(8), left], atol=0.011)


def test_fewer_nodes_finish_less() -> None:
    cdf = cdfs(12, np.random.default_rng(3))
    left = np.full(12, 40)
    rule = _Rule(cdf, np.ones(12, bool))
    done = [play(rule, left, nodes, np.random.default_rng(0)).sum() for nodes in (1, 2, 4, 12)]
    assert np.all(np.diff(done) >= -0.05)
    assert done[0] < done[-1] - 0.5


def test_sure_jobs_in_sequence() -> None:
    """Two jobs of 3 slots, one node, 6 slots: both in time; in 5 slots only one."""
    cdf = np.tile((np.arange(MOST_SLOTS + 1) >= 3).astype(float), (2, 1))
    rule = _Rule(cdf, np.ones(2, bool))
    assert play(rule, np.array([6, 6]), 1, np.random.default_rng(0)).tolist() == [1, 1]
    assert play(rule, np.array([5, 5]), 1, np.random.default_rng(0)).sum() == 1


def test_what_is_done_or_broken_gets_no_node() -> None:
    jobs = [job("done", 1.0, 50), job("broken", 0.2, 50, diverged=True), job("open", 0.24, 50)]
    advice = advise(jobs, 4)
    assert [(item.job.name, item.state, item.node) for item in advice.jobs] == [
        ("open", advice.jobs[0].state, 1),
        ("done", "reached", None),
        ("broken", "diverged", None),
    ]


def test_hopeless_deadlines_are_named_and_give_way() -> None:
    advice = advise([job("hopeless", 0.05, 3), job("near", 0.25, 40)], 1)
    assert [item.job.name for item in advice.jobs] == ["near", "hopeless"]
    assert advice.jobs[1].state == "will miss"
    assert "even with a node" in advice.jobs[1].reason


def test_deadlines_as_time_need_a_clock_and_use_it() -> None:
    with pytest.raises(InputError, match="no clock"):
        advise([replace(job("a", 0.24), seconds_left=100)], 1)
    clocked = replace(job("a", 0.24, seconds=STEPS * 2), seconds_left=100)
    told = replace(job("a", 0.24), seconds_left=100, seconds_per_step=2.0)
    steps = job("a", 0.24, deadline=50)
    chances = [advise([one], 1).jobs[0].chance_alone for one in (clocked, told, steps)]
    assert chances[0] == pytest.approx(chances[1])
    assert chances[0] == pytest.approx(chances[2], abs=1e-3)
    assert advise([clocked], 1).slot_seconds == 2


def test_a_slower_job_makes_a_deadline_less_likely() -> None:
    fast = replace(job("fast", 0.24), seconds_left=60, seconds_per_step=1.0)
    slow = replace(job("slow", 0.24), seconds_left=60, seconds_per_step=30.0)
    chances = {item.job.name: item.chance_alone for item in advise([fast, slow], 2).jobs}
    assert chances["fast"] > chances["slow"]


def test_the_order_of_the_jobs_does_not_matter() -> None:
    jobs = [job(f"j{k}", 0.2 + 0.01 * k, 30 + 7 * k) for k in range(6)]
    ranks = [item.job.name for item in advise(jobs, 2).jobs]
    assert ranks == [item.job.name for item in advise(jobs[::-1], 2).jobs]


@pytest.mark.parametrize(
    ("jobs", "nodes", "message"),
    [
        ([], 1, "no jobs"),
        ([job("a", 0.2)], 0, "at least one"),
        ([job("a", 0.2), job("a", 0.2)], 1, "two jobs have this name"),
        ([replace(job("a", 0.2), seconds_left=-1.0)], 1, "0 or more"),
        ([replace(job("a", 0.2), seconds_per_step=0.0)], 1, "more than 0"),
    ],
)
def test_bad_jobs_are_refused(jobs: list[Job], nodes: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        advise(jobs, nodes)
