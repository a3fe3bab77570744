"""``fair_index``: the tuned index under a constraint of even completion over the families of tasks.

The problem "complete as many tasks as possible such that no family completes less than the others" has the
Lagrangian sum over tasks of worth + sum over families of multiplier * violation. Its multipliers are updated
slot by slot (dual ascent with the step ``strength``): a family's is strength * (completion of all - completion
of the family), over the tasks that have left in the episode so far, and it is added to the log index of each of the
family's tasks. Strength 0 is the index itself.

A task that leaves before its deadline has been completed; one that leaves at its deadline counts as missed, but
for the chance that its last slot was enough. Rates start from ``PRIOR`` tasks at the rate of all.

One node a task, whatever the cap.

Legend: n active tasks, F families.
"""

from __future__ import annotations

import numpy as np

from mara.allocators.index import STICKY, log_index, set_up
from mara.allocators.placement import place, reference_speed
from mara.errors import InputError
from mara.simulator.engine import View, run
from mara.simulator.jit import jit
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool

STRENGTH = 9
FAMILIES = 8
"""The most families that are told apart."""
PRIOR = 10.0
MEMORY_WIDTH, SCRATCH_WIDTH = 1, 2 * FAMILIES
"""Per task: whether it has been counted; per episode: arrived, then missed, by family."""


def with_family(table: np.ndarray, forecasts: ForecastTable, pool: TaskPool) -> np.ndarray:
    """The index's table with the number of the family of each row as one more, the last, column."""
    names, code = np.unique(pool.family, return_inverse=True)
    if len(names) > FAMILIES:
        raise InputError(f"allocator fair_index: {len(names)} families; it tells at most {FAMILIES} apart")
    rows = np.repeat(code, np.diff(forecasts.offset)).astype(np.float32)
    return np.concatenate([table, rows[:, None]], axis=1)


@jit
def _multipliers(view: View, family: np.ndarray, strength: float, memory: np.ndarray) -> np.ndarray:
    """Count the tasks that are new and return each family's multiplier (F,)."""
    arrived, missed = view.scratch[:FAMILIES], view.scratch[FAMILIES:]
    left = np.zeros(FAMILIES)
    for i in range(family.shape[0]):
        if memory[i, 0] == 0.0:
            memory[i, 0] = 1.0
            arrived[family[i]] += 1.0
        left[family[i]] -= 1.0
    left += arrived
    overall = 1.0 - missed.sum() / max(left.sum(), 1.0)
    rate = (left - missed + PRIOR * overall) / (left + PRIOR)
    return strength * (overall - rate)


@jit
def allocate_fair(view: View, params: np.ndarray, memory: np.ndarray, assignment: np.ndarray) -> None:
    """The index with the families' multipliers; params as in ``FairWeights``."""
    n = view.active.shape[0]
    speed = reference_speed(view)
    kept = set_up(view)
    family = np.empty(n, dtype=np.int64)
    for i in range(n):
        family[i] = np.int64(view.table[view.row[i], view.table.shape[1] - 1])
    bonus = _multipliers(view, family, params[STRENGTH], memory)
    score = np.empty(n)
    for i in range(n):
        fresh = view.switching_cost > 0.0 and not kept[i]
        score[i] = log_index(view, params, i, speed, fresh) + params[STICKY] * kept[i] + bonus[family[i]]
    place(view, score, assignment)
    served = np.zeros(n, dtype=np.bool_)
    for position in assignment:
        if position >= 0:
            served[position] = True
    for i in range(n):
        if view.deadline[i] == view.slot + 1:
            chance = view.cdf[view.row[i], 1] if served[i] else 0.0
            view.scratch[FAMILIES + family[i]] += 1.0 - chance


@jit
def run_fair(problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    """Simulate episodes with :func:`allocate_fair`."""
    return run(allocate_fair, problem, state, ledger, params, first, last)
