"""LARA (Wang and Zhou's adaptive search for CoRE-Learning, ICML 2024), re-implemented for nodes.

The paper's abstract and its follow-up give the outline; the body is not public. Known: the loss is modelled
as a power law fitted by weighted least squares with a forgetting factor (the predictor ``wls``), a fixed
exploration phase comes first, and then every step a search allocates shares that are optimal for the
estimates. Assumed here:

- *Exploration*: each task first gets ``explore`` units (5, the fewest points a fit can use), the earliest
  arrival first, before any other work.
- *Required rate*: (safety x estimated remaining units) / slots left. The estimate is read anew at every
  search; ``safety`` is 1.
- *Search*: tasks are taken in the order of their required rates while the sum fits into the capacity that
  exploration leaves. This maximises the number of tasks that meet their deadline if the estimates are true.
  A task whose rate exceeds what its nodes can give is not taken.
- *Leftover*: capacity that no accepted task requires is spread over the accepted ones evenly, up to what one
  task can use.
- *Nodes*: the paper divides one resource; here each accepted task collects its share as credit, slot by slot,
  and nodes go to the tasks with the most credit, which pay with the units received. Nodes left
  over train the tasks not accepted, by required rate.
- *Refresh*: a search every slot.

``lara_deadline`` also shrinks the estimate towards a share of the window: the logarithms of the two are
averaged, the fit with weight units / (units + prior_units).

Legend: n active tasks, M nodes.
"""

from __future__ import annotations

import numpy as np

from mara.allocators.placement import capacity, place
from mara.simulator.engine import View, run
from mara.simulator.jit import jit
from mara.simulator.selection import select_top

EXPLORE, SAFETY, REFRESH, PRIOR_UNITS, PRIOR_SHARE = range(5)
CREDIT, SHARE = range(2)
MEMORY_WIDTH, SCRATCH_WIDTH = 2, 1
LONGEST = 1000.0
"""Estimates beyond this many units count as this many where they are averaged with the prior."""
FIRST, THEN = 1e9, 1e6
"""Scores of exploring and of accepted tasks stand above these."""


@jit
def _needed(view: View, params: np.ndarray, i: int) -> float:
    """Estimated remaining units of task i, with safety; inf = never."""
    estimate = np.float64(view.point[view.row[i]])
    if params.shape[0] > PRIOR_UNITS:
        weight = view.units[i] / (view.units[i] + params[PRIOR_UNITS])
        window = view.deadline[i] - view.arrival[i]
        prior = max(params[PRIOR_SHARE] * window - view.units[i], 1.0)
        bounded = max(min(estimate, LONGEST), 1.0)
        estimate = np.exp(weight * np.log(bounded) + (1.0 - weight) * np.log(prior))
    return max(params[SAFETY] * estimate, 1e-3)


@jit
def accept(rate: np.ndarray, limit: float, room: float, share: np.ndarray) -> None:
    """Write each task's share of the capacity ``room`` to ``share`` (n,), 0 for those not accepted.

    Tasks are taken by rising required ``rate`` (n,) while the sum fits, none above ``limit``; what is left is
    spread evenly over them, no task getting more than ``limit``.
    """
    share[:] = 0.0
    order = np.empty(rate.shape[0], dtype=np.int64)
    size = select_top(-rate, order.shape[0], order)
    count, total = 0, 0.0
    for i in order[:size]:
        if rate[i] > limit or total + rate[i] > room + 1e-9:
            break
        share[i] = rate[i]
        total += rate[i]
        count += 1
    # Water-filling from the highest rate down: who is full leaves the rest to the others.
    left = room - total
    for k in range(count - 1, -1, -1):
        i = order[k]
        more = min(left / (k + 1), limit - share[i])
        share[i] += more
        left -= more


@jit
def allocate_lara(view: View, params: np.ndarray, memory: np.ndarray, assignment: np.ndarray) -> None:
    """LARA; params as in ``LaraWeights`` or ``LaraDeadlineWeights``."""
    n = view.active.shape[0]
    total, limit = capacity(view)
    rate = np.empty(n)
    exploring = 0
    for i in range(n):
        rate[i] = _needed(view, params, i) / (view.deadline[i] - view.slot)
        if view.units[i] < params[EXPLORE]:
            rate[i] = np.inf
            exploring += 1
    working = 0
    for node in range(view.up.shape[0]):
        working += view.up[node]
    if view.slot >= view.scratch[0]:
        room = total * max(working - exploring, 0) / max(working, 1)
        share = np.empty(n)
        accept(rate, limit, room, share)
        memory[:, SHARE] = share
        view.scratch[0] = view.slot + params[REFRESH]
    score = np.empty(n)
    for i in range(n):
        if view.units[i] < params[EXPLORE]:
            score[i] = FIRST - view.arrival[i]
        elif memory[i, SHARE] > 0.0:
            memory[i, CREDIT] = min(memory[i, CREDIT] + memory[i, SHARE], limit * 4.0)
            score[i] = THEN + memory[i, CREDIT]
        else:
            memory[i, CREDIT] = 0.0
            score[i] = -min(rate[i], THEN)
    place(view, score, assignment)
    for node in range(assignment.shape[0]):
        if assignment[node] >= 0:
            memory[assignment[node], CREDIT] -= view.speed[node]


@jit
def run_lara(problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    """Simulate episodes with :func:`allocate_lara`."""
    return run(allocate_lara, problem, state, ledger, params, first, last)
