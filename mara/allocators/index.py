"""Gittins-type indices: worth of a slot of training from the distribution of the remaining demand.

G(T) = max over 1 <= b <= T of P(R <= b) / E[min(R, b)] is the best rate of completions per unit that a task
with remaining demand R offers within T units (Gittins, 1979; with a deadline the horizon is the time left).
How urgent it is, is how much P(R <= T) falls if the task waits some slots. ``gittins`` multiplies the two;
``index`` is a log-linear form of these and a few more terms, whose weights are tuned.

On nodes of different speed the highest index gets the fastest node (``index``), or tasks and nodes are
matched (``index_matching``). Where a task may use several nodes, each asks for the number at which its index
per node is highest. Where switching costs slots, a task not set up anywhere has the set-up in its
denominator.

Legend: n active tasks, M nodes, R forecast rows, H horizon, T units that fit in the time left.
"""

from __future__ import annotations

import numpy as np

from mara.allocators.matching import match
from mara.allocators.placement import place, place_bundles, reference_speed
from mara.simulator.engine import View, run
from mara.simulator.jit import jit, jit_lean
from mara.simulator.selection import select_top
from mara.workload.forecast_table import ForecastTable

HORIZON, WAIT, FLOOR, URGENCY, CHANCE, EXPLORE, EXPLORE_UNITS, COMMIT, STICKY, SPEED = range(10)
TINY = 1e-6


def gittins_table(forecasts: ForecastTable, setup: float = 0.0) -> np.ndarray:
    """Tabulate G: (R, H+1) float32, column T; with ``setup`` > 0 units, (R, 2H+2).

    The second half is then the index of a task that must first be set up: the set-up is added to the expected
    time, max over b of P(R <= b) / (setup + E[min(R, b)]).
    """
    width = forecasts.horizon + 1
    table = np.zeros((len(forecasts), width * (2 if setup > 0 else 1)), dtype=np.float32)
    _tabulate(forecasts.cdf, 0.0, table[:, :width])
    if setup > 0:
        _tabulate(forecasts.cdf, setup, table[:, width:])
    return table


@jit
def _tabulate(cdf: np.ndarray, setup: float, table: np.ndarray) -> None:
    for r in range(cdf.shape[0]):
        expected, best = setup, 0.0
        for b in range(1, cdf.shape[1]):
            expected += 1.0 - cdf[r, b - 1]
            best = max(best, cdf[r, b] / max(expected, TINY))
            table[r, b] = best


@jit_lean
def _chance(view: View, row: int, units: float) -> float:
    """P(R <= units) by the forecast of a row."""
    whole = min(int(units + TINY), view.cdf.shape[1] - 1)
    return float(view.cdf[row, whole]) if whole >= 0 else 0.0


@jit
def allocate_gittins(view: View, params: np.ndarray, memory: np.ndarray, assignment: np.ndarray) -> None:
    """G(T) times (floor + fall of P(R <= T) by waiting); params as in ``GittinsWeights``."""
    wait, floor = params[0], params[1]
    speed = reference_speed(view)
    last = view.cdf.shape[1] - 1
    score = np.empty(view.active.shape[0])
    for i in range(score.shape[0]):
        row = view.row[i]
        left = (view.deadline[i] - view.slot) * speed
        fall = _chance(view, row, left) - _chance(view, row, left - wait * speed)
        score[i] = view.table[row, min(int(left + TINY), last)] * (floor + fall)
    place(view, score, assignment)


@jit_lean
def log_index(view: View, params: np.ndarray, i: int, speed: float, fresh: bool) -> float:
    """Log of the tuned index of task i if it gets ``speed`` units a slot; ``fresh``: to be set up first."""
    row = view.row[i]
    width = view.cdf.shape[1]
    left = view.deadline[i] - view.slot
    if fresh:
        left -= view.switching_cost
    column = min(int(left * speed * params[HORIZON] + TINY), width - 1)
    if column < 1:
        return np.log(TINY) * 4.0
    column += width if fresh and view.table.shape[1] > width else 0
    chance = _chance(view, row, left * speed)
    fall = chance - _chance(view, row, (left - params[WAIT]) * speed)
    value = np.log((view.table[row, column] + TINY) * (params[FLOOR] + fall) ** params[URGENCY])
    if params[CHANCE] != 0.0:
        value += params[CHANCE] * np.log(chance + 1e-3)
    if params[EXPLORE] != 0.0:
        value += params[EXPLORE] * np.exp(-view.units[i] / params[EXPLORE_UNITS])
    if params[COMMIT] != 0.0:
        value += params[COMMIT] * np.log1p(view.units[i])
    return value


