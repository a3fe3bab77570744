"""Collecting what the learning methods learn from: labelled states, imitation targets and PPO's roll-outs.

B live lanes, S states, D deviations, M nodes in decoding order, K candidates (padded to the most a cluster keeps).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mara.allocators.mat.features import Buffers
from mara.allocators.mat.greedy import GreedyDecoder
from mara.allocators.mat.lanes import Lanes
from mara.allocators.mat.network import Observation
from mara.allocators.mat.policy import MatPolicy
from mara.config.allocators import MatchingWeights
from mara.learning.lookahead import Deviations
from mara.simulator.cluster import Cluster
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


@dataclass(frozen=True)
class Course:
    """One setting of the curriculum: episodes at some load on some cluster, and the index tuned for it."""

    trace: Trace
    pool: TaskPool
    cluster: Cluster
    forecasts: ForecastTable
    weights: MatchingWeights
    progress: np.ndarray | None = None
    """(J, N) table of log-progress for shaping."""


class Labelled(NamedTuple):
    """S states with D labelled deviations each."""

    observation: Observation
    base: Tensor
    """(S, M) the index's picks."""
    node: Tensor
    """(S, D) node of the deviation."""
    action: Tensor
    """(S, D) what it does instead."""
    advantage: Tensor
    """(S, D) tasks completed more than by the index: one sample each."""

    def rows(self, index: Tensor) -> Labelled:
        """Select states."""
        return Labelled(self.observation.rows(index), *(value[index] for value in self[1:]))

    def __len__(self) -> int:
        return len(self.base)


def pad(observation: Observation, candidates: int) -> Observation:
    """Widen the candidate axis with absent tasks."""
    more = candidates - observation.present.shape[1]
    if more == 0:
        return observation
    return observation._replace(
        task=torch.nn.functional.pad(observation.task, (0, 0, 0, more)),
        pair=torch.nn.functional.pad(observation.pair, (0, 0, 0, more)),
        prior=torch.nn.functional.pad(observation.prior, (0, more)),
        present=torch.nn.functional.pad(observation.present, (0, more)),
    )


def widen_picks(picks: Tensor, candidates: int, width: int) -> Tensor:
    """Rename the idle action from ``candidates`` to ``width``."""
    return torch.where(picks == candidates, width, picks)


def act(policy: MatPolicy, world: Lanes, observation: Observation) -> Tensor:
    """Decode greedily: (B, M) picks."""
    with torch.no_grad():
        encoded = policy.network.encode(observation)
        state = policy.mask_state(observation, world.cluster)
        return GreedyDecoder(policy.network)(encoded, state)


def label_states(
    world: Lanes,
    deviations: Deviations,
    policy: MatPolicy | None,
    count: int,
    lanes: int,
    rng: np.random.Generator,
) -> Labelled:
    """Visit states with the policy (None: the index) and label ``count`` of them, spread evenly over the episodes.

    The share of slots that is labelled is such that all of ``lanes`` episodes are played once; episodes are drawn
    from the world's trace with replacement.
    """
    world.reset(rng.integers(world.trace.episodes, size=lanes))
    deviations.reset()
    slots = int(world.episodes.arrival.max()) + 60
    share = count / (lanes * slots)
    parts: list[Labelled] = []
    have = 0
    while world.live.size and have < count:
        observation, base = world.observe()
        chosen = np.flatnonzero(rng.random(world.live.size) < share)[: count - have]
        if chosen.size:
            buffers = Buffers(*(value[chosen] for value in world.buffers))
            labels = deviations.label(world.live[chosen], buffers)
            index, narrow = torch.from_numpy(chosen), observation.present.shape[1]
            picks = (base[index], torch.from_numpy(labels[1]))
            base_picks, action = (widen_picks(p, narrow, world.candidates) for p in picks)
            wide = pad(observation.rows(index), world.candidates)
            node, advantage = torch.from_numpy(labels[0]), torch.from_numpy(labels[2])
            parts.append(Labelled(wide, base_picks, node, action, advantage))
            have += chosen.size
        world.step(base if policy is None else act(policy, world, observation))
    return join(parts)


def join(parts: list[Labelled]) -> Labelled:
    """Put labelled states of one cluster together."""
    observation = Observation(
        *(torch.cat(values) for values in zip(*(p.observation for p in parts), strict=True))
    )
    return Labelled(observation, *(torch.cat(values) for values in zip(*(p[1:] for p in parts), strict=True)))
