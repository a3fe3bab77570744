"""Policy improvement by look-ahead: what is one deviation from the index worth?

In a state of a training episode, node m is held on another task than the index would give it for some slots, and the
index decides everything else and everything afterwards. The label is the number of tasks completed within the horizon
plus the worth of the state then reached (worth.py), less the same for the index from the same state, both with the
same future (arrivals, failures, demands of the training episode): one sample of the advantage. The network never sees
a demand; it regresses the labels on what is known in the state, so that what it learns is the *expected* advantage.

One sample a deviation is all that is taken: where the noise of a sample is far above the differences between states,
more deviations say more than more samples of the same one.

Legend: E lanes, n active tasks, M nodes in decoding order, K candidates, D deviations, R rows, H horizon.
"""

from __future__ import annotations

import numpy as np

from mara.allocators.index import STICKY, allocate_index_matching, log_index
from mara.allocators.mat.features import Buffers, is_plain
from mara.allocators.mat.lanes import Lanes
from mara.learning.worth import FEATURES, fit_chance, record, worth
from mara.simulator.engine import (
    COUNT,
    SLOT,
    Ledger,
    Problem,
    State,
    View,
    close_slot,
    lane,
    look,
    new_state,
    open_slot,
)
from mara.simulator.jit import jit_lean
from mara.simulator.problem import new_ledger
from mara.simulator.selection import seat, select_top

_NEARNESS = 1.0  # in log index: how near to the index's choice deviations are drawn
_OFTEN = 0.003  # weight of a task however far from it, and of idling


def score_table(world: Lanes) -> np.ndarray:
    """Tabulate the tuned log index at the cluster's mean speed: (R, L + 1) float32, column = slots left, L longest.

    Look-ahead decides by this table where the index is a plain sorted list; node failures, which shift the mean
    speed, are not followed by it.
    """
    problem = world.prepared.problem
    longest = int((world.trace.deadline - world.trace.arrival).max())
    table = np.empty((problem.cdf.shape[0], longest + 1), np.float32)
    speed = float(world.cluster.speeds.mean())
    _tabulate(problem, new_state(1, 1, 1, 0, 0), world.index.params, world.forecasts.offset, speed, table)
    return table


@jit_lean
def _tabulate(
    problem: Problem, spare: State, params: np.ndarray, offset: np.ndarray, speed: float, table: np.ndarray
) -> None:
    now = lane(spare, 0)
    now.counter[COUNT] = 1
    for template in range(offset.shape[0] - 1):
        for r in range(offset[template], offset[template + 1]):
            now.row[0], now.units[0] = r, r - offset[template]
            for left in range(table.shape[1]):
                now.deadline[0] = left
                table[r, left] = log_index(look(problem, 0, now), params, 0, speed, False)


