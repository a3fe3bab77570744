"""The simulator's engine: one slot after another, compiled, for every policy the same.

Legend: E episodes, T tasks of all episodes in one flat axis, n active tasks of one episode in one
slot, A the most that are ever active at once, M nodes, L lanes (episodes simulated side by side),
R forecast rows, H forecast horizon, P policy weights, K per-task and S per-episode scratch values.

A slot is opened (arrivals enter, nodes fail or return), the policy assigns nodes to active tasks,
and the slot is closed (units are given, tasks finish or run out of time). Active tasks keep the order
(arrival, number), so ties are settled the same way everywhere. Floating-point sums run in node order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mara.simulator.jit import jit_inlined, jit_lean
from mara.simulator.noise import uniform

ROUNDING = 1e-9
"""Units may fall short of a whole number by rounding; this much is forgiven."""

SLOT, COUNT, NEXT = range(3)
BUSY, IDLE, DOWN, SET_UP, SWITCHES, SLOTS = range(6)

NO_SUCH_TASK, NODE_DOWN, TOO_MANY_NODES = 1, 2, 3


class Problem(NamedTuple):
    """What is to be simulated; nothing of it changes."""

    offset: Any
    """(E+1,) int64: the tasks of episode e are offset[e] .. offset[e+1]-1."""
    arrival: Any
    """(T,) int32"""
    deadline: Any
    """(T,) int32"""
    demand: Any
    """(T,) int32"""
    template: Any
    """(T,) int32"""
    row0: Any
    """(T,) int64: first forecast row."""
    rows: Any
    """(T,) int32: how many forecast rows."""
    seed: Any
    """(E,) uint64: each episode's own seed."""
    speed: Any
    """(M,) float64"""
    fastest: Any
    """(M,) int64: nodes by falling speed."""
    rules: Any
    """(5,) float64: speed-up exponent, switching cost, failure rate, repair rate, node cap."""
    cdf: Any
    """(R, H+1) float32"""
    point: Any
    """(R,) float32"""
    table: Any
    """(R, X) float32: what the allocator tabulated itself."""


class View(NamedTuple):
    """What a policy sees in one slot. Arrays over the n active tasks are in order (arrival, number)."""

    slot: int
    seed: int
    """uint64, the episode's seed for policies that draw lots."""
    active: Any
    """(n,) int32: the task's number in the episode."""
    template: Any
    """(n,) int32"""
    units: Any
    """(n,) float64: units trained so far."""
    served: Any
    """(n,) int32: slots in which it had a node."""
    arrival: Any
    """(n,) int32"""
    deadline: Any
    """(n,) int32: the last slot it can use is deadline - 1."""
    row0: Any
    """(n,) int64"""
    rows: Any
    """(n,) int32"""
    row: Any
    """(n,) int64: the forecast row now, row0 + min(floor(units), rows - 1)."""
    last_task: Any
    """(M,) int32: number of the task that the node trained last, -1 for none."""
    last_position: Any
    """(M,) int32: where that task stands among the active ones, -1 if it has left."""
    setup_left: Any
    """(M,) float64: slots of set-up that the node still owes to its last task."""
    speed: Any
    """(M,) float64"""
    fastest: Any
    """(M,) int64: nodes by falling speed."""
    up: Any
    """(M,) bool"""
    max_nodes: int
    speedup_exponent: float
    switching_cost: float
    cdf: Any
    point: Any
    table: Any
    scratch: Any
    """(S,) float64: the policy's own values for the episode, zero at its start."""
    score: Any
    """(n,) float64: room for one score a task."""
    chosen: Any
    """(M,) int64: room for the chosen positions."""
    tally: Any
    """(n,) int32: room for counting, all zeros, to be left so."""


