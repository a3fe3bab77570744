"""LaiRA (AAAI 2026) by its published equations: look-ahead feasibility, optimistic rates, adaptive slices.

The loss after s units is modelled as a s^(-b). Which tasks can still make it is asked of a Kalman filter;
among those the one with the highest ratio of optimistic to required rate runs for a slice of slots, whose
length a controller adapts per task. Filter and regression depend on the curve alone, so their states are
tabulated for every forecast row.

- *Feasibility*: state [theta, theta', theta''], theta = [-b, ln a], moving with constant second difference,
  observed as ln loss = [ln s, 1] theta; predicted D = slots left x speed units ahead, feasible iff the law
  then gives at most the target at s + D.
- *Optimistic rate*: recursive least squares with forgetting, V = lambda I + sum gamma^(n-i) X X^T; log loss
  after a slice of m slots r = X theta - beta |X| in V^-1, rate (ln loss - r) / (ln(s + m N) - ln s). Its
  required counterpart is (ln loss - ln target) / (ln(s + N slots left) - ln s).
- *Slice*: M1 for a task's first four slices, then max(1, floor(M + Kp (e1 - e2) + Kd (e1 - 2 e2 + e3))).

Not given in the paper, assumed here: losses are taken relative to the loss before training, so that the
penalty lambda means the same for every task; the noise levels and constants below; e = -|log loss - its
prediction| at a slice's end, so that growing errors shorten slices; each task is first trained ``warm_up``
units, earliest arrival first; where no task is feasible (or nodes are left), the others run by the same
ratio; ``confidence`` scales beta. A task keeps its node until its slice ends; N is the nodes' mean speed.

Legend: C curves, N points, R forecast rows, n active tasks, M nodes.
"""

from __future__ import annotations

import numpy as np

from mara.allocators.placement import place, reference_speed
from mara.curves.corpus import Corpus
from mara.simulator.engine import View, run
from mara.simulator.jit import jit
from mara.workload.forecast_table import row_offsets
from mara.workload.tasks import TaskPool

WARM_UP, FIRST_SLICE, PROPORTIONAL, DERIVATIVE, CONFIDENCE, CONSTANTS = range(6)
"""Places of the weights in params; from CONSTANTS on: (N, 4), V^-1 as (11, 12, 22) and beta."""
SLICE, LEFT, COUNT, PREDICTED, E1, E2 = range(6)
MEMORY_WIDTH = 6
STATE, THETA, LOG_LOSS, LOG_TARGET, WIDTH = 0, 6, 8, 9, 10
"""Columns of the table: filter state, regression, log loss and log target relative to the first loss."""

FORGETTING = 0.95
PENALTY = 0.1
LENGTH_OF_THETA, NOISE, DELTA = 1.0, 0.05, 0.1
LONGEST_FEATURE = float(np.hypot(np.log(200.0), 1.0))
START_VARIANCE = np.array([0.25, 0.05, 1e-5, 1e-5, 1e-10, 1e-10])
STEP_VARIANCE = np.array([1e-6, 1e-6, 1e-9, 1e-9, 1e-14, 1e-14])
FIRST_EXPONENT = 0.3
LOST = 50.0
"""Log loss of a run that has diverged."""
FIRST, RUNNING, FEASIBLE = 1e9, 1e8, 1e7


def laira_table(pool: TaskPool, corpus: Corpus) -> np.ndarray:
    """Filter and regression states of every forecast row: (R, WIDTH) float32."""
    offset = row_offsets(pool.demand)
    template = np.repeat(np.arange(len(pool)), np.diff(offset))
    units = np.arange(offset[-1]) - offset[template]
    used, curve = np.unique(pool.rows_in(corpus), return_inverse=True)
    loss = corpus.loss[used].astype(np.float64)
    states = _states(np.log(loss / loss[:, :1]))
    table = np.empty((offset[-1], WIDTH), dtype=np.float32)
    table[:, :LOG_TARGET] = states[curve[template], units]
    table[:, LOG_TARGET] = np.log(pool.target[template] / loss[curve[template], 0])
    return table


def _states(log_loss: np.ndarray) -> np.ndarray:
    """Columns STATE, THETA and LOG_LOSS after each unit, (C, N, 9), from log losses (C, N).

    Losses are NaN where a run has diverged. Covariances and gains do not depend on the losses, so all curves
    share them.
    """
    curves, points = log_loss.shape
    alive = np.isfinite(log_loss)
    seen = np.where(alive, log_loss, LOST)
    move = np.kron([[1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]], np.eye(2))
    state = np.zeros((curves, 6))
    state[:, 0] = -FIRST_EXPONENT
    spread = np.diag(START_VARIANCE)
    moment = np.zeros((curves, 2))
    out = np.zeros((curves, points, 9))
    out[:, 0, :6] = state
    for n, inverse in enumerate(_inverses(points)):
        if n == 0:
            continue
        feature = np.array([np.log(n), 1.0])
        state, spread = state @ move.T, move @ spread @ move.T + np.diag(STEP_VARIANCE)
        observed = np.concatenate([feature, np.zeros(4)])
        gain = spread @ observed / (observed @ spread @ observed + NOISE**2)
        state = state + np.where(alive[:, n, None], (seen[:, n] - state @ observed)[:, None] * gain, 0.0)
        spread = spread - np.outer(gain, observed @ spread)
        moment = FORGETTING * moment + np.where(alive[:, n, None], seen[:, n, None] * feature, 0.0)
        out[:, n, :6] = state
        out[:, n, 6:8] = moment @ inverse
        out[:, n, 8] = seen[:, n]
    return out


