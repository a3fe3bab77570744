"""Earliest deadline first: the forecast-free rule of real-time systems (Liu and Layland, 1973)."""

from __future__ import annotations

import numpy as np

from mara.simulator.engine import run
from mara.simulator.jit import jit
from mara.simulator.selection import seat, select_top
from mara.simulator.simulate import Policy


@jit
def allocate_edf(view, params, memory, assignment):  # type: ignore[no-untyped-def]
    """Serve the tasks with the earliest deadlines; ties go to the earlier arrival."""
    n = view.active.shape[0]
    score = np.empty(n)
    for k in range(n):
        score[k] = -view.deadline[k]
    chosen = np.empty(assignment.shape[0], dtype=np.int64)
    seat(view, chosen, select_top(score, assignment.shape[0], chosen), assignment)


@jit
def run_edf(problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    """Hold the compiled loop for this policy."""
    return run(allocate_edf, problem, state, ledger, params, first, last)


def edf() -> Policy:
    """Return the policy."""
    return Policy("edf", allocate_edf, run_edf)
