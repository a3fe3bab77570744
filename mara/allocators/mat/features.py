"""What the network sees of a slot: every feature by name, and the compiled function that computes them.

M nodes in decoding order (fastest first), n active tasks, K candidates, R forecast rows, H horizon.
`s` below is the mean speed of the working nodes, T the slots a task has left, R its remaining demand by forecast.
Candidates are the K tasks of highest index: a slot trains at most M, so with K >= 3 M a task outside would have
to overtake two thirds of the candidates; how often the policy picks near the edge is reported by the training log.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mara.allocators.index import STICKY, differ, log_index
from mara.allocators.index import _chance as chance_within
from mara.allocators.placement import reference_speed
from mara.simulator.engine import View
from mara.simulator.jit import jit_inlined, jit_lean
from mara.simulator.selection import select_top
from mara.workload.forecast_table import ForecastTable

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
WAITS = (1, 4, 16)

TASK_FEATURES = (
    "quantile 0.1 of R, as log(1 + R) / log(1 + H); H where it lies beyond",
    "quantile 0.25 of R, likewise",
    "median of R, likewise",
    "quantile 0.75 of R, likewise",
    "quantile 0.9 of R, likewise",
    "P(R <= H): it can be reached at all",
    "E[R | R <= H] / H",
    "P(R <= 1): it finishes with the next unit",
    "P(R <= 4)",
    "P(R <= s T): it finishes in time if it is trained from now on",
    "fall of that chance if it waits 1 slot",
    "fall if it waits 4 slots",
    "fall if it waits 16 slots",
    "log of the Gittins index at s T units, / 4",
    "index of the tuned index policy less that of the M-th best task, / 4, clipped to [-2, 2]",
    "log(1 + units trained) / 5",
    "log(1 + slots served) / 5",
    "age in slots / 120",
    "T / 120",
    "log(1 + T) / 5",
    "laxity: (T - median of R / s) / 120",
    "nodes that trained it last, / cap",
)
NODE_FEATURES = (
    "log2(speed / s)",
    "it works",
    "its last task is still active",
    "slots of set-up still owed, / 4",
    "its place in the decoding order / M",
)
PAIR_FEATURES = (
    "the node trained this task last",
    "index at the node's speed less index at speed s, clipped to [-3, 3]",
    "P(R <= speed T)",
    "fall of that chance if it waits 4 slots",
    "the index policy puts this task on this node",
    "log2(speed / s)",
    "T / 120",
    "median of R, as log(1 + R) / log(1 + H)",
    "fall of P(R <= s T) if it waits 16 slots",
    "log of the Gittins index at s T units, / 4",
)
INDEX_IN_TASK = (14,)
INDEX_IN_PAIR = (1, 4)
"""Columns that come from the index policy; hidden where learning begins with nothing."""
_SHARED = (18, 2, 12, 13)  # the task features that the last of these repeat
SETTING_FEATURES = (
    "log2(1 + active tasks per node) / 4",
    "log2(M) / 4",
    "standard deviation of log2 speed",
    "switching cost in slots",
    "(cap - 1) / 4",
    "share of nodes down",
)
SIZES = (len(TASK_FEATURES), len(NODE_FEATURES), len(PAIR_FEATURES), len(SETTING_FEATURES))
_ROW_FEATURES = 9
_EPSILON = 1e-6
_CERTAIN = 1e6  # added to the index's own choices, which are always candidates
_LIFT = (
    2.0  # how far (in log index) the index's choice stands above others where it is more than a sorted list
)


class Buffers(NamedTuple):
    """One slot's observation, as in ``network.Observation`` without the batch axis, and the candidates' positions."""

    task: np.ndarray
    node: np.ndarray
    pair: np.ndarray
    prior: np.ndarray
    setting: np.ndarray
    present: np.ndarray
    up: np.ndarray
    candidate: np.ndarray
    """(K,) int64 positions among the active tasks, -1 where absent."""
    base: np.ndarray
    """(M,) int64 actions of the index policy in decoding order; K idles."""


def new_buffers(batch: int, candidates: int, nodes: int) -> Buffers:
    """Make room for ``batch`` slots."""
    tasks, per_node, pairs, setting = SIZES
    return Buffers(
        task=np.zeros((batch, candidates, tasks), np.float32),
        node=np.zeros((batch, nodes, per_node), np.float32),
        pair=np.zeros((batch, nodes, candidates, pairs), np.float32),
        prior=np.zeros((batch, nodes, candidates), np.float32),
        setting=np.zeros((batch, setting), np.float32),
        present=np.zeros((batch, candidates), np.bool_),
        up=np.zeros((batch, nodes), np.bool_),
        candidate=np.zeros((batch, candidates), np.int64),
        base=np.zeros((batch, nodes), np.int64),
    )


@jit_inlined
def buffers_of(all_buffers: Buffers, index: int) -> Buffers:
    """Return one slot's part, sharing its memory."""
    return Buffers(
        all_buffers.task[index], all_buffers.node[index], all_buffers.pair[index], all_buffers.prior[index],
        all_buffers.setting[index], all_buffers.present[index], all_buffers.up[index],
        all_buffers.candidate[index], all_buffers.base[index],
    )  # fmt: skip