class State(NamedTuple):
    """What changes from slot to slot, for L lanes (leading axis) or, as one lane, without that axis."""

    counter: Any
    """(L, 3) int64: slot, active tasks, next task to arrive."""
    active: Any
    """(L, A) int32"""
    template: Any
    """(L, A) int32"""
    units: Any
    """(L, A) float64"""
    served: Any
    """(L, A) int32"""
    arrival: Any
    """(L, A) int32"""
    deadline: Any
    """(L, A) int32"""
    row0: Any
    """(L, A) int64"""
    rows: Any
    """(L, A) int32"""
    row: Any
    """(L, A) int64"""
    done: Any
    """(L, A) bool"""
    nodes_on: Any
    """(L, A) int32: nodes assigned in this slot."""
    trainers: Any
    """(L, A) int32: those of them that got past set-up."""
    gain: Any
    """(L, A) float64: the sum of their speeds."""
    memory: Any
    """(L, A, K) float64"""
    last_task: Any
    """(L, M) int32"""
    last_position: Any
    """(L, M) int32"""
    setup_left: Any
    """(L, M) float64"""
    up: Any
    """(L, M) bool"""
    scratch: Any
    """(L, S) float64"""
    score: Any
    """(L, A) float64"""
    chosen: Any
    """(L, M) int64"""
    assignment: Any
    """(L, M) int32"""


class Ledger(NamedTuple):
    """What is kept."""

    completed: Any
    """(T,) bool"""
    finish: Any
    """(T,) int32: slot in which it was completed, -1 if missed."""
    first_served: Any
    """(T,) int32: first slot in which it had a node, -1 if none."""
    units: Any
    """(T,) float64"""
    position: Any
    """(T,) int32: where the task stands among the active ones, -1 outside."""
    total: Any
    """(E, 6) float64: node-slots busy, idle, down, and of the busy ones set-up; switches; slots."""


def new_state(lanes: int, width: int, nodes: int, memory: int, scratch: int) -> State:
    """Make room for ``lanes`` episodes of at most ``width`` active tasks; ``start`` each lane."""
    kinds: dict[str, tuple[tuple[int, ...], Any]] = dict.fromkeys(State._fields, ((width,), np.int32))
    kinds |= dict.fromkeys(("units", "gain", "score"), ((width,), np.float64))
    kinds |= dict.fromkeys(("row0", "row"), ((width,), np.int64))
    kinds |= dict.fromkeys(("last_task", "last_position", "assignment"), ((nodes,), np.int32))
    kinds |= {"counter": ((3,), np.int64), "chosen": ((nodes,), np.int64), "up": ((nodes,), np.bool_)}
    kinds |= {"setup_left": ((nodes,), np.float64), "scratch": ((scratch,), np.float64)}
    kinds |= {"done": ((width,), np.bool_), "memory": ((width, memory), np.float64)}
    return State(**{name: np.zeros((lanes, *shape), dtype) for name, (shape, dtype) in kinds.items()})


@jit_inlined
def lane(state: State, index: int) -> State:
    """Return one lane of the state, sharing its memory."""
    return State(
        state.counter[index], state.active[index], state.template[index], state.units[index],
        state.served[index], state.arrival[index], state.deadline[index], state.row0[index],
        state.rows[index], state.row[index], state.done[index], state.nodes_on[index],
        state.trainers[index], state.gain[index], state.memory[index], state.last_task[index],
        state.last_position[index], state.setup_left[index], state.up[index], state.scratch[index],
        state.score[index], state.chosen[index], state.assignment[index],
    )  # fmt: skip


@jit_lean
def start(now: State) -> None:
    """Set a lane to the start of an episode."""
    now.counter[:] = 0
    now.active[:] = -1
    now.last_task[:] = -1
    now.last_position[:] = -1
    now.setup_left[:] = 0.0
    now.up[:] = True
    now.scratch[:] = 0.0


