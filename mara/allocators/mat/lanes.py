"""Episodes side by side for the transformer: the engine's slots, observed and acted on in batches.

E lanes (episodes), B of them live, K candidates, M nodes in decoding order (fastest first). The engine's own compiled
functions open and close every slot, so a lane does exactly what :func:`mara.simulator.simulate.simulate` does.
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Self

import numpy as np
import torch

from mara.allocators.index import allocate_index_matching
from mara.allocators.mat.features import Buffers, buffers_of, new_buffers, observe, row_table
from mara.allocators.mat.network import Observation
from mara.allocators.registry import make_policy
from mara.config.allocators import MatchingWeights
from mara.config.mat import NetworkSettings
from mara.simulator.cluster import Cluster
from mara.simulator.engine import (
    COUNT,
    ROUNDING,
    Ledger,
    Problem,
    State,
    close_slot,
    lane,
    look,
    new_state,
    open_slot,
    start,
)
from mara.simulator.jit import jit, jit_lean
from mara.simulator.problem import Prepared, new_ledger, prepare
from mara.simulator.simulate import BROKEN_RULES, Outcome, PolicyError, outcome_of
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


class Lanes:
    """Steps episodes of a trace for the transformer.

    Observations: :class:`mara.allocators.mat.network.Observation` of the live lanes.
    Constraints: the feasibility mask; a clash that the mask would have forbidden is an error, unless
    ``drop_clashes``, where the later node idles.
    Finish: a lane ends when all its tasks have left. Reward: tasks completed in the slot.

    Args:
        trace, pool, cluster, forecasts: what is simulated.
        weights: the tuned index, the network's prior and reference.
        network: how many candidates to keep.
        progress: (J, N) table of log-progress; without it the potential is 0.
        drop_clashes: see above.
        seed: drives node failures.
    """

    def __init__(
        self,
        trace: Trace,
        pool: TaskPool,
        cluster: Cluster,
        forecasts: ForecastTable,
        weights: MatchingWeights,
        network: NetworkSettings,
        progress: np.ndarray | None = None,
        drop_clashes: bool = False,
        seed: int = 0,
    ) -> None:
        self.trace, self.pool, self.cluster, self.forecasts, self.seed = trace, pool, cluster, forecasts, seed
        self.index = make_policy("index_matching", weights, forecasts, cluster)
        self.order = np.argsort(-cluster.speeds, kind="stable")
        self.candidates = max(network.candidates_min, network.candidates_per_node * cluster.nodes)
        self.drop_clashes = drop_clashes
        flat = np.zeros((pool.demand.size, 1), np.float32)
        self.progress = flat if progress is None else np.ascontiguousarray(progress, np.float32)

    @cached_property
    def rows(self) -> np.ndarray:
        """The features of the forecasts' rows, made when first looked at."""
        return row_table(self.forecasts)

    def on(self, trace: Trace) -> Self:
        """Lanes for another trace of the same pool, which share the tables that have been made."""
        other = copy.copy(self)
        other.trace = trace
        return other

    def reset(self, episodes: np.ndarray | None = None) -> None:
        """Open the first slot of the given episodes (indices into the trace, repeats allowed), by default all."""
        self.episodes = self.trace if episodes is None else self.trace.select(episodes)
        self.prepared: Prepared = prepare(
            self.episodes, self.pool, self.cluster, self.forecasts, self.index.table, self.seed
        )
        lanes = self.episodes.episodes
        self.ledger = new_ledger(self.prepared.problem)
        self.state = new_state(lanes, self.prepared.width, self.cluster.nodes, 0, 0)
        self.done = np.zeros(lanes, np.bool_)
        self.buffers = new_buffers(lanes, self.candidates, self.cluster.nodes)
        _open_all(self.prepared.problem, self.state, self.ledger, self.done)
        self.live = np.flatnonzero(~self.done)

    def observe(self) -> tuple[Observation, torch.Tensor]:
        """Describe the live lanes' slots.

        Returns:
            the observation of B slots, cut to the most candidates present, and the index policy's picks (B, M).
            The tensors are the caller's own.
        """
        width = int(min(self.state.counter[self.live, COUNT].max(initial=1), self.candidates))
        buffers = new_buffers(self.live.size, width, self.cluster.nodes)
        _observe_all(
            self.prepared.problem, self.state, self.live, self.index.params, self.rows, self.order, buffers
        )
        self.buffers = buffers
        observation = Observation(*(torch.from_numpy(value) for value in buffers[:7]))
        return observation, torch.from_numpy(buffers.base)

    def step(self, picks: torch.Tensor) -> np.ndarray:
        """Run the observed slots with the picks (B, M) of the live lanes and open the next ones.

        Returns:
            (B,) float32: tasks completed; the lanes that went on are in ``live``.

        Raises:
            PolicyError: when picks break a rule of the cluster.
        """
        reward = np.zeros(self.live.size, np.float32)
        lane_, rule = _step_all(
            self.prepared.problem,
            self.state,
            self.ledger,
            self.live,
            np.ascontiguousarray(picks.numpy(), np.int64),
            self.buffers.candidate,
            self.order,
            self.drop_clashes,
            self.done,
            reward,
        )
        if rule:
            raise PolicyError(f"mat: episode {lane_} of the batch: {BROKEN_RULES[rule]}")
        self.live = np.flatnonzero(~self.done)
        return reward

    def potential(self) -> np.ndarray:
        """Return the summed log-progress of the active tasks of all lanes, (E,) float64; 0 where a lane is over."""
        return _potential_all(self.state, self.done, self.progress)

    def outcome(self) -> Outcome:
        """Return what became of the tasks so far."""
        return outcome_of(self.episodes, self.prepared, self.ledger)


