"""Roll-outs of a tuned index from a state of an episode, compiled: what ``lookahead_ceiling.py`` looks ahead by.

The present tasks and those to come are laid out as an episode of its own, true or imagined. An imagined demand must
come with forecasts that fit it while the task trains on. So each task is played by a twin: a task of the training pool,
at the point where it needs the number of units that was drawn from the forecast and its own forecast is nearest.

Legend: E episodes, n active tasks, M nodes, S speeds, K candidates of a matching, R forecast rows, H horizon, L slots,
D deviations, N rows of the training pool, F features of a forecast, V features of a state's worth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mara.allocators.matching import match
from mara.curves.smoothing import NEVER
from mara.learning.worth import worth
from mara.simulator.engine import (
    COUNT,
    NEXT,
    ROUNDING,
    SLOT,
    Ledger,
    Problem,
    State,
    View,
    close_slot,
    look,
    open_slot,
)
from mara.simulator.jit import jit, jit_lean
from mara.simulator.noise import uniform
from mara.simulator.selection import select_top

TWINS = 12
"""Tasks of the training pool among which the nearest twin is taken."""


class Tables(NamedTuple):
    """The index as roll-outs look it up, and the worth of the states they end in."""

    score: Any
    """(R, L+1) float32: log index at the mean speed."""
    worth: Any
    """(S, R, L+1) float32: worth of a task on a node of each speed."""
    group: Any
    """(M,) int64: which of the speeds a node has."""
    sticky: float
    matched: bool
    """Tasks are matched to nodes; else the best task gets the fastest node."""
    weights: Any
    """(V,) float64"""
    speed: float


class Room(NamedTuple):
    """Scratch memory."""

    chosen: Any
    """(K,) int64"""
    worth: Any
    """(M, K) float64"""
    partner: Any
    """(M,) int64"""
    base: Any
    """(M,) int32"""
    described: Any
    """(V,) float64"""


class Library(NamedTuple):
    """Rows of the training pool by the units that really remained: what a task may turn out to be."""

    order: Any
    """(N,) int64: rows by remaining units."""
    first: Any
    """(H+2,) int64: where those with 0, 1, .., H, more units begin,"""
    end: Any
    """(H+2,) int64: and end."""
    remaining: Any
    """(R,) int32"""
    left: Any
    """(R,) int32: rows up to the end of the template."""
    feature: Any
    """(R, F) float32: what makes forecasts alike."""


@jit
def _match(worth: np.ndarray, count: int, partner: np.ndarray) -> None:
    partner[:] = match(np.ascontiguousarray(worth[:, :count]))


@jit_lean
def _decide(view: View, tables: Tables, room: Room, task: int, group: int, assignment: np.ndarray) -> None:
    """The index by table; the task at position ``task`` (-1: none) on a node of speed ``group``, or (-1) on none."""
    nodes, score = view.up.shape[0], view.score
    for i in range(score.shape[0]):
        score[i] = tables.score[view.row[i], view.deadline[i] - view.slot]
    for m in range(nodes):
        position = view.last_position[m]
        if view.up[m] and position >= 0 and view.tally[position] == 0:
            score[position] += tables.sticky
            view.tally[position] = 1
    held, free = -1, 0
    if task >= 0:
        score[task] = -np.inf
    for m in range(nodes):
        free += view.up[m]
        if view.up[m] and task >= 0 and tables.group[m] == group and held < 0:
            held = m
    if held >= 0:
        free -= 1
    assignment[:] = -1
    if tables.matched:
        count = select_top(score, min(score.shape[0], room.chosen.shape[0]), room.chosen)
        for m in range(nodes):
            for k in range(count):
                i = room.chosen[k]
                room.worth[m, k] = 0.0
                if view.up[m] and m != held:
                    value = tables.worth[tables.group[m], view.row[i], view.deadline[i] - view.slot]
                    room.worth[m, k] = value * np.exp(tables.sticky * view.tally[i])
        if count > 0:
            _match(room.worth, count, room.partner)
            for m in range(nodes):
                if view.up[m] and room.partner[m] >= 0:
                    assignment[m] = room.chosen[room.partner[m]]
    else:
        count, k = select_top(score, min(free, score.shape[0]), room.chosen), 0
        for rank in range(nodes):
            m = view.fastest[rank]
            if view.up[m] and m != held and k < count:
                assignment[m] = room.chosen[k]
                k += 1
    if held >= 0:
        assignment[held] = task
    for m in range(nodes):
        if view.last_position[m] >= 0:
            view.tally[view.last_position[m]] = 0


@jit_lean
def _summed(view: View, tables: Tables, assignment: np.ndarray) -> float:
    """Worth of an assignment by the index."""
    total = 0.0
    for m in range(assignment.shape[0]):
        i = assignment[m]
        if i >= 0:
            kept = False
            for other in range(assignment.shape[0]):
                kept |= view.last_position[other] == i
            value = tables.worth[tables.group[m], view.row[i], view.deadline[i] - view.slot]
            total += value * np.exp(tables.sticky * kept)
    return total


@jit_lean
def propose(
    problem: Problem, e: int, now: State, tables: Tables, room: Room,
    task: np.ndarray, group: np.ndarray, loss: np.ndarray,
) -> int:  # fmt: skip
    """List every deviation and what it loses by the index's own worth; return how many there are."""
    view, count, best = look(problem, e, now), 0, 0.0
    for i in range(-1, view.active.shape[0]):
        where = -1
        for m in range(room.base.shape[0]):
            if i >= 0 and room.base[m] == i:
                where = tables.group[m]
        for g in range(-1, tables.worth.shape[0]):
            if (i < 0 and g >= 0) or (i >= 0 and g == where):
                continue
            _decide(view, tables, room, i, g, now.assignment)
            value = _summed(view, tables, now.assignment)
            if i < 0:
                best = value
                for m in range(room.base.shape[0]):
                    room.base[m] = now.assignment[m]
            else:
                task[count], group[count], loss[count] = i, g, best - value
                count += 1
    return count