@jit
def set_up(view: View) -> np.ndarray:
    """Which tasks a working node trained last: (n,) bool."""
    kept = np.zeros(view.active.shape[0], dtype=np.bool_)
    for node in range(view.up.shape[0]):
        if view.up[node] and view.last_position[node] >= 0:
            kept[view.last_position[node]] = True
    return kept


@jit
def allocate_index(view: View, params: np.ndarray, memory: np.ndarray, assignment: np.ndarray) -> None:
    """The tuned index; params as in ``IndexWeights``."""
    n = view.active.shape[0]
    speed = reference_speed(view)
    kept = set_up(view)
    costly = view.switching_cost > 0.0
    score = np.empty(n)
    bundle = np.ones(n, dtype=np.int32)
    for i in range(n):
        fresh = costly and not kept[i]
        score[i] = log_index(view, params, i, speed, fresh)
        for k in range(2, view.max_nodes + 1):
            gain = k ** (view.speedup_exponent - 1.0)
            other = log_index(view, params, i, speed * gain * k, fresh) + np.log(gain)
            if other > score[i]:
                score[i], bundle[i] = other, k
        score[i] += params[STICKY] * kept[i]
    if view.max_nodes > 1:
        place_bundles(view, score, bundle, assignment)
    else:
        place(view, score, assignment)


@jit_lean
def differ(view: View) -> bool:
    """Whether nodes differ in speed while a task may use but one: where tasks and nodes are worth matching."""
    slowest = view.speed[view.fastest[view.fastest.shape[0] - 1]]
    return view.max_nodes == 1 and view.speed[view.fastest[0]] != slowest


@jit
def allocate_index_matching(
    view: View, params: np.ndarray, memory: np.ndarray, assignment: np.ndarray
) -> None:
    """The tuned index, on nodes of different speed matched for the highest summed worth; elsewhere `index` itself.

    The worth of task i on node m is the index at the node's speed times a power of the speed. A negative power
    lets the fast nodes go, of tasks that finish in time on either, to those that are not about to finish. Only the
    3 M tasks of highest index at the reference speed are candidates.
    """
    if not differ(view):
        allocate_index(view, params, memory, assignment)
        return
    n, nodes = view.active.shape[0], view.up.shape[0]
    speed = reference_speed(view)
    costly = view.switching_cost > 0.0
    kept = set_up(view)
    score = np.empty(n)
    for i in range(n):
        score[i] = log_index(view, params, i, speed, costly and not kept[i]) + params[STICKY] * kept[i]
    chosen = np.empty(min(n, 3 * nodes), dtype=np.int64)
    count = select_top(score, chosen.shape[0], chosen)
    worth = np.zeros((nodes, count))
    for rank in range(nodes):
        m = view.fastest[rank]
        twin = view.fastest[max(rank - 1, 0)]
        same = not costly and rank > 0 and view.speed[twin] == view.speed[m] and view.up[twin]
        for k in range(count):
            i = chosen[k]
            if not view.up[m]:
                worth[m, k] = 0.0
            elif same:
                worth[m, k] = worth[twin, k]
            else:
                here = view.last_position[m] == i if costly else kept[i]
                value = log_index(view, params, i, view.speed[m], costly and not here) + params[STICKY] * here
                worth[m, k] = view.speed[m] ** params[SPEED] * np.exp(value)
    partner = match(worth)
    for m in range(nodes):
        if view.up[m] and partner[m] >= 0:
            assignment[m] = chosen[partner[m]]


@jit
def run_gittins(problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    """Simulate episodes with :func:`allocate_gittins`."""
    return run(allocate_gittins, problem, state, ledger, params, first, last)


@jit
def run_index(problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    """Simulate episodes with :func:`allocate_index`."""
    return run(allocate_index, problem, state, ledger, params, first, last)


@jit
def run_index_matching(problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    """Simulate episodes with :func:`allocate_index_matching`."""
    return run(allocate_index_matching, problem, state, ledger, params, first, last)