@jit_lean
def _admit(problem: Problem, episode: int, now: State, ledger: Ledger) -> None:
    """Let the tasks in that have arrived; one whose deadline is its arrival is missed at once."""
    first = problem.offset[episode]
    total = problem.offset[episode + 1] - first
    slot, n, new = now.counter[SLOT], now.counter[COUNT], now.counter[NEXT]
    while new < total and problem.arrival[first + new] <= slot:
        task = first + new
        if problem.deadline[task] > slot:
            now.active[n] = new
            now.template[n] = problem.template[task]
            now.units[n] = 0.0
            now.served[n] = 0
            now.arrival[n] = problem.arrival[task]
            now.deadline[n] = problem.deadline[task]
            now.row0[n] = problem.row0[task]
            now.rows[n] = problem.rows[task]
            now.row[n] = problem.row0[task]
            now.done[n] = False
            now.memory[n] = 0.0
            ledger.position[task] = n
            n += 1
        new += 1
    now.counter[COUNT] = n
    now.counter[NEXT] = new


@jit_lean
def _weather(problem: Problem, episode: int, now: State) -> None:
    """Let nodes fail and return; what a failed node had set up is lost."""
    failure_rate, repair_rate = problem.rules[2], problem.rules[3]
    for node in range(now.up.shape[0]):
        luck = uniform(problem.seed[episode], now.counter[SLOT], node)
        if not now.up[node]:
            now.up[node] = luck < repair_rate
        elif luck < failure_rate:
            now.up[node] = False
            now.last_task[node] = -1
            now.setup_left[node] = 0.0


@jit_lean
def open_slot(problem: Problem, episode: int, now: State, ledger: Ledger) -> bool:
    """Go on to the next slot that has an active task; False when the episode has no more."""
    first = problem.offset[episode]
    total = problem.offset[episode + 1] - first
    nodes = now.up.shape[0]
    failing = problem.rules[2] > 0.0
    while True:
        _admit(problem, episode, now, ledger)
        if now.counter[COUNT] == 0 and now.counter[NEXT] == total:
            ledger.total[episode, SLOTS] = now.counter[SLOT]
            now.last_position[:] = -1
            return False
        if failing:
            _weather(problem, episode, now)
        if now.counter[COUNT] > 0:
            break
        skipped = 1 if failing else problem.arrival[first + now.counter[NEXT]] - now.counter[SLOT]
        working = 0
        for node in range(nodes):
            working += now.up[node]
        ledger.total[episode, IDLE] += working * skipped
        ledger.total[episode, DOWN] += (nodes - working) * skipped
        now.counter[SLOT] += skipped
    for node in range(nodes):
        last = now.last_task[node]
        now.last_position[node] = ledger.position[first + last] if last >= 0 else -1
    return True


@jit_inlined
def look(problem: Problem, episode: int, now: State) -> View:
    """Return what the policy sees of an opened slot; the arrays share the state's memory."""
    n = now.counter[COUNT]
    return View(
        now.counter[SLOT], problem.seed[episode],
        now.active[:n], now.template[:n], now.units[:n], now.served[:n], now.arrival[:n], now.deadline[:n],
        now.row0[:n], now.rows[:n], now.row[:n],
        now.last_task, now.last_position, now.setup_left, problem.speed, problem.fastest, now.up,
        int(problem.rules[4]), problem.rules[0], problem.rules[1],
        problem.cdf, problem.point, problem.table, now.scratch,
        now.score[:n], now.chosen, now.nodes_on[:n],
    )  # fmt: skip


@jit_lean
def _put_to_work(problem: Problem, episode: int, now: State, ledger: Ledger, assignment: np.ndarray) -> int:
    """Take nodes to their tasks, paying for set-up; return 0 or the number of the rule that is broken."""
    switching_cost, cap = problem.rules[1], problem.rules[4]
    first = problem.offset[episode]
    n = now.counter[COUNT]
    busy, down, set_up, switches = 0, 0, 0.0, 0
    for node in range(assignment.shape[0]):
        position = assignment[node]
        if not now.up[node]:
            down += 1
            if position != -1:
                return NODE_DOWN
            continue
        if position == -1:
            continue
        if position < -1 or position >= n:
            return NO_SUCH_TASK
        now.nodes_on[position] += 1
        if now.nodes_on[position] > cap:
            return TOO_MANY_NODES
        if now.served[position] == 0:
            ledger.first_served[first + now.active[position]] = now.counter[SLOT]
        busy += 1
        task = now.active[position]
        if now.last_task[node] != task:
            now.last_task[node] = task
            now.setup_left[node] = switching_cost
            switches += 1
        spent = min(now.setup_left[node], 1.0)
        now.setup_left[node] -= spent
        set_up += spent
        if spent < 1.0:
            now.gain[position] += problem.speed[node] * (1.0 - spent)
            now.trainers[position] += 1
    total = ledger.total[episode]
    total[BUSY] += busy
    total[DOWN] += down
    total[IDLE] += assignment.shape[0] - busy - down
    total[SET_UP] += set_up
    total[SWITCHES] += switches
    return 0