@jit_lean
def _twin(problem: Problem, row: int, library: Library, seed: np.uint64, subject: int) -> int:
    """Draw what remains from the forecast of a row; return a row of the library that needs it and looks alike."""
    mark, units = uniform(seed, 0, subject), 1
    while units < problem.cdf.shape[1] and problem.cdf[row, units] < mark:
        units += 1
    first, end = library.first[units], library.end[units]
    best, nearest = -1, np.inf
    for k in range(TWINS):
        other = library.order[first + int(uniform(seed, 1 + k, subject) * (end - first))]
        distance = 0.0
        for f in range(library.feature.shape[1]):
            distance += (library.feature[other, f] - library.feature[row, f]) ** 2
        if distance < nearest:
            best, nearest = other, distance
    return best


@jit_lean
def _lay_out(
    problem: Problem, e: int, now: State, donor: Problem, library: Library,
    seed: np.uint64, horizon: int, known: bool, box: Problem,
) -> None:  # fmt: skip
    """Lay the active tasks and those that come within the horizon out as an episode of its own, true or imagined."""
    slot, n = now.counter[SLOT], now.counter[COUNT]
    for i in range(n):
        had = int(now.units[i] + ROUNDING)
        box.arrival[i], box.deadline[i] = now.arrival[i], now.deadline[i]
        if known:
            box.row0[i], box.rows[i] = now.row0[i], now.rows[i]
            box.demand[i] = problem.demand[problem.offset[e] + now.active[i]]
        else:
            row = _twin(problem, now.row[i], library, seed, i)
            box.row0[i], box.rows[i] = row - had, library.left[row] + had
            box.demand[i] = min(library.remaining[row], NEVER - had) + had
    other = int(uniform(seed, 0, now.arrival.shape[0]) * (donor.offset.shape[0] - 1))
    box.offset[1] = _continue(problem if known else donor, e if known else other, slot, horizon, n, box)


