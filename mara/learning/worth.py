"""What a state is worth under the index: the chance of each active task to be completed, summed.

Look-ahead counts completions for some slots and then adds the worth of the state it has reached. Without it a task
that is completed just behind the horizon in one roll-out and just before it in the other counts as a whole
task of difference: of the variance of 60-slot differences most is such noise. The chance is a logistic function of
a few features of the task, fitted on episodes of the index.

n active tasks, V features.
"""

from __future__ import annotations

import numpy as np

from mara.allocators.index import _chance as chance_within
from mara.simulator.engine import COUNT, Problem, State, View, lane, look
from mara.simulator.jit import jit_lean
from mara.simulator.selection import select_top

FEATURES = (
    "1",
    "lead: log index less that of the M-th best task, / 2, clipped to [-4, 4]",
    "positive part of the lead",
    "P(R <= s T): it finishes in time if trained from now on",
    "square of that chance",
    "lead times chance",
    "log(1 + slots left) / 5",
    "positive part of the lead times log(1 + slots left) / 5",
    "a node trained it last",
)


@jit_lean
def rank(view: View, score: np.ndarray) -> float:
    """Write the tabulated log index of all tasks to ``view.score``; return that of the M-th best."""
    n = view.active.shape[0]
    for i in range(n):
        view.score[i] = score[view.row[i], view.deadline[i] - view.slot]
    count = select_top(view.score, min(view.up.shape[0], n), view.chosen)
    return view.score[view.chosen[count - 1]]


@jit_lean
def describe(view: View, i: int, margin: float, speed: float, out: np.ndarray) -> None:
    """Fill the features (V,) of task i, after :func:`rank`."""
    lead = min(max((view.score[i] - margin) / 2.0, -4.0), 4.0)
    left = view.deadline[i] - view.slot
    chance = chance_within(view, view.row[i], left * speed)
    time = np.log1p(left) / 5.0
    kept = False
    for m in range(view.last_position.shape[0]):
        kept |= view.last_position[m] == i
    out[0] = 1.0
    out[1] = lead
    out[2] = max(lead, 0.0)
    out[3] = chance
    out[4] = chance * chance
    out[5] = lead * chance
    out[6] = time
    out[7] = max(lead, 0.0) * time
    out[8] = kept


@jit_lean
def worth(view: View, score: np.ndarray, weights: np.ndarray, speed: float, room: np.ndarray) -> float:
    """Expected completions among the active tasks under the index; ``room`` (V,) is scratch."""
    margin = rank(view, score)
    total = 0.0
    for i in range(view.active.shape[0]):
        describe(view, i, margin, speed, room)
        activation = 0.0
        for v in range(room.shape[0]):
            activation += weights[v] * room[v]
        total += 1.0 / (1.0 + np.exp(-activation))
    return total


@jit_lean
def record(
    problem: Problem,
    state: State,
    lanes: np.ndarray,
    score: np.ndarray,
    speed: float,
    features: np.ndarray,
    task: np.ndarray,
) -> int:
    """Describe all active tasks of some lanes: features (N, V) and the tasks' places (N,) in the ledger; return N."""
    count = 0
    for b in range(lanes.shape[0]):
        e = lanes[b]
        now = lane(state, e)
        view = look(problem, e, now)
        margin = rank(view, score)
        for i in range(now.counter[COUNT]):
            if count == task.shape[0]:
                return count
            describe(view, i, margin, speed, features[count])
            task[count] = problem.offset[e] + view.active[i]
            count += 1
    return count


def fit_chance(features: np.ndarray, completed: np.ndarray, ridge: float = 1.0) -> np.ndarray:
    """Fit a logistic regression by Newton's method: features (N, V), outcomes (N,) to weights (V,)."""
    weights = np.zeros(features.shape[1])
    for _ in range(20):
        chance = 1 / (1 + np.exp(-features @ weights))
        gradient = features.T @ (completed - chance) - ridge * weights
        curvature = (features * (chance * (1 - chance))[:, None]).T @ features + ridge * np.eye(len(weights))
        step = np.linalg.solve(curvature, gradient)
        weights += step
        if np.abs(step).max() < 1e-6:
            break
    return weights