def _inverses(points: int) -> np.ndarray:
    """V^-1 after each unit: (N, 2, 2)."""
    total = np.zeros((2, 2))
    inverse = np.empty((points, 2, 2))
    for n in range(points):
        if n > 0:
            feature = np.array([np.log(n), 1.0])
            total = FORGETTING * total + np.outer(feature, feature)
        inverse[n] = np.linalg.inv(PENALTY * np.eye(2) + total)
    return inverse


def constants(points: int) -> np.ndarray:
    """What the policy needs after each unit, flat: (N * 4,), V^-1 as (11, 12, 22) and beta."""
    inverse = _inverses(points)
    n = np.arange(points)
    seen = (1 - FORGETTING ** (2 * n)) / (1 - FORGETTING**2)
    log_term = 2 * np.log(1 / DELTA) + 2 * np.log(1 + LONGEST_FEATURE**2 * seen / (2 * PENALTY))
    beta = np.sqrt(PENALTY) * LENGTH_OF_THETA + NOISE * np.sqrt(log_term)
    return np.stack([inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1], beta], axis=1).ravel()


@jit
def feasible(state: np.ndarray, units: float, ahead: float, log_target: float) -> bool:
    """Whether the filter's law, moved ``ahead`` units on, gives at most the target at ``units + ahead``."""
    slope = state[0] + ahead * state[2] + 0.5 * ahead * ahead * state[4]
    level = state[1] + ahead * state[3] + 0.5 * ahead * ahead * state[5]
    return slope * np.log(units + ahead) + level <= log_target


@jit
def optimistic_log_loss(theta: np.ndarray, known: np.ndarray, confidence: float, log_units: float) -> float:
    """Lower confidence bound of the log loss at exp(log_units) units; ``known``: V^-1 (11, 12, 22), beta."""
    width = known[0] * log_units * log_units + 2.0 * known[1] * log_units + known[2]
    return theta[0] * log_units + theta[1] - confidence * known[3] * np.sqrt(max(width, 0.0))


@jit
def next_slice(
    length: float, e1: float, e2: float, e3: float, proportional: float, derivative: float
) -> float:
    """Length of the next slice in slots, at least 1."""
    return max(1.0, np.floor(length + proportional * (e1 - e2) + derivative * (e1 - 2.0 * e2 + e3)))


@jit
def _prediction(view: View, params: np.ndarray, i: int, slots: float, speed: float) -> float:
    """Optimistic log loss of task i after so many slots more."""
    units = max(view.units[i], 1.0)
    points = (params.shape[0] - CONSTANTS) // 4
    at = CONSTANTS + 4 * min(int(view.units[i]), points - 1)
    theta = view.table[view.row[i], THETA : THETA + 2]
    return optimistic_log_loss(theta, params[at : at + 4], params[CONFIDENCE], np.log(units + slots * speed))


@jit
def _end_slice(view: View, params: np.ndarray, memory: np.ndarray, i: int) -> None:
    """Record the error of a slice that has just ended and set the length of the next."""
    e3, e2 = memory[i, E2], memory[i, E1]
    e1 = -abs(np.float64(view.table[view.row[i], LOG_LOSS]) - memory[i, PREDICTED])
    memory[i, COUNT] += 1.0
    if memory[i, COUNT] >= 4.0:
        length = next_slice(memory[i, SLICE], e1, e2, e3, params[PROPORTIONAL], params[DERIVATIVE])
        memory[i, SLICE] = length
    memory[i, E1], memory[i, E2] = e1, e2
    memory[i, LEFT] = 0.0


@jit
def allocate_laira(view: View, params: np.ndarray, memory: np.ndarray, assignment: np.ndarray) -> None:
    """LaiRA; params as in ``LairaWeights`` and then :func:`constants`.

    A task's memory: length of its slice, slots left of it (-1 when it has just been used up), number of
    slices so far, prediction for the slice's end, and the last two errors.
    """
    n = view.active.shape[0]
    speed = reference_speed(view)
    score = np.empty(n)
    for i in range(n):
        if view.units[i] < params[WARM_UP]:
            score[i] = FIRST - view.arrival[i]
            continue
        if memory[i, SLICE] == 0.0:
            memory[i, SLICE] = max(1.0, np.floor(params[FIRST_SLICE]))
        if memory[i, LEFT] > 0.0:
            score[i] = RUNNING - i
            continue
        if memory[i, LEFT] < 0.0:
            _end_slice(view, params, memory, i)
        row, units = view.row[i], max(view.units[i], 1.0)
        ahead = (view.deadline[i] - view.slot) * speed
        log_loss, log_target = view.table[row, LOG_LOSS], view.table[row, LOG_TARGET]
        run_for = memory[i, SLICE] * speed
        gain = log_loss - _prediction(view, params, i, memory[i, SLICE], speed)
        rate = gain / (np.log(units + run_for) - np.log(units))
        required = (log_loss - log_target) / (np.log(units + ahead) - np.log(units))
        score[i] = rate / max(required, 1e-6)
        if feasible(view.table[row, STATE : STATE + 6], units, ahead, log_target):
            score[i] += FEASIBLE
    place(view, score, assignment)
    for node in range(assignment.shape[0]):
        i = assignment[node]
        if i < 0 or view.units[i] < params[WARM_UP]:
            continue
        if memory[i, LEFT] == 0.0:
            memory[i, LEFT] = memory[i, SLICE]
            memory[i, PREDICTED] = _prediction(view, params, i, memory[i, SLICE], speed)
        memory[i, LEFT] -= 1.0
        if memory[i, LEFT] == 0.0:
            memory[i, LEFT] = -1.0


@jit
def run_laira(problem, state, ledger, params, first, last):  # type: ignore[no-untyped-def]
    """Simulate episodes with :func:`allocate_laira`."""
    return run(allocate_laira, problem, state, ledger, params, first, last)
