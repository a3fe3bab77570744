"""The simulator behind two standard faces: a PettingZoo parallel environment and a Gymnasium view.

Legend: M nodes, A the width: the most tasks ever active at once in any episode of the trace, or a larger
``width`` for spaces that several traces share. The spaces hold every task; none is left out.

Observation
    Per node, flat (A * 9 + 4,) float32 in [0, 1]: for each active task, in the order (arrival, number),
    the values of ``TASK_VALUES``, zeros where there is none; then the ``NODE_VALUES``. What nodes decide
    is told only through what they may see: losses by way of forecasts and progress, never a demand.
Action
    0 .. A-1: train the task at that place; A: idle. The mask says which are possible. An impossible
    action counts as idle.
Constraints
    A task has at most ``max_nodes_per_task`` nodes; a node that is down idles.
Reward
    The number of tasks completed in the slot, the same for all nodes.
Finish
    When the last task of the episode has left. That is a true end: there is no truncation.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import ParallelEnv

from mara.errors import InputError
from mara.simulator.batch import BatchSimulator
from mara.simulator.cluster import Cluster
from mara.simulator.problem import prepare
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace

TASK_VALUES = (
    "1 for a task, 0 for none",
    "slots left, / 120",
    "slots since arrival, / 120",
    "units trained, / 200",
    "log-progress",
    "forecast probability that the remaining demand is at most the slots left",
    "the same for half the slots left",
    "1 where this node trained it last",
    "nodes that have picked it in this slot, / cap",
)
NODE_VALUES = ("speed / fastest", "1 if it works", "slots of set-up owed, / cost", "number / M")

LONGEST_WINDOW, LONGEST_CURVE = 120, 200


class _Game:
    """One episode at a time, and what a node sees of it."""

    def __init__(
        self,
        trace: Trace,
        pool: TaskPool,
        cluster: Cluster,
        forecasts: ForecastTable | None,
        progress: np.ndarray | None,
        seed: int,
        width: int | None,
    ) -> None:
        needed = prepare(trace, pool, cluster, forecasts, seed=seed).width
        self.width = needed if width is None else width
        if self.width < needed:
            raise InputError(f"environment: width is {width}; up to {needed} tasks are active at once")
        self.episodes, self.cluster, self.forecasts = len(trace.offset) - 1, cluster, forecasts
        self.simulator = BatchSimulator(trace, pool, cluster, forecasts, progress, seed)
        values = self.width * len(TASK_VALUES) + len(NODE_VALUES)
        self.observation_space = Box(0.0, 1.0, (values,), np.float32)
        self.action_space = Discrete(self.width + 1)

    def start(self, rng: np.random.Generator, options: dict[str, Any] | None) -> int:
        """Start the episode that the options name, or one at random; return its number."""
        episode = (options or {}).get("episode", None)
        if episode is None:
            episode = int(rng.integers(self.episodes))
        if not 0 <= episode < self.episodes:
            raise InputError(f"environment: the trace has episodes 0..{self.episodes - 1}, not {episode}")
        self.view = self.simulator.reset(np.array([episode]))
        self._open()
        return int(episode)

    def pick(self, node: int, action: int) -> None:
        """Let a node choose; what is not possible counts as idle."""
        if self.mask(node)[action] and action < self.width:
            self.assignment[node] = action
            self.taken[action] += 1

    def mask(self, node: int) -> np.ndarray:
        """Return the actions possible for a node after the picks so far, (A+1,) int8."""
        mask = np.zeros(self.width + 1, np.int8)
        mask[self.width] = 1
        count = self.view.mask.shape[1]
        if self.view.up[0, node]:
            mask[:count] = self.view.mask[0] & (self.taken[:count] < self.cluster.max_nodes_per_task)
        return mask

    def close(self) -> float:
        """Run the slot with the picks; return how many tasks were completed."""
        reward = self.simulator.step(self.assignment[None])
        self.view = self.simulator.view()
        self._open()
        return float(reward[0])

    @property
    def over(self) -> bool:
        """Return whether the episode has ended."""
        return bool(self.view.done[0])

    def observe(self, node: int) -> np.ndarray:
        """Return what a node sees, (A * 9 + 4,) float32."""
        view, cluster = self.view, self.cluster
        count = view.mask.shape[1]
        tasks = np.zeros((self.width, len(TASK_VALUES)), np.float32)
        tasks[:count, 0] = view.mask[0]
        tasks[:count, 1] = view.left[0] / LONGEST_WINDOW
        tasks[:count, 2] = view.age[0] / LONGEST_WINDOW
        tasks[:count, 3] = view.units[0] / LONGEST_CURVE
        tasks[:count, 4] = view.progress[0]
        tasks[:count, 5:7] = self.chance
        last = view.last_position[0, node]
        if last >= 0:
            tasks[last, 7] = 1
        tasks[:, 8] = self.taken / cluster.max_nodes_per_task
        own = (
            view.speed[node] / view.speed.max(),
            view.up[0, node],
            view.setup_left[0, node] / max(cluster.switching_cost, 1.0),
            node / cluster.nodes,
        )
        seen = np.concatenate([tasks.ravel(), np.array(own, np.float32)])
        return np.clip(seen, np.float32(0), np.float32(1))

    def _open(self) -> None:
        """Forget the picks, and look the forecasts of the slot up."""
        self.assignment = np.full(self.cluster.nodes, -1, np.int32)
        self.taken = np.zeros(self.width, np.int32)
        view = self.view
        self.chance = np.zeros((view.mask.shape[1], 2), np.float32)
        if self.forecasts is not None:
            horizon = self.forecasts.horizon
            whole = self.forecasts.cdf[view.row[0], np.minimum(view.left[0], horizon)]
            half = self.forecasts.cdf[view.row[0], np.minimum(view.left[0] // 2, horizon)]
            self.chance[:] = np.where(view.mask[0][:, None], np.stack([whole, half], axis=1), 0)


class AllocationParallelEnv(ParallelEnv):  # type: ignore[misc]
    """All nodes decide at once (PettingZoo's parallel API). Agents are ``node_0`` .. ``node_{M-1}``.

    An observation is ``{"observation": (A * 9 + 4,), "action_mask": (A+1,) int8}``. Where more nodes pick a
    task than it may have, the ones with the higher numbers idle.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "mara_allocation_v0", "render_modes": []}

    def __init__(
        self,
        trace: Trace,
        pool: TaskPool,
        cluster: Cluster,
        forecasts: ForecastTable | None = None,
        progress: np.ndarray | None = None,
        seed: int = 0,
        width: int | None = None,
    ) -> None:
        self._game = _Game(trace, pool, cluster, forecasts, progress, seed, width)
        self._rng = np.random.default_rng(seed)
        self.render_mode = None
        self.possible_agents = [f"node_{node}" for node in range(cluster.nodes)]
        self.agents: list[str] = []
        mask = Box(0, 1, (self._game.width + 1,), np.int8)
        seen = Dict({"observation": self._game.observation_space, "action_mask": mask})
        self.observation_spaces = dict.fromkeys(self.possible_agents, seen)
        self.action_spaces = {agent: Discrete(self._game.width + 1) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> Dict:
        """Return the space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Return the space of an agent's actions."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode: ``options["episode"]`` of the trace, or one drawn at random."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        episode = self._game.start(self._rng, options)
        self.agents = list(self.possible_agents)
        return self._observe(), {agent: {"episode": episode} for agent in self.agents}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Run one slot."""
        for node, agent in enumerate(self.possible_agents):
            self._game.pick(node, int(actions[agent]))
        reward, agents = self._game.close(), self.agents
        observations = self._observe()
        if self._game.over:
            self.agents = []
        return (
            observations,
            dict.fromkeys(agents, reward),
            dict.fromkeys(agents, self._game.over),
            dict.fromkeys(agents, False),
            {agent: {} for agent in agents},
        )

    def _observe(self) -> dict[str, Any]:
        return {
            agent: {"observation": self._game.observe(node), "action_mask": self._game.mask(node)}
            for node, agent in enumerate(self.agents)
        }


class AllocationEnv(gymnasium.Env):
    """Nodes decide one after the other, fastest first (Gymnasium's API): a step is one node's choice.

    The slot runs when the last node has chosen, and only then is there a reward. ``action_masks()`` gives
    the possible actions, which exclude what nodes before it have filled.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (declared as an instance attribute by its base)

    def __init__(
        self,
        trace: Trace,
        pool: TaskPool,
        cluster: Cluster,
        forecasts: ForecastTable | None = None,
        progress: np.ndarray | None = None,
        seed: int = 0,
        width: int | None = None,
    ) -> None:
        self._game = _Game(trace, pool, cluster, forecasts, progress, seed, width)
        self._order = np.argsort(-cluster.speeds, kind="stable")
        self.observation_space = self._game.observation_space
        self.action_space = self._game.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode: ``options["episode"]`` of the trace, or one drawn at random."""
        super().reset(seed=seed)
        self._turn = 0
        episode = self._game.start(self.np_random, options)
        return self._game.observe(self._node), {"episode": episode}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Let the node whose turn it is choose; run the slot after the last one."""
        self._game.pick(self._node, int(action))
        self._turn += 1
        reward = 0.0
        if self._turn == self._order.size:
            self._turn = 0
            reward = self._game.close()
        return self._game.observe(self._node), reward, self._game.over, False, {}

    def action_masks(self) -> np.ndarray:
        """Return which actions are possible for the node whose turn it is, (A+1,) bool."""
        return self._game.mask(self._node).astype(bool)

    @property
    def _node(self) -> int:
        return int(self._order[self._turn])