class Deviations:
    """Draws deviations in the states of a :class:`Lanes` and plays them out.

    Args:
        world: the lanes, already reset.
        count: D, deviations a state.
        hold: slots for which a deviation is held.
        horizon: slots of a roll-out.
        rng: chooses the deviations.
    """

    def __init__(self, world: Lanes, count: int, hold: int, horizon: int, rng: np.random.Generator) -> None:
        self.world, self.count, self.hold, self.horizon, self.rng = world, count, hold, horizon, rng
        self.score = score_table(world)
        self.speed = float(world.cluster.speeds.mean())
        self.weights = np.zeros(len(FEATURES))
        self._room = np.zeros(len(FEATURES))

    def reset(self) -> None:
        """Make room for the roll-outs of the lanes as last reset."""
        world = self.world
        self._lane = new_state(1, world.prepared.width, world.cluster.nodes, 0, 0)
        self._ledger = new_ledger(world.prepared.problem)

    def fit_worth(self, episodes: np.ndarray, share: float = 0.1) -> float:
        """Fit the worth of states on episodes of the index; return the share of completions' variance explained."""
        world, rng = self.world, self.rng
        world.reset(episodes)
        width = world.prepared.width * episodes.size
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        while world.live.size:
            _, base = world.observe()
            lanes = world.live[rng.random(world.live.size) < share]
            features, task = np.zeros((width, len(FEATURES))), np.zeros(width, np.int64)
            n = record(world.prepared.problem, world.state, lanes, self.score, self.speed, features, task)
            parts.append((features[:n].copy(), task[:n].copy()))
            world.step(base)
        x, where = (np.concatenate(values) for values in zip(*parts, strict=True))
        y = world.ledger.completed[where].astype(np.float64)
        self.weights = fit_chance(x, y)
        chance = 1 / (1 + np.exp(-x @ self.weights))
        return float(1 - ((y - chance) ** 2).mean() / max(y.var(), 1e-12))

    def label(self, live: np.ndarray, buffers: Buffers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Try D deviations in each of S observed states.

        Args:
            live: (S,) lanes.
            buffers: their observations.

        Returns:
            node (S, D) in decoding order, action (S, D), and advantage (S, D) in completed tasks; where a state
            offers no deviation, action equals the index's own and the advantage is 0.
        """
        shape = (live.size, self.count)
        node, action = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        advantage = np.zeros(shape, np.float32)
        world = self.world
        _label_all(
            world.prepared.problem, world.state, world.ledger, live, buffers, world.order, world.index.params,
            self.score, self.weights, self.speed, self._room, self.hold, self.horizon, self.rng.random((*shape, 2)),
            self._lane, self._ledger, node, action, advantage,
        )  # fmt: skip
        return node, action, advantage


@jit_lean
def _label_all(
    problem: Problem, state: State, ledger: Ledger, live: np.ndarray, buffers: Buffers, order: np.ndarray,
    params: np.ndarray, score: np.ndarray, weights: np.ndarray, speed: float, room: np.ndarray,
    hold: int, horizon: int, luck: np.ndarray,
    spare: State, spare_ledger: Ledger, node: np.ndarray, action: np.ndarray, advantage: np.ndarray,
) -> None:  # fmt: skip
    to = lane(spare, 0)
    for s in range(live.shape[0]):
        e = live[s]
        now = lane(state, e)
        base = 0.0
        for d in range(-1, luck.shape[1]):
            m, task = -1, -1
            if d >= 0:
                m = int(luck[s, d, 0] * order.shape[0])
                k = _draw(
                    problem,
                    buffers.base[s],
                    buffers.prior[s],
                    buffers.present[s],
                    buffers.up[s],
                    m,
                    luck[s, d, 1],
                )
                node[s, d], action[s, d] = m, k
                if k == buffers.base[s, m]:
                    continue
                position = buffers.candidate[s, k] if k < buffers.candidate.shape[1] else -1
                task = now.active[position] if position >= 0 else -1
            # The index's own roll-out comes first; it has no call of its own, which would be compiled twice over.
            _copy(problem, e, now, ledger, to, spare_ledger)
            total = _play(
                problem,
                e,
                to,
                spare_ledger,
                params,
                score,
                weights,
                speed,
                room,
                hold if d >= 0 else 0,
                horizon,
                order[m] if d >= 0 else -1,
                task,
            )
            if d < 0:
                base = total
            else:
                advantage[s, d] = total - base


@jit_lean
def _draw(
    problem: Problem,
    base: np.ndarray,
    prior: np.ndarray,
    present: np.ndarray,
    up: np.ndarray,
    m: int,
    luck: float,
) -> int:
    """Draw another action for node m than the index's, tasks of nearly its worth more often, now and then idle."""
    candidates = present.shape[0]
    if not up[m] or base[m] == candidates:
        return base[m]
    total = 0.0
    for k in range(candidates):
        total += _weight(problem, base, prior, present, m, k)
    mark = luck * (total * (1.0 + _OFTEN) + 1e-9)
    for k in range(candidates):
        mark -= _weight(problem, base, prior, present, m, k)
        if mark < 0.0:
            return k
    return candidates


@jit_lean
def _weight(
    problem: Problem, base: np.ndarray, prior: np.ndarray, present: np.ndarray, m: int, k: int
) -> float:
    if not present[k] or k == base[m]:
        return 0.0
    used = 0
    for other in range(m):
        used += base[other] == k
    if used >= problem.rules[4]:
        return 0.0
    return np.exp(-abs(prior[m, k] - prior[m, base[m]]) / _NEARNESS) + _OFTEN


@jit_lean
def _copy(problem: Problem, e: int, now: State, ledger: Ledger, to: State, to_ledger: Ledger) -> None:
    """Copy an opened slot of one lane, so that it can be played on."""
    n, nodes = now.counter[COUNT], now.up.shape[0]
    _copy_part(now.counter, to.counter, 0, now.counter.shape[0])
    _copy_part(now.active, to.active, 0, n)
    _copy_part(now.template, to.template, 0, n)
    _copy_part(now.units, to.units, 0, n)
    _copy_part(now.served, to.served, 0, n)
    _copy_part(now.arrival, to.arrival, 0, n)
    _copy_part(now.deadline, to.deadline, 0, n)
    _copy_part(now.row0, to.row0, 0, n)
    _copy_part(now.rows, to.rows, 0, n)
    _copy_part(now.row, to.row, 0, n)
    _copy_part(now.last_task, to.last_task, 0, nodes)
    _copy_part(now.last_position, to.last_position, 0, nodes)
    _copy_part(now.setup_left, to.setup_left, 0, nodes)
    _copy_part(now.up, to.up, 0, nodes)
    to.done[:] = False
    to.nodes_on[:] = 0
    to.trainers[:] = 0
    to.gain[:] = 0.0
    _copy_part(ledger.position, to_ledger.position, problem.offset[e], problem.offset[e + 1])


@jit_lean
def _copy_part(values: np.ndarray, to: np.ndarray, first: int, last: int) -> None:
    for k in range(first, last):
        to[k] = values[k]


@jit_lean
def _play(
    problem: Problem, e: int, now: State, ledger: Ledger, params: np.ndarray, score: np.ndarray,
    weights: np.ndarray, speed: float, room: np.ndarray, hold: int, horizon: int, node: int, task: int,
) -> float:  # fmt: skip
    """Play an opened slot on with the index, ``node`` held on ``task`` (-1: idle) for ``hold`` slots.

    Returns the completions within the horizon and the worth of the state after it.
    """
    assignment = now.assignment
    start, completed = now.counter[SLOT], 0
    while True:
        view = look(problem, e, now)
        assignment[:] = -1
        held = -1
        holding = view.slot < start + hold and now.up[node]
        if holding and task >= 0:
            held = ledger.position[problem.offset[e] + task]
            holding = held >= 0
        if not is_plain(view):
            allocate_index_matching(view, params, now.memory, assignment)
            if holding:
                _hold(view, assignment, node, held)
        else:
            _choose(view, params, score, assignment, node if holding else -1, held)
        completed += close_slot(problem, e, now, ledger, assignment)
        if not open_slot(problem, e, now, ledger):
            return float(completed)
        if now.counter[SLOT] >= start + horizon:
            return completed + worth(look(problem, e, now), score, weights, speed, room)


@jit_lean
def _choose(
    view: View, params: np.ndarray, score: np.ndarray, assignment: np.ndarray, node: int, held: int
) -> None:
    """The index by table, on all nodes but ``node`` (-1: none) and all tasks but ``held``, which gets that node."""
    value, working = view.score, 0
    for i in range(value.shape[0]):
        value[i] = score[view.row[i], view.deadline[i] - view.slot]
    if params[STICKY] > 0.0:
        _favour_kept(view, params[STICKY])
    up = False
    if held >= 0:
        value[held] = -np.inf
    if node >= 0:
        up = view.up[node]
        view.up[node] = False
    for m in range(view.up.shape[0]):
        working += view.up[m]
    count = select_top(value, min(working, value.shape[0]), view.chosen)
    if count > 0:
        seat(view, view.chosen, count, assignment)
    if node >= 0:
        view.up[node] = up
        assignment[node] = held


@jit_lean
def _favour_kept(view: View, bonus: float) -> None:
    """Add the index's bonus for tasks that a working node trained last."""
    for m in range(view.up.shape[0]):
        position = view.last_position[m]
        if view.up[m] and position >= 0 and view.tally[position] == 0:
            view.score[position] += bonus
            view.tally[position] = 1
    for m in range(view.up.shape[0]):
        if view.last_position[m] >= 0:
            view.tally[view.last_position[m]] = 0


@jit_lean
def _hold(view: View, assignment: np.ndarray, node: int, held: int) -> None:
    """Put ``held`` on ``node``; if it has as many nodes as it may, one of them takes over what ``node`` did.

    Else the task that it displaces waits: the network does the same, for where the index is more than a sorted list
    its other nodes keep to the index's picks.
    """
    if assignment[node] == held:
        return
    used, last = 0, -1
    for m in range(assignment.shape[0]):
        if held >= 0 and assignment[m] == held:
            used, last = used + 1, m
    if used >= view.max_nodes:
        assignment[last] = assignment[node]
    assignment[node] = held