@jit_lean
def _train(problem: Problem, episode: int, now: State, assignment: np.ndarray) -> int:
    """Give each task with nodes its units; return how many reach their demand."""
    exponent = problem.rules[0] - 1.0
    first = problem.offset[episode]
    finished = 0
    for node in range(assignment.shape[0]):
        position = assignment[node]
        if position == -1 or now.nodes_on[position] == 0:
            continue
        gain = now.gain[position]
        if now.trainers[position] > 1 and exponent != 0.0:
            gain *= now.trainers[position] ** exponent
        units = now.units[position] + gain
        now.units[position] = units
        now.served[position] += 1
        now.row[position] = now.row0[position] + min(int(units + ROUNDING), now.rows[position] - 1)
        if units + ROUNDING >= problem.demand[first + now.active[position]]:
            now.done[position] = True
            finished += 1
        now.nodes_on[position] = 0
        now.trainers[position] = 0
        now.gain[position] = 0.0
    return finished


@jit_lean
def _leave(problem: Problem, episode: int, now: State, ledger: Ledger) -> None:
    """Take out the tasks that are completed or have no slot left, keeping the order of the others."""
    first = problem.offset[episode]
    slot, n = now.counter[SLOT], now.counter[COUNT]
    kept = 0
    for position in range(n):
        task = first + now.active[position]
        if now.done[position] or now.deadline[position] <= slot + 1:
            ledger.position[task] = -1
            ledger.units[task] = now.units[position]
            if now.done[position]:
                ledger.completed[task] = True
                ledger.finish[task] = slot
            continue
        if kept < position:
            now.active[kept] = now.active[position]
            now.template[kept] = now.template[position]
            now.units[kept] = now.units[position]
            now.served[kept] = now.served[position]
            now.arrival[kept] = now.arrival[position]
            now.deadline[kept] = now.deadline[position]
            now.row0[kept] = now.row0[position]
            now.rows[kept] = now.rows[position]
            now.row[kept] = now.row[position]
            now.done[kept] = False
            for column in range(now.memory.shape[1]):
                now.memory[kept, column] = now.memory[position, column]
            ledger.position[task] = kept
        kept += 1
    now.active[kept:n] = -1
    now.counter[COUNT] = kept


@jit_lean
def close_slot(problem: Problem, episode: int, now: State, ledger: Ledger, assignment: np.ndarray) -> int:
    """Run the opened slot with an assignment (M,) of nodes to positions, -1 for idle.

    Returns how many tasks were completed, or minus the number of the rule that the assignment breaks.
    """
    broken = _put_to_work(problem, episode, now, ledger, assignment)
    if broken:
        return -broken
    finished = _train(problem, episode, now, assignment)
    _leave(problem, episode, now, ledger)
    now.counter[SLOT] += 1
    return finished


@jit_inlined
def run(allocate, problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    """Simulate episodes first .. last-1 with a compiled policy.

    Returns (episode, slot, rule) of the first broken rule, rule 0 for none.
    """
    now = lane(state, 0)
    for episode in range(first, last):
        start(now)
        while open_slot(problem, episode, now, ledger):
            now.assignment[:] = -1
            allocate(look(problem, episode, now), params, now.memory[: now.counter[COUNT]], now.assignment)
            outcome = close_slot(problem, episode, now, ledger, now.assignment)
            if outcome < 0:
                return episode, now.counter[SLOT], -outcome
    return last, 0, 0
