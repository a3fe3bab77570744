"""Simulate a policy on all episodes of a trace, and keep what became of every task.

Legend: E episodes, T tasks of all episodes, P policy weights, K per-task and S per-episode scratch
values, R forecast rows, X columns of the policy's own table.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mara.errors import InputError
from mara.files import atomic_path
from mara.simulator.cluster import Cluster
from mara.simulator.engine import NO_SUCH_TASK, NODE_DOWN, TOO_MANY_NODES, Ledger, new_state
from mara.simulator.problem import Prepared, new_ledger, prepare
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace

TOTALS = ("busy", "idle", "down", "set_up", "switches", "slots")

BROKEN_RULES = {
    NO_SUCH_TASK: "a position that is not among the active tasks",
    NODE_DOWN: "a task for a node that is down",
    TOO_MANY_NODES: "more nodes for one task than the cluster allows",
}


class PolicyError(Exception):
    """A policy gave an assignment that breaks the cluster's rules."""


@dataclass(frozen=True)
class Policy:
    """A compiled policy.

    ``allocate(view, params, memory, assignment)`` is a module-level function under
    :func:`mara.simulator.jit.jit`; it writes, for every node, the position of an active task or leaves
    -1 (idle). ``run(problem, state, ledger, params, first, last)`` is a module-level function under the
    same decorator that returns ``engine.run(allocate, ...)``: it holds the compiled loop.
    """

    name: str
    allocate: Callable[..., Any]
    run: Callable[..., Any]
    params: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """(P,) float64: the policy's weights."""
    memory_width: int = 0
    """K: values that the policy keeps for each task, zero when it arrives."""
    scratch_width: int = 0
    """S: values that it keeps for the episode, zero at its start."""
    table: np.ndarray | None = None
    """(R, X) float32: what it tabulated for each forecast row."""
    needs_forecasts: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of the T tasks of a trace, in the trace's order, and of the nodes' time in E episodes."""

    episode: np.ndarray
    """(T,) int32"""
    template: np.ndarray
    """(T,) int32"""
    arrival: np.ndarray
    """(T,) int32"""
    deadline: np.ndarray
    """(T,) int32"""
    scored: np.ndarray
    """(T,) bool"""
    completed: np.ndarray
    """(T,) bool"""
    finish: np.ndarray
    """(T,) int32: the slot in which it was completed, -1 if missed."""
    first_served: np.ndarray
    """(T,) int32: the first slot in which it had a node, -1 if none."""
    units: np.ndarray
    """(T,) float32: units trained."""
    totals: dict[str, np.ndarray]
    """(E,) float64 each: node-slots busy, idle and down; set_up, the part of busy that went into setting
    up; switches; and slots, from 0 to the last departure."""

    @property
    def completion_rate(self) -> float:
        """Return completed / arrived over the scored tasks (NaN if none is scored)."""
        return float(self.completed[self.scored].mean()) if self.scored.any() else float("nan")

    def completed_per_episode(self, scored: bool = True) -> np.ndarray:
        """Count the completed tasks of each episode, (E,) int64; all of them or the scored ones."""
        counts = self.completed & self.scored if scored else self.completed
        return np.bincount(self.episode[counts], minlength=len(self.totals["busy"]))

    def save(self, path: Path | str) -> None:
        """Write one row a task as Parquet; the totals go into the file's metadata."""
        columns = {name: value for name, value in vars(self).items() if name != "totals"}
        totals = {name: value.tolist() for name, value in self.totals.items()}
        table = pa.table(columns).replace_schema_metadata({"totals": json.dumps(totals)})
        with atomic_path(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read an outcome.

        Raises:
            InputError: when the file is not one.
        """
        try:
            table = pq.read_table(path)
            totals = json.loads((table.schema.metadata or {})[b"totals"])
            names = [name for name in cls.__dataclass_fields__ if name != "totals"]
            columns = {name: table[name].to_numpy() for name in names}
        except (OSError, KeyError, pa.ArrowException) as error:
            raise InputError(f"{path}: not an outcome ({error}); make it with the evaluate stage") from None
        return cls(**columns, totals={name: np.array(value) for name, value in totals.items()})


def outcome_of(trace: Trace, prepared: Prepared, ledger: Ledger) -> Outcome:
    """Bring the engine's ledger into the trace's order."""
    back = np.empty_like(prepared.order)
    back[prepared.order] = np.arange(back.size)
    return Outcome(
        episode=np.repeat(np.arange(len(trace.offset) - 1, dtype=np.int32), np.diff(trace.offset)),
        template=np.asarray(trace.template, np.int32),
        arrival=np.asarray(trace.arrival, np.int32),
        deadline=np.asarray(trace.deadline, np.int32),
        scored=np.asarray(trace.scored, np.bool_),
        completed=ledger.completed[back],
        finish=ledger.finish[back],
        first_served=ledger.first_served[back],
        units=ledger.units[back].astype(np.float32),
        totals={name: ledger.total[:, k].copy() for k, name in enumerate(TOTALS)},
    )


def simulate(
    trace: Trace,
    pool: TaskPool,
    cluster: Cluster,
    policy: Policy,
    forecasts: ForecastTable | None = None,
    seed: int = 0,
    threads: int = 1,
) -> Outcome:
    """Simulate all episodes of a trace under one policy.

    ``seed`` drives node failures and policies that draw lots. The outcome depends on nothing else:
    neither on ``threads`` nor on the other episodes of the trace.

    Raises:
        InputError: see :func:`mara.simulator.problem.prepare`; also when the policy needs forecasts and
            none are given.
        PolicyError: when the policy breaks a rule of the cluster.
    """
    if policy.needs_forecasts and forecasts is None:
        raise InputError(f"policy {policy.name}: it needs a forecast table")
    prepared = prepare(trace, pool, cluster, forecasts, policy.table, seed)
    problem, ledger = prepared.problem, new_ledger(prepared.problem)
    params = np.array(policy.params, dtype=np.float64)

    def part(first: int, last: int) -> None:
        state = new_state(1, prepared.width, cluster.nodes, policy.memory_width, policy.scratch_width)
        episode, slot, rule = policy.run(problem, state, ledger, params, first, last)
        if rule:
            raise PolicyError(f"policy {policy.name}: episode {episode}, slot {slot}: {BROKEN_RULES[rule]}")

    edges = np.linspace(0, len(trace.offset) - 1, threads + 1).astype(int)
    if threads == 1:
        part(edges[0], edges[1])
    else:
        with ThreadPoolExecutor(threads) as executor:
            list(executor.map(part, edges[:-1], edges[1:]))
    return outcome_of(trace, prepared, ledger)
