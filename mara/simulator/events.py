"""The event log of an episode: who ran where and when, what was completed and what was missed.

An episode is played again under its policy, slot by slot, with the engine's own functions.

One row an event, sorted by slot:

====================  ==========================================================================
column                meaning
====================  ==========================================================================
kind                  arrive, run, complete, miss, or down
slot                  first slot of the event; for complete and miss the slot after the last one used
end                   for run and down the slot after the last; else equal to slot
node                  the node of run and down, else -1
task                  the task's number in the episode, in the order of arrival, -1 for down
template, deadline    the task's, -1 for down
units                 units the task has trained in all by ``end``
progress              its log-progress by then (0 where no table of progress is given)
====================  ==========================================================================

A run is a stretch of slots in which a node stays with one task; it may begin with set-up.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mara.errors import InputError
from mara.files import atomic_path
from mara.simulator.cluster import Cluster
from mara.simulator.engine import COUNT, ROUNDING, SLOT, State, close_slot, look, new_state, open_slot, start
from mara.simulator.problem import new_ledger, prepare
from mara.simulator.simulate import Policy, PolicyError
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


class _Slot(NamedTuple):
    """One opened slot: each node's task (-1 idle, -2 down), and every task's units after the slot."""

    slot: int
    doing: np.ndarray
    units: np.ndarray


def record_events(
    trace: Trace,
    pool: TaskPool,
    cluster: Cluster,
    policy: Policy,
    forecasts: ForecastTable | None = None,
    episode: int = 0,
    progress: np.ndarray | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Play one episode of a trace as :func:`mara.simulator.simulate.simulate` does, and log its events.

    ``progress`` is the table of :func:`mara.simulator.progress.log_progress`, (J, N).

    Raises:
        InputError: for an episode that the trace does not have, and as ``simulate`` does.
        PolicyError: when the policy breaks a rule of the cluster.
    """
    if not 0 <= episode < len(trace.offset) - 1:
        raise InputError(f"events: the trace has episodes 0..{len(trace.offset) - 2}, not {episode}")
    one = trace.select(np.array([episode]))
    prepared = prepare(one, pool, cluster, forecasts, policy.table, seed)
    problem, ledger = prepared.problem, new_ledger(prepared.problem)
    batch = new_state(1, prepared.width, cluster.nodes, policy.memory_width, policy.scratch_width)
    now = State(*(column[0] for column in batch))
    params = np.array(policy.params, dtype=np.float64)
    units = np.zeros(problem.arrival.size)
    history: list[_Slot] = []
    show: Any = look
    start(now)
    while open_slot(problem, 0, now, ledger):
        n, slot, assignment = int(now.counter[COUNT]), int(now.counter[SLOT]), now.assignment
        assignment[:] = -1
        policy.allocate(show.py_func(problem, 0, now), params, now.memory[:n], assignment)
        active = now.active[:n].copy()
        doing = np.where(assignment >= 0, active[assignment], np.where(now.up, -1, -2))
        if close_slot(problem, 0, now, ledger, assignment) < 0:
            raise PolicyError(f"policy {policy.name}: it breaks a rule in slot {slot}")
        left = int(now.counter[COUNT])
        gone = np.setdiff1d(active, now.active[:left])
        units[now.active[:left]] = now.units[:left]
        units[gone] = ledger.units[gone]
        history.append(_Slot(slot, doing, units.copy()))
    rows = _task_events(problem, ledger) + _node_events(history)
    table = pd.DataFrame(rows, columns=["kind", "slot", "end", "node", "task", "units"])
    has_task = table["task"].to_numpy() >= 0
    task = np.where(has_task, table["task"], 0)
    table["template"] = np.where(has_task, problem.template[task], -1)
    table["deadline"] = np.where(has_task, problem.deadline[task], -1)
    flat = np.zeros((pool.demand.size, 1), np.float32) if progress is None else progress
    point = np.minimum(np.floor(table["units"] + ROUNDING).astype(int), flat.shape[1] - 1)
    table["progress"] = np.where(has_task, flat[problem.template[task], point], np.float32(0))
    kinds: dict[str, Any] = dict.fromkeys(("slot", "end", "node", "task", "template", "deadline"), np.int32)
    table = table.astype(kinds | {"units": np.float32, "progress": np.float32})
    return table.sort_values(["slot", "end", "node", "task"], kind="stable", ignore_index=True)


def save_events(events: pd.DataFrame, path: Path | str) -> None:
    """Write an event log as Parquet."""
    with atomic_path(path) as temporary:
        events.to_parquet(temporary, index=False, compression="zstd")


def _task_events(problem, ledger) -> list[tuple]:  # type: ignore[no-untyped-def]
    """List arrivals, completions and misses."""
    rows: list[tuple] = []
    for task in range(problem.arrival.size):
        arrival = int(problem.arrival[task])
        rows.append(("arrive", arrival, arrival, -1, task, 0.0))
        done = bool(ledger.completed[task])
        end = int(ledger.finish[task]) + 1 if done else int(problem.deadline[task])
        rows.append(("complete" if done else "miss", end, end, -1, task, float(ledger.units[task])))
    return rows


def _node_events(history: list[_Slot]) -> list[tuple]:
    """Join the slots in which a node does the same into stretches."""
    rows: list[tuple] = []
    for node in range(history[0].doing.size if history else 0):
        k = 0
        while k < len(history):
            begin, what = k, int(history[k].doing[node])
            while (
                k + 1 < len(history)
                and history[k + 1].doing[node] == what
                and history[k + 1].slot == history[k].slot + 1
            ):
                k += 1
            span = (history[begin].slot, history[k].slot + 1, node)
            if what >= 0:
                rows.append(("run", *span, what, float(history[k].units[what])))
            elif what == -2:
                rows.append(("down", *span, -1, 0.0))
            k += 1
    return rows


def node_slots(events: pd.DataFrame) -> pd.DataFrame:
    """Spread the runs of an event log over their slots: columns slot, node, task."""
    runs = events[events["kind"] == "run"]
    columns = (runs[name].astype(int).tolist() for name in ("slot", "end", "node", "task"))
    rows = [
        (slot, node, task)
        for first, end, node, task in zip(*columns, strict=True)
        for slot in range(first, end)
    ]
    return pd.DataFrame(rows, columns=["slot", "node", "task"])