def row_table(forecasts: ForecastTable) -> np.ndarray:
    """Tabulate the features that depend on the forecast row alone: (R, 9) float32, the first of TASK_FEATURES."""
    cdf, horizon = forecasts.cdf, forecasts.horizon
    table = np.empty((len(cdf), _ROW_FEATURES), np.float32)
    for column, level in enumerate(LEVELS):
        # cdf rises along b, so the count of entries below the level is the quantile; H + 1 means beyond.
        units = np.minimum((cdf < level).sum(axis=1), horizon)
        table[:, column] = np.log1p(units) / np.log1p(horizon)
    reach = cdf[:, -1]
    mean = (reach[:, None] - cdf[:, :-1]).sum(axis=1) / np.maximum(reach, _EPSILON)
    table[:, 5] = reach
    table[:, 6] = np.where(reach > _EPSILON, mean, horizon) / horizon
    table[:, 7] = cdf[:, min(1, horizon)]
    table[:, 8] = cdf[:, min(4, horizon)]
    return table


@jit_lean
def is_plain(view: View) -> bool:
    """Whether the index policy is nothing but a sorted list: alike nodes, one a task, and free switching."""
    return view.max_nodes == 1 and view.switching_cost == 0.0 and not differ(view)


@jit_lean
def observe(
    view: View,
    params: np.ndarray,
    rows: np.ndarray,
    index_choice: np.ndarray,
    order: np.ndarray,
    out: Buffers,
) -> None:
    """Fill ``out`` with what the network sees.

    Args:
        view: the slot, with the Gittins table as ``view.table``.
        params: the tuned index's weights.
        rows: (R, 9) from :func:`row_table`.
        index_choice: (M,) what the index policy assigns, positions by node, -1 idle.
        order: (M,) nodes in decoding order.
        out: to be filled.
    """
    n, nodes, candidates = view.active.shape[0], order.shape[0], out.candidate.shape[0]
    speed = reference_speed(view)
    score, best = view.score, _score_all(view, params, speed)
    margin = score[out.candidate[select_top(score, min(nodes, n, candidates), out.candidate) - 1]]
    for m in range(nodes):
        if index_choice[m] >= 0 and score[index_choice[m]] < _CERTAIN / 2:
            score[index_choice[m]] += _CERTAIN
    out.candidate[:] = -1
    count = select_top(score, min(candidates, n), out.candidate)
    for m in range(nodes):
        if index_choice[m] >= 0 and score[index_choice[m]] > _CERTAIN / 2:
            score[index_choice[m]] -= _CERTAIN
    out.present[:] = False
    out.present[:count] = True
    out.task[:] = 0.0
    out.pair[:] = 0.0
    out.prior[:] = 0.0
    for k in range(count):
        _describe_task(view, rows, out.candidate[k], speed, margin, out.task[k])
    _describe_nodes(view, speed, order, out)
    _describe_pairs(view, params, index_choice, order, count, best, speed, out)
    _describe_setting(view, n, nodes, out.setting)


@jit_lean
def _score_all(view: View, params: np.ndarray, speed: float) -> float:
    """Write the tuned log index of every task on one node of the mean speed to ``view.score``; return the best."""
    n = view.active.shape[0]
    kept = view.tally
    for m in range(view.up.shape[0]):
        if view.up[m] and view.last_position[m] >= 0:
            kept[view.last_position[m]] = 1
    best = -np.inf
    for i in range(n):
        fresh = view.switching_cost > 0.0 and kept[i] == 0
        view.score[i] = log_index(view, params, i, speed, fresh) + params[STICKY] * kept[i]
        best = max(best, view.score[i])
        kept[i] = 0
    return best


