"""From scores of tasks to tasks on nodes.

Legend: n active tasks, M nodes; positions index the n active tasks.
"""

from __future__ import annotations

import numpy as np

from mara.simulator.engine import View
from mara.simulator.jit import jit, jit_lean
from mara.simulator.selection import seat, select_top


@jit
def place(view: View, score: np.ndarray, assignment: np.ndarray) -> None:
    """Train the tasks with the highest scores (n,), the highest on the fastest node; -inf is left out.

    Ties go to the earlier arrival. A task stays on its node where a move would gain no speed.
    """
    working = 0
    for node in range(view.up.shape[0]):
        working += view.up[node]
    chosen = np.empty(min(working, score.shape[0]), dtype=np.int64)
    count = select_top(score, chosen.shape[0], chosen)
    if count > 0:
        seat(view, chosen, count, assignment)


@jit
def place_bundles(view: View, score: np.ndarray, bundle: np.ndarray, assignment: np.ndarray) -> None:
    """Give the tasks with the highest scores (n,) the nodes they ask for, ``bundle`` (n,) int32 each.

    Fastest nodes go to the highest score. Nodes that nobody asked for join the chosen tasks in order, up to
    the cap.
    """
    nodes = view.up.shape[0]
    working = 0
    for node in range(nodes):
        working += view.up[node]
    chosen = np.empty(min(working, score.shape[0]), dtype=np.int64)
    count = select_top(score, chosen.shape[0], chosen)
    wanted = np.zeros(score.shape[0], dtype=np.int32)
    free = working
    for k in range(count):
        wanted[chosen[k]] = min(bundle[chosen[k]], free)
        free -= wanted[chosen[k]]
    for k in range(count):
        more = min(view.max_nodes - wanted[chosen[k]], free)
        wanted[chosen[k]] += more
        free -= more
    entry = 0
    start = 0
    while start < nodes:
        end = start
        while end < nodes and view.speed[view.fastest[end]] == view.speed[view.fastest[start]]:
            end += 1
        entry = _fill(view, chosen[:count], wanted, entry, start, end, assignment)
        start = end


@jit
def _fill(
    view: View,
    chosen: np.ndarray,
    wanted: np.ndarray,
    entry: int,
    start: int,
    end: int,
    assignment: np.ndarray,
) -> int:
    """Seat tasks from ``entry`` on, on the nodes fastest[start:end] of one speed; return the next entry."""
    free = 0
    for k in range(start, end):
        free += view.up[view.fastest[k]]
    here = np.zeros(wanted.shape[0], dtype=np.int32)
    while free > 0 and entry < chosen.shape[0]:
        taken = min(wanted[chosen[entry]], free)
        here[chosen[entry]] = taken
        wanted[chosen[entry]] -= taken
        free -= taken
        if wanted[chosen[entry]] == 0:
            entry += 1
    for k in range(start, end):
        node = view.fastest[k]
        position = view.last_position[node]
        if position >= 0 and view.up[node] and here[position] > 0:
            assignment[node] = position
            here[position] -= 1
    k = start
    for position in chosen:
        while here[position] > 0:
            while assignment[view.fastest[k]] >= 0 or not view.up[view.fastest[k]]:
                k += 1
            assignment[view.fastest[k]] = position
            here[position] -= 1
    return entry


@jit_lean
def reference_speed(view: View) -> float:
    """Mean speed of the working nodes, units a slot; 1 if none works."""
    total, working = 0.0, 0
    for node in range(view.up.shape[0]):
        if view.up[node]:
            total += view.speed[node]
            working += 1
    return total / working if working > 0 else 1.0


@jit_lean
def capacity(view: View) -> tuple[float, float]:
    """Units a slot of all working nodes together, and the most that one task can get."""
    total, best, taken = 0.0, 0.0, 0
    for k in range(view.fastest.shape[0]):
        node = view.fastest[k]
        if view.up[node]:
            total += view.speed[node]
            if taken < view.max_nodes:
                taken += 1
                best += view.speed[node]
    if taken > 1:
        best *= taken ** (view.speedup_exponent - 1.0)
    return total, best
