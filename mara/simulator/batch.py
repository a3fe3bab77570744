"""Many episodes step by step, side by side, for policies that are not compiled.

Legend: E episodes (lanes), A the padded axis of active tasks, M nodes, J templates, N points of a curve.
The semantics are the engine's: every lane is opened and closed by the same compiled functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mara.simulator.cluster import Cluster
from mara.simulator.engine import (
    COUNT,
    ROUNDING,
    SLOT,
    Ledger,
    Problem,
    State,
    close_slot,
    lane,
    new_state,
    open_slot,
    start,
)
from mara.simulator.jit import jit_lean
from mara.simulator.problem import new_ledger, prepare
from mara.simulator.simulate import BROKEN_RULES, Outcome, PolicyError, outcome_of
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


class BatchView(NamedTuple):
    """What E episodes show in their present slot.

    The arrays are windows on the simulator's own memory: ``step`` overwrites them, so copy what is to be
    kept. Padding (``mask`` false) and finished episodes hold zeros, and -1 in ``active``. Active tasks
    stand in the order (arrival, number) from the left. A, the width, is the largest number of active
    tasks over the episodes, at least 1: it follows the episodes, and nothing is ever left out.
    """

    mask: np.ndarray
    """(E, A) bool: a task stands here."""
    active: np.ndarray
    """(E, A) int32: the task's number in its episode."""
    template: np.ndarray
    """(E, A) int32"""
    units: np.ndarray
    """(E, A) float64: units trained."""
    served: np.ndarray
    """(E, A) int32: slots in which it had a node."""
    age: np.ndarray
    """(E, A) int32: slots since its arrival."""
    left: np.ndarray
    """(E, A) int32: slots it can still use, this one included."""
    row: np.ndarray
    """(E, A) int64: its forecast row now."""
    progress: np.ndarray
    """(E, A) float32: its log-progress."""
    speed: np.ndarray
    """(M,) float64"""
    up: np.ndarray
    """(E, M) bool"""
    last_task: np.ndarray
    """(E, M) int32: number of the task that the node trained last, -1 for none."""
    last_position: np.ndarray
    """(E, M) int32: its position on the axis A, -1 if it has left."""
    setup_left: np.ndarray
    """(E, M) float64: slots of set-up still owed to that task."""
    slot: np.ndarray
    """(E,) int64"""
    done: np.ndarray
    """(E,) bool: the episode is over."""


class BatchSimulator:
    """Steps episodes of a trace together.

    Usage: ``view = reset(episodes)``; while not ``view.done.all()``: ``reward = step(assignment)``,
    ``view = self.view()``. One step is one slot of each unfinished episode; slots without an active task
    are passed over. ``progress`` is the table of :func:`mara.simulator.progress.log_progress`; without
    it the progress shown and the potential are 0.
    """

    def __init__(
        self,
        trace: Trace,
        pool: TaskPool,
        cluster: Cluster,
        forecasts: ForecastTable | None = None,
        progress: np.ndarray | None = None,
        seed: int = 0,
    ) -> None:
        self.trace, self.pool, self.cluster, self.forecasts, self.seed = trace, pool, cluster, forecasts, seed
        flat = np.zeros((pool.demand.size, 1), np.float32)
        self.progress = flat if progress is None else np.require(progress, np.float32, ("C", "W"))

    def reset(self, episodes: np.ndarray | None = None) -> BatchView:
        """Start the given episodes of the trace (indices, repeats allowed), by default all.

        Raises:
            InputError: see :func:`mara.simulator.problem.prepare`.
        """
        self._trace = self.trace if episodes is None else self.trace.select(episodes)
        self._prepared = prepare(self._trace, self.pool, self.cluster, self.forecasts, seed=self.seed)
        lanes, width, nodes = self._trace.offset.size - 1, self._prepared.width, self.cluster.nodes
        self._ledger = new_ledger(self._prepared.problem)
        self._state = new_state(lanes, width, nodes, 0, 0)
        self._shown = _Shown(
            mask=np.zeros((lanes, width), np.bool_),
            age=np.zeros((lanes, width), np.int32),
            left=np.zeros((lanes, width), np.int32),
            progress=np.zeros((lanes, width), np.float32),
            done=np.zeros(lanes, np.bool_),
            reward=np.zeros(lanes, np.float32),
            potential=np.zeros(lanes, np.float64),
        )
        _start_all(self._prepared.problem, self._state, self._ledger, self._shown, self.progress)
        return self.view()

    def view(self) -> BatchView:
        """Show the present slot of all episodes."""
        state, shown = self._state, self._shown
        width = max(int(state.counter[:, COUNT].max()), 1)
        return BatchView(
            mask=shown.mask[:, :width],
            active=state.active[:, :width],
            template=state.template[:, :width],
            units=state.units[:, :width],
            served=state.served[:, :width],
            age=shown.age[:, :width],
            left=shown.left[:, :width],
            row=state.row[:, :width],
            progress=shown.progress[:, :width],
            speed=self._prepared.problem.speed,
            up=state.up,
            last_task=state.last_task,
            last_position=state.last_position,
            setup_left=state.setup_left,
            slot=state.counter[:, SLOT],
            done=shown.done,
        )

    def step(self, assignment: np.ndarray) -> np.ndarray:
        """Run the present slot and open the next.

        Args:
            assignment: (E, M) int: for every node a position on the axis A, or -1 for idle. The rows of
                finished episodes are not read.

        Returns:
            (E,) float32: tasks completed in each episode in this slot (a new array).

        Raises:
            PolicyError: when an assignment breaks a rule; the batch must then be reset.
        """
        shape = (self._shown.done.size, self.cluster.nodes)
        if np.shape(assignment) != shape:
            raise PolicyError(f"assignment has shape {np.shape(assignment)}, not {shape}")
        chosen = np.ascontiguousarray(assignment, np.int32)
        episode, rule = _step_all(
            self._prepared.problem, self._state, self._ledger, self._shown, self.progress, chosen
        )
        if rule:
            slot = self._state.counter[episode, SLOT]
            raise PolicyError(f"episode {episode} of the batch, slot {slot}: {BROKEN_RULES[rule]}")
        return self._shown.reward.copy()

    def potential(self) -> np.ndarray:
        """Return the sum of log-progress over the active tasks, (E,) float64; 0 where the episode is over."""
        return self._shown.potential.copy()

    @property
    def done(self) -> np.ndarray:
        """Return which episodes are over, (E,) bool."""
        return self._shown.done.copy()

    @property
    def seeds(self) -> np.ndarray:
        """Return each episode's own seed, (E,) uint64, for policies that draw lots."""
        return self._prepared.problem.seed

    def outcome(self) -> Outcome:
        """Return what became of the tasks so far; final when all episodes are over."""
        return outcome_of(self._trace, self._prepared, self._ledger)


