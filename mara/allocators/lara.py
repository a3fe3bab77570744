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
- *Nodes*: the paper divides one resource into shares; a node serves one task a slot. Accepted tasks get nodes
  by earliest deadline, which meets the deadlines that the shares would meet and lets nothing idle. (Handing
  out nodes by the deficit against the shares instead finishes every task just before its deadline and loses
  up to 10 points with true estimates.)
- *Leftover*: working ahead on accepted tasks in that way spreads the capacity that they do not require; nodes
  beyond the accepted tasks train the others, by required rate.
- *Refresh*: a search every slot.

``lara_deadline`` also shrinks the estimate towards a share of the window: the logarithms of the two are
averaged, the fit with weight units / (units + prior_units).

Legend: n active tasks, M nodes.
"""

from __future__ import annotations

import numpy as np

from mara.allocators.placement import capacity, place, reference_speed
from mara.simulator.engine import View, run
from mara.simulator.jit import jit
from mara.simulator.selection import select_top

EXPLORE, SAFETY, REFRESH, PRIOR_UNITS, PRIOR_SHARE = range(5)
MEMORY_WIDTH, SCRATCH_WIDTH = 1, 1
"""Per task: whether it is accepted; per episode: the slot of the next search."""
LONGEST = 1000.0
"""Estimates beyond this many units count as this many where they are averaged with the prior."""
FIRST, THEN = 1e9, 1e6
"""Scores of exploring and of accepted tasks stand around these, of others at most at 0."""


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
def accept(rate: np.ndarray, limit: float, room: float, accepted: np.ndarray) -> None:
    """Mark as many tasks as possible whose required rates (n,) sum to at most ``room``; none above ``limit``.

    Taking them by rising rate is optimal. Ties go to the earlier arrival; ``accepted`` (n,) is all written.
    """
    accepted[:] = 0.0
    order = np.empty(rate.shape[0], dtype=np.int64)
    size = select_top(-rate, order.shape[0], order)
    total = 0.0
    for i in order[:size]:
        total += rate[i]
        if rate[i] > limit or total > room + 1e-9:
            break
        accepted[i] = 1.0


@jit
def allocate_lara(view: View, params: np.ndarray, memory: np.ndarray, assignment: np.ndarray) -> None:
    """LARA; params as in ``LaraWeights`` or ``LaraDeadlineWeights``."""
    n = view.active.shape[0]
    total, limit = capacity(view)
    speed = reference_speed(view)
    rate = np.empty(n)
    room = total
    for i in range(n):
        if view.units[i] < params[EXPLORE]:
            rate[i] = np.inf
            room -= speed
        else:
            rate[i] = _needed(view, params, i) / (view.deadline[i] - view.slot)
    if view.slot >= view.scratch[0]:
        accept(rate, limit, room, memory[:, 0])
        view.scratch[0] = view.slot + params[REFRESH]
    score = np.empty(n)
    for i in range(n):
        if view.units[i] < params[EXPLORE]:
            score[i] = FIRST - view.arrival[i]
        elif memory[i, 0] > 0.0:
            score[i] = THEN - view.deadline[i]
        else:
            score[i] = -min(rate[i], THEN)
    place(view, score, assignment)


@jit
def run_lara(problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    """Simulate episodes with :func:`allocate_lara`."""
    return run(allocate_lara, problem, state, ledger, params, first, last)
