"""Earliest deadline first: the forecast-free rule of real-time systems (Liu and Layland, 1973)."""

from __future__ import annotations

from mara.simulator.engine import run
from mara.simulator.jit import jit_lean
from mara.simulator.selection import seat, select_top
from mara.simulator.simulate import Policy


@jit_lean
def allocate_edf(view, params, memory, assignment):  # type: ignore[no-untyped-def]
    """Serve the tasks with the earliest deadlines; ties go to the earlier arrival."""
    for k in range(view.active.shape[0]):
        view.score[k] = -view.deadline[k]
    seat(view, view.chosen, select_top(view.score, assignment.shape[0], view.chosen), assignment)


@jit_lean
def run_edf(problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    """Hold the compiled loop for this policy."""
    return run(allocate_edf, problem, state, ledger, params, first, last)


def edf() -> Policy:
    """Return the policy."""
    return Policy("edf", allocate_edf, run_edf)
