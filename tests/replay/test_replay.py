"""Jobs of a trace become tasks that need what the jobs took, and allocators are compared on the same jobs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mara.curves.corpus import load_corpus
from mara.curves.smoothing import demand, smooth
from mara.errors import InputError
from mara.replay import tasks
from mara.replay.compare import Arena, scores
from mara.replay.curves import with_curves
from mara.replay.tasks import Replay, as_replay, suitable_slot
from mara.workload.traces.read import Jobs, read_trace


def jobs_of(
    submit: list[float],
    duration: list[float],
    deadline: list[float] | None = None,
    nodes: list[int] | None = None,
    in_slots: bool = False,
) -> Jobs:
    count = len(submit)
    return Jobs(
        id=np.array([f"j{i}" for i in range(count)]),
        group=np.full(count, ""),
        submit=np.array(submit, dtype=float),
        duration=np.array(duration, dtype=float),
        deadline=np.array(deadline if deadline else [np.nan] * count, dtype=float),
        nodes=np.array(nodes if nodes else [1] * count, dtype=np.int64),
        line=np.arange(count) + 2,
        format="plain",
        in_slots=in_slots,
        reordered=False,
        bad=(),
    )


def many(count: int, seed: int = 0) -> Jobs:
    rng = np.random.default_rng(seed)
    duration = np.exp(rng.normal(6.5, 1.0, count))
    submit = np.sort(rng.uniform(0, 500 * count, count))
    return jobs_of(
        submit.tolist(), duration.tolist(), (submit + duration * rng.uniform(1, 4, count)).tolist()
    )


def test_whole_slots_keep_times_and_work() -> None:
    jobs = jobs_of([100, 700], [600, 300], [1900, 1300], [1, 2])
    replay = as_replay(jobs, 4, slot_seconds=60)
    assert replay.trace.arrival.tolist() == [0, 10]
    assert replay.trace.deadline.tolist() == [30, 20]
    assert replay.demand.tolist() == [10, 10]  # two nodes for five slots are ten units
    assert replay.cluster.max_nodes_per_task == 2
    assert replay.alone.tolist() == [5, 5]
    assert replay.rounding == 0
    one = as_replay(jobs, 4, slot_seconds=60, max_nodes_per_task=1)
    assert one.alone.tolist() == [10, 10]


def test_jobs_without_deadline_get_the_slack() -> None:
    replay = as_replay(jobs_of([0, 0], [600, 60]), 1, slot_seconds=60, slack=3)
    assert replay.trace.deadline.tolist() == [30, 3]


@settings(deadline=None)
@given(
    submit=st.lists(st.floats(0, 1e6), min_size=1, max_size=8).map(sorted),
    seconds=st.floats(0.5, 5000),
    data=st.data(),
)
def test_rounding_makes_no_feasible_job_infeasible(
    submit: list[float], seconds: float, data: st.DataObject
) -> None:
    count = len(submit)
    duration = data.draw(st.lists(st.floats(0.1, 1e5), min_size=count, max_size=count))
    slack = data.draw(st.floats(1.0, 5.0))
    nodes = data.draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    replay = as_replay(jobs_of(submit, duration, nodes=nodes), 4, slot_seconds=seconds, slack=slack)
    assert replay.hopeless == 0
    assert (replay.demand >= 1).all()
    assert (replay.trace.deadline > replay.trace.arrival).all()


def test_slots_suit_the_durations() -> None:
    assert suitable_slot(np.full(10, 3600.0)) == 60
    assert suitable_slot(np.full(10, 0.01)) == 1
    assert suitable_slot(np.full(10, 1e9)) == 86400


def test_jobs_share_templates_only_with_equal_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = many(500)
    alone = as_replay(jobs, 8, slot_seconds=60)
    assert len(alone.pool) == 500
    monkeypatch.setattr(tasks, "FORECAST_ROWS", 800)
    shared = as_replay(jobs, 8, slot_seconds=60)
    assert len(shared.pool) < 250
    np.testing.assert_array_equal(shared.demand, alone.demand)
    np.testing.assert_array_equal(shared.trace.deadline, alone.trace.deadline)
    apart = shared.pool.window[shared.trace.template] - (shared.trace.deadline - shared.trace.arrival)
    assert np.median(np.abs(apart)) <= np.median(np.abs(np.ptp(shared.pool.window)))


def test_curves_reach_their_targets_when_the_job_is_done() -> None:
    pool = as_replay(many(300), 8, slot_seconds=30).pool
    drawn, curves = with_curves(pool, load_corpus().of(split="test"), np.random.default_rng(0))
    assert curves.id.tolist() == drawn.curve_id.tolist()
    reached = demand(smooth(curves.loss.astype(np.float64)), drawn.target.astype(np.float64) * (1 + 1e-6))
    inside = pool.demand < curves.loss.shape[1]
    assert inside.sum() > 200
    assert (reached[inside] <= pool.demand[inside]).all()
    near = np.abs(reached[inside] - pool.demand[inside]) <= np.maximum(2, 0.1 * pool.demand[inside])
    assert near.mean() > 0.9
    assert (reached[~inside] >= curves.loss.shape[1]).all()  # long jobs are not done within the curve
    stretch = np.array([config["stretch"] for config in curves.config])[inside]
    assert np.median(np.abs(np.log(stretch))) < 0.05
    assert np.isfinite(curves.loss).all()


@pytest.fixture(scope="module")
def crowded() -> Replay:
    return as_replay(many(150), 2, slot_seconds=60)


def test_allocators_are_scored_on_the_same_jobs(crowded: Replay) -> None:
    arena = Arena(crowded)
    runs = [arena.run(name) for name in ("fifo", "edf", "srpt", "lara")]
    table = scores(crowded, runs)
    assert [score.predictor for score in table] == ["", "", "kalman", "wls"]
    for run, score in zip(runs, table, strict=True):
        assert score.completed == run.outcome.completed.sum()
        assert score.rate.estimate == score.completed / 150
        assert score.rate.low < score.rate.estimate < score.rate.high
        assert score.slowdown >= 1
        assert 0 < score.busy <= 1
    assert table[0].lead.estimate == 0
    half = (table[1].lead.high - table[1].lead.low) / 2
    pairs = runs[1].outcome.completed.astype(float) - runs[0].outcome.completed
    assert half == pytest.approx(1.96 * pairs.std() / np.sqrt(150), rel=0.15)  # paired, over jobs


def test_knowing_the_demand_beats_guessing_it(crowded: Replay) -> None:
    told = Arena(crowded, "oracle").run("moore_hodgson").outcome.completed.mean()
    guessed = Arena(crowded, "slope_semilog").run("moore_hodgson").outcome.completed.mean()
    assert told > guessed


def test_the_first_slots_are_those_of_the_whole_run(crowded: Replay) -> None:
    arena = Arena(crowded)
    slots, outcome = arena.first_slots("edf"), arena.run("edf").outcome
    assert slots["slot"].max() < 150
    first = slots.groupby("task")["slot"].min()
    np.testing.assert_array_equal(first, outcome.first_served[first.index])
    assert slots.duplicated(["slot", "node"]).sum() == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": 0}, "0 nodes"),
        ({"slot_seconds": 0.0}, "slot of 0 seconds"),
        ({"slot_seconds": float("nan")}, "slot of nan"),
        ({"slot_seconds": 1e-9}, "choose longer slots"),
        ({"slack": 0.5}, "slack of 0.5"),
        ({"slack": float("inf")}, "slack of inf"),
        ({"max_nodes_per_task": 9}, "max_nodes_per_task must lie in 1..2"),
    ],
)
def test_settings_out_of_range_are_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_replay(many(5), **{"nodes": 2, **change})  # type: ignore[arg-type]


def test_work_and_spans_beyond_the_simulator_are_refused() -> None:
    with pytest.raises(InputError, match=r"line 3: .*at most 20,000,000"):
        as_replay(jobs_of([0, 1e11], [60, 60]), 1, slot_seconds=60)
    with pytest.raises(InputError, match="slots of work"):
        as_replay(jobs_of([0], [1e4], [2e4], [1_000_000]), 2_000_000, slot_seconds=60)
    with pytest.raises(InputError, match="slots already"):
        as_replay(jobs_of([0], [5], in_slots=True), 1, slot_seconds=60)
    with pytest.raises(InputError, match="expected one of kalman"):
        Arena(as_replay(many(5), 1), "flow")


def test_slots_in_the_file_are_taken_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("submit_time,demand,deadline\n0,5,9\n3,7,20\n")
    replay = as_replay(read_trace(tmp_path / "t.csv"), 1)
    assert replay.demand.tolist() == [5, 7]
    assert replay.trace.deadline.tolist() == [9, 20]