@jit_lean
def _open_all(problem: Problem, state: State, ledger: Ledger, done: np.ndarray) -> None:
    for e in range(done.shape[0]):
        now = lane(state, e)
        start(now)
        done[e] = not open_slot(problem, e, now, ledger)


@jit_lean
def _observe_all(
    problem: Problem,
    state: State,
    live: np.ndarray,
    params: np.ndarray,
    rows: np.ndarray,
    order: np.ndarray,
    buffers: Buffers,
) -> None:
    for b in range(live.shape[0]):
        now = lane(state, live[b])
        view = look(problem, live[b], now)
        now.assignment[:] = -1
        allocate_index_matching(view, params, now.memory, now.assignment)
        observe(view, params, rows, now.assignment, order, buffers_of(buffers, b))


@jit_lean
def _step_all(
    problem: Problem,
    state: State,
    ledger: Ledger,
    live: np.ndarray,
    picks: np.ndarray,
    candidate: np.ndarray,
    order: np.ndarray,
    drop_clashes: bool,
    done: np.ndarray,
    reward: np.ndarray,
) -> tuple[int, int]:
    """Close the slot of every live lane and open the next; return (lane, broken rule or 0)."""
    nodes = order.shape[0]
    cap = problem.rules[4]
    for b in range(live.shape[0]):
        e = live[b]
        now = lane(state, e)
        assignment = now.assignment
        for m in range(nodes):
            pick = picks[b, m]
            position = candidate[b, pick] if pick < candidate.shape[1] else -1
            if drop_clashes and position >= 0:
                same = 0
                for other in range(m):
                    same += assignment[order[other]] == position
                if same >= cap:
                    position = -1
            assignment[order[m]] = position
        finished = close_slot(problem, e, now, ledger, assignment)
        if finished < 0:
            return e, -finished
        reward[b] = finished
        done[e] = not open_slot(problem, e, now, ledger)
    return 0, 0


@jit
def _potential_all(state: State, done: np.ndarray, progress: np.ndarray) -> np.ndarray:
    result = np.zeros(done.shape[0])
    for e in range(done.shape[0]):
        if done[e]:
            continue
        now = lane(state, e)
        for k in range(now.counter[COUNT]):
            units = min(int(now.units[k] + ROUNDING), progress.shape[1] - 1)
            result[e] += progress[now.template[k], units]
    return result