@jit_lean
def _describe_task(
    view: View, rows: np.ndarray, i: int, speed: float, margin: float, out: np.ndarray
) -> None:
    row, left = view.row[i], view.deadline[i] - view.slot
    for column in range(_ROW_FEATURES):
        out[column] = rows[row, column]
    now = chance_within(view, row, left * speed)
    out[9] = now
    out[10] = now - chance_within(view, row, (left - WAITS[0]) * speed)
    out[11] = now - chance_within(view, row, (left - WAITS[1]) * speed)
    out[12] = now - chance_within(view, row, (left - WAITS[2]) * speed)
    last = view.cdf.shape[1] - 1
    out[13] = np.log(view.table[row, min(int(left * speed + _EPSILON), last)] + 1e-4) / 4.0
    out[14] = min(max((view.score[i] - margin) / 4.0, -2.0), 2.0)
    out[15] = np.log1p(view.units[i]) / 5.0
    out[16] = np.log1p(view.served[i]) / 5.0
    out[17] = (view.slot - view.arrival[i]) / 120.0
    out[18] = left / 120.0
    out[19] = np.log1p(left) / 5.0
    median = np.expm1(rows[row, 2] * np.log1p(last))
    out[20] = (left - median / speed) / 120.0
    on = 0
    for m in range(view.last_position.shape[0]):
        on += view.last_position[m] == i
    out[21] = on / view.max_nodes


@jit_lean
def _describe_nodes(view: View, speed: float, order: np.ndarray, out: Buffers) -> None:
    for m in range(order.shape[0]):
        node = order[m]
        out.up[m] = view.up[node]
        out.node[m, 0] = np.log2(view.speed[node] / speed)
        out.node[m, 1] = view.up[node]
        out.node[m, 2] = view.last_position[node] >= 0
        out.node[m, 3] = view.setup_left[node] / 4.0
        out.node[m, 4] = m / order.shape[0]


@jit_lean
def _describe_pairs(
    view: View,
    params: np.ndarray,
    index_choice: np.ndarray,
    order: np.ndarray,
    count: int,
    best: float,
    speed: float,
    out: Buffers,
) -> None:
    plain = is_plain(view)
    for m in range(order.shape[0]):
        node = order[m]
        out.base[m] = out.candidate.shape[0]
        same = m > 0 and view.switching_cost == 0.0 and view.speed[node] == view.speed[order[m - 1]]
        for k in range(count):
            i = out.candidate[k]
            here = view.last_position[node] == i
            if same:
                for column in range(1, 4):
                    out.pair[m, k, column] = out.pair[m - 1, k, column]
            else:
                left = view.deadline[i] - view.slot
                fresh = view.switching_cost > 0.0 and not here
                gap = log_index(view, params, i, view.speed[node], fresh) - view.score[i]
                out.pair[m, k, 1] = min(max(gap, -3.0), 3.0)
                now = chance_within(view, view.row[i], left * view.speed[node])
                out.pair[m, k, 2] = now
                out.pair[m, k, 3] = now - chance_within(
                    view, view.row[i], (left - WAITS[1]) * view.speed[node]
                )
            out.pair[m, k, 0] = here
            out.pair[m, k, 5] = out.node[m, 0]
            for column in range(len(_SHARED)):
                out.pair[m, k, 6 + column] = out.task[k, _SHARED[column]]
            chosen = index_choice[node] == i
            out.pair[m, k, 4] = chosen
            if chosen:
                out.base[m] = k
            out.prior[m, k] = min(max(view.score[i] - best, -10.0), 0.0)
            if not plain:
                out.prior[m, k] = 0.0 if chosen else out.prior[m, k] - _LIFT


@jit_lean
def _describe_setting(view: View, n: int, nodes: int, out: np.ndarray) -> None:
    mean, square, down = 0.0, 0.0, 0
    for m in range(nodes):
        value = np.log2(view.speed[m])
        mean += value / nodes
        square += value * value / nodes
        down += not view.up[m]
    out[0] = np.log2(1.0 + n / nodes) / 4.0
    out[1] = np.log2(nodes) / 4.0
    out[2] = np.sqrt(max(square - mean * mean, 0.0))
    out[3] = view.switching_cost
    out[4] = (view.max_nodes - 1) / 4.0
    out[5] = down / nodes
