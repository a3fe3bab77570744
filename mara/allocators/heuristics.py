"""The simple allocators: random, FIFO, SRPT, least laxity and Moore–Hodgson admission (EDF stands in edf.py).

The last three read one number per forecast row, the estimated remaining units (a quantile or the point
estimate), tabulated beforehand. Legend: n active tasks, M nodes, R forecast rows.
"""

from __future__ import annotations

import numpy as np

from mara.allocators.placement import capacity, place, reference_speed
from mara.simulator.engine import View, run
from mara.simulator.jit import jit
from mara.simulator.noise import uniform
from mara.simulator.selection import select_top
from mara.workload.forecast_table import ForecastTable

RANDOM, FIFO, SRPT, LEAST_LAXITY = range(4)
HOPELESS = 1e6
"""Scores below minus this are of tasks that are not expected to be completed; they only fill idle nodes."""


def remaining_table(forecasts: ForecastTable, quantile: float) -> np.ndarray:
    """Estimated remaining units of each forecast row: (R, 1) float32, at most 100 horizons.

    ``quantile`` 0 takes the point estimate; else the first b with P(remaining <= b) >= quantile, or never.
    """
    never = np.float32(100 * forecasts.horizon)
    if quantile == 0:
        return np.minimum(forecasts.point, never)[:, None].astype(np.float32)
    reached = forecasts.cdf[:, -1] >= quantile
    below = np.count_nonzero(forecasts.cdf < quantile, axis=1)
    return np.where(reached, below, never)[:, None].astype(np.float32)


@jit
def allocate_ranked(view: View, params: np.ndarray, memory: np.ndarray, assignment: np.ndarray) -> None:
    """Train the tasks that rank first by the simple rule that params[0] names.

    RANDOM draws anew each slot. FIFO goes by arrival. SRPT goes by the least estimated remaining demand.
    LEAST_LAXITY goes by slots left less slots needed; tasks of negative laxity are not expected to make it
    and come last, the least hopeless first (else a few lost tasks would hold the nodes). All four share one
    compilation.
    """
    score = np.empty(view.active.shape[0])
    _, best = capacity(view)
    rule = int(params[0])
    for i in range(score.shape[0]):
        if rule == RANDOM:
            score[i] = uniform(np.uint64(view.seed), view.slot, view.active[i])
        elif rule == FIFO:
            score[i] = -view.arrival[i]
        elif rule == SRPT:
            score[i] = -view.table[view.row[i], 0]
        else:
            laxity = view.deadline[i] - view.slot - view.table[view.row[i], 0] / max(best, 1e-9)
            score[i] = -laxity if laxity >= 0.0 else laxity - HOPELESS
    place(view, score, assignment)


@jit
def allocate_moore_hodgson(
    view: View, params: np.ndarray, memory: np.ndarray, assignment: np.ndarray
) -> None:
    """Admission by Moore and Hodgson (1968) on the estimates, the admitted by earliest deadline.

    Tasks are taken in the order of deadlines; whenever the estimated work due by a deadline exceeds what the
    cluster can give by then, the admitted task with the most remaining work is dropped. On one node this
    maximises the number of tasks in time when the estimates are true. On several nodes the cluster counts as
    one node of the summed speed, and a task that could not make it even on the nodes it may use at most is
    never admitted. Admitted tasks run by earliest deadline, those without laxity before them; nodes left over
    go to the others by shortest remaining demand.
    """
    n = view.active.shape[0]
    total, best = capacity(view)
    order = np.empty(n, dtype=np.int64)
    select_top(-view.deadline.astype(np.float64), n, order)
    admitted = np.zeros(n, dtype=np.bool_)
    work = 0.0
    for i in order:
        left = view.deadline[i] - view.slot
        need = np.float64(view.table[view.row[i], 0])
        if need > best * left:
            continue
        admitted[i] = True
        work += need
        if work > total * left + 1e-9:
            largest = i
            for j in range(n):
                if admitted[j] and view.table[view.row[j], 0] > view.table[view.row[largest], 0]:
                    largest = j
            admitted[largest] = False
            work -= view.table[view.row[largest], 0]
    speed = reference_speed(view)
    score = np.empty(n)
    for i in range(n):
        need = view.table[view.row[i], 0]
        if not admitted[i]:
            score[i] = -need - HOPELESS
        elif view.deadline[i] - view.slot - need / speed < 1.0:
            score[i] = HOPELESS - view.deadline[i]
        else:
            score[i] = -view.deadline[i]
    place(view, score, assignment)


@jit
def run_ranked(problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    """Simulate episodes with :func:`allocate_ranked`."""
    return run(allocate_ranked, problem, state, ledger, params, first, last)


@jit
def run_moore_hodgson(problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    """Simulate episodes with :func:`allocate_moore_hodgson`."""
    return run(allocate_moore_hodgson, problem, state, ledger, params, first, last)