class _Shown(NamedTuple):
    """Columns of the view that the engine's state does not hold."""

    mask: np.ndarray
    age: np.ndarray
    left: np.ndarray
    progress: np.ndarray
    done: np.ndarray
    reward: np.ndarray
    potential: np.ndarray


@jit_lean
def _show(index: int, now: State, shown: _Shown, progress: np.ndarray, before: int) -> None:
    """Fill the columns of one lane, and clear what ``before`` tasks of the last slot left behind."""
    slot, n = now.counter[SLOT], now.counter[COUNT]
    potential = 0.0
    for k in range(n):
        done = progress[now.template[k], min(int(now.units[k] + ROUNDING), progress.shape[1] - 1)]
        shown.mask[index, k] = True
        shown.age[index, k] = slot - now.arrival[k]
        shown.left[index, k] = now.deadline[k] - slot
        shown.progress[index, k] = done
        potential += done
    shown.potential[index] = potential
    if before > n:
        shown.mask[index, n:before] = False
        shown.age[index, n:before] = 0
        shown.left[index, n:before] = 0
        shown.progress[index, n:before] = 0.0
        now.template[n:before] = 0
        now.units[n:before] = 0.0
        now.served[n:before] = 0
        now.row[n:before] = 0


@jit_lean
def _start_all(problem: Problem, state: State, ledger: Ledger, shown: _Shown, progress: np.ndarray) -> None:
    """Open the first slot of every lane."""
    for index in range(shown.done.shape[0]):
        now = lane(state, index)
        start(now)
        shown.done[index] = not open_slot(problem, index, now, ledger)
        _show(index, now, shown, progress, 0)


@jit_lean
def _step_all(
    problem: Problem,
    state: State,
    ledger: Ledger,
    shown: _Shown,
    progress: np.ndarray,
    assignment: np.ndarray,
) -> tuple[int, int]:
    """Close the present slot of every unfinished lane and open the next; return (lane, broken rule or 0)."""
    for index in range(shown.done.shape[0]):
        shown.reward[index] = 0.0
        if shown.done[index]:
            continue
        now = lane(state, index)
        before = now.counter[COUNT]
        finished = close_slot(problem, index, now, ledger, assignment[index])
        if finished < 0:
            return index, -finished
        shown.reward[index] = finished
        shown.done[index] = not open_slot(problem, index, now, ledger)
        _show(index, now, shown, progress, before)
    return 0, 0