@jit_lean
def _continue(source: Problem, e: int, slot: int, horizon: int, n: int, box: Problem) -> int:
    """Append the tasks of an episode that arrive after the slot; return how many tasks there are then."""
    for j in range(source.offset[e], source.offset[e + 1]):
        if slot < source.arrival[j] <= slot + horizon:
            box.arrival[n], box.deadline[n] = source.arrival[j], source.deadline[j]
            box.demand[n], box.row0[n], box.rows[n] = source.demand[j], source.row0[j], source.rows[j]
            n += 1
    return n


@jit_lean
def _enter(now: State, box: Problem, to: State, ledger: Ledger) -> None:
    """Set a lane to the opened slot of ``now``, with the tasks as the box has them."""
    n = now.counter[COUNT]
    to.counter[SLOT], to.counter[COUNT], to.counter[NEXT] = now.counter[SLOT], n, n
    for i in range(box.offset[1]):
        ledger.position[i] = i if i < n else -1
    for i in range(n):
        to.active[i], to.units[i], to.served[i] = i, now.units[i], now.served[i]
        to.arrival[i], to.deadline[i] = box.arrival[i], box.deadline[i]
        to.row0[i], to.rows[i] = box.row0[i], box.rows[i]
        to.row[i] = box.row0[i] + min(int(now.units[i] + ROUNDING), box.rows[i] - 1)
    to.done[:] = False
    to.nodes_on[:] = 0
    to.trainers[:] = 0
    to.gain[:] = 0.0
    for m in range(to.up.shape[0]):
        to.last_task[m], to.last_position[m] = now.last_position[m], now.last_position[m]
        to.setup_left[m], to.up[m] = now.setup_left[m], now.up[m]


@jit_lean
def _play(
    box: Problem, now: State, ledger: Ledger, tables: Tables, room: Room, task: int, group: int, hold: int, horizon: int
) -> float:  # fmt: skip
    """Play an opened slot on with the index; return completions within the horizon and the worth of the end."""
    first, completed = now.counter[SLOT], 0
    while True:
        view = look(box, 0, now)
        held = ledger.position[task] if task >= 0 and view.slot < first + hold else -1
        _decide(view, tables, room, held, group, now.assignment)
        completed += close_slot(box, 0, now, ledger, now.assignment)
        if not open_slot(box, 0, now, ledger):
            return float(completed)
        if now.counter[SLOT] >= first + horizon:
            view = look(box, 0, now)
            return completed + worth(view, tables.score, tables.weights, tables.speed, room.described)


@jit_lean
def judge(
    problem: Problem, e: int, now: State, donor: Problem, library: Library, box: Problem, to: State, ledger: Ledger,
    tables: Tables, room: Room, task: np.ndarray, group: np.ndarray, seeds: np.ndarray,
    hold: int, horizon: int, known: bool, total: np.ndarray, square: np.ndarray,
) -> None:  # fmt: skip
    """Add the gains (D,) of deviations over the index in one roll-out a seed, and their squares."""
    for k in range(seeds.shape[0]):
        _lay_out(problem, e, now, donor, library, seeds[k], horizon, known, box)
        base = 0.0
        for d in range(-1, task.shape[0]):
            _enter(now, box, to, ledger)
            held, speed = -1, -1
            if d >= 0:
                held, speed = task[d], group[d]
            value = _play(box, to, ledger, tables, room, held, speed, hold, horizon)
            if d < 0:
                base = value
            else:
                total[d] += value - base
                square[d] += (value - base) ** 2


@jit_lean
def advance(
    problem: Problem, e: int, now: State, ledger: Ledger, tables: Tables, room: Room, task: int, group: int, stop: int
) -> bool:  # fmt: skip
    """Run the episode up to the slot ``stop``, its task ``task`` (-1: none) held; whether it goes on."""
    while now.counter[SLOT] < stop:
        view = look(problem, e, now)
        held = ledger.position[problem.offset[e] + task] if task >= 0 else -1
        _decide(view, tables, room, held, group, now.assignment)
        close_slot(problem, e, now, ledger, now.assignment)
        if not open_slot(problem, e, now, ledger):
            return False
    return True
