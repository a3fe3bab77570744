"""The event log tells the same story as the outcome, and nothing in it breaks the cluster's rules."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mara.errors import InputError
from mara.simulator.cluster import Cluster
from mara.simulator.events import record_events, save_events
from mara.simulator.simulate import simulate
from tests.simulator.cases import ANYTHING, trace_of
from tests.simulator.test_engine import crowd

CLUSTER = Cluster(np.array([0.5, 1.0, 2.0]), 2, 1.0, 0.4, 0.1, 3.0)


@pytest.fixture(scope="module")
def played():
    trace, pool = trace_of([episode for episode in crowd(np.random.default_rng(3), 12) if episode])
    progress = np.tile(np.linspace(0, 1, 200, dtype=np.float32), (len(trace), 1))
    logs = [record_events(trace, pool, CLUSTER, ANYTHING, episode=e, progress=progress, seed=9)
            for e in range(trace.episodes)]  # fmt: skip
    return trace, pool, simulate(trace, pool, CLUSTER, ANYTHING, seed=9), logs


def test_completions_and_misses_are_those_of_the_simulation(played):
    trace, _, outcome, logs = played
    for e, log in enumerate(logs):
        part = slice(trace.offset[e], trace.offset[e + 1])
        complete = log[log.kind == "complete"].set_index("task")["slot"]
        finish = pd.Series(outcome.finish[part])
        assert dict(complete - 1) == dict(finish[finish >= 0])
        miss = log[log.kind == "miss"].set_index("task")["slot"]
        assert set(miss.index) == set(finish.index[finish < 0])
        assert len(log[log.kind == "arrive"]) == part.stop - part.start
        ends = log[log.kind.isin(["complete", "miss"])].sort_values("task")
        np.testing.assert_array_equal(ends.units, outcome.units[part])


def test_nodes_and_tasks_keep_the_rules(played):
    trace, _, outcome, logs = played
    for e, log in enumerate(logs):
        runs = log[log.kind == "run"]
        slots = [(s, r.node, r.task) for r in runs.itertuples() for s in range(r.slot, r.end)]
        frame = pd.DataFrame(slots, columns=["slot", "node", "task"], dtype=int)
        assert not frame.duplicated(["slot", "node"]).any()
        assert (frame.groupby(["slot", "task"]).size() <= CLUSTER.max_nodes_per_task).all()
        down = log[log.kind == "down"]
        off = {(s, r.node) for r in down.itertuples() for s in range(r.slot, r.end)}
        assert off.isdisjoint(zip(frame.slot, frame.node, strict=True))
        task = trace.offset[e] + frame.task.to_numpy()
        last = np.where(outcome.completed[task], outcome.finish[task], outcome.deadline[task] - 1)
        assert np.all((outcome.arrival[task] <= frame.slot) & (frame.slot <= last))
        assert len(frame) == outcome.totals["busy"][e]


def test_units_follow_from_speed_and_set_up(played):
    """Every run gives speed x its slots, less 0.4 slots of set-up where the node takes the task up."""
    _, _, _, logs = played
    for log in logs:
        got: dict[int, float] = {}
        for node, runs in log[log.kind.isin(["run", "down"])].groupby("node"):
            last = None
            for run in runs.sort_values("slot").itertuples():
                if run.kind == "down":
                    last = None
                    continue
                lost = 0.0 if run.task == last else 0.4
                got[run.task] = got.get(run.task, 0.0) + CLUSTER.speeds[node] * (run.end - run.slot - lost)
                last = run.task
        total = log[log.kind.isin(["complete", "miss"])].set_index("task").units
        for task, units in total.items():
            assert got.get(task, 0.0) == pytest.approx(units, rel=1e-5)


def test_the_log_is_a_parquet_file(played, tmp_path):
    log = played[3][0]
    save_events(log, tmp_path / "events.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "events.parquet"), log)


def test_an_episode_that_is_not_there():
    trace, pool = trace_of([[(0, 3, 2)]])
    with pytest.raises(InputError, match=r"episodes 0\.\.0, not 1"):
        record_events(trace, pool, CLUSTER, ANYTHING, episode=1)
