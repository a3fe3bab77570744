"""Cloning the index: the start for a network that is not given the index as a prior.

Targets are soft: node m's distribution over the tasks that are left is the softmax of the index's log-scores,
sharpened, along the index's own picks. States come from the index's episodes at first, then half of them from the
network's own (DAgger, Ross et al., 2011), labelled by the index all the same.

S states, M nodes, K candidates.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from mara.allocators.mat.decoding import masked
from mara.allocators.mat.lanes import Lanes
from mara.allocators.mat.mask import MaskState, feasible_all
from mara.allocators.mat.network import MatNetwork, Observation
from mara.allocators.mat.policy import MatPolicy
from mara.config.mat import ImitationSettings
from mara.learning.improvement import Log
from mara.learning.rollout import act, pad, widen_picks

SHARPNESS = 5.0
"""Factor on the log-scores: a task of half the best one's index gets 1/32 of its probability."""


def soft_targets(observation: Observation, base: Tensor, mask: Tensor) -> Tensor:
    """The index as distributions (S, M, K + 1), over feasible tasks; idle where there is none."""
    scores = torch.nn.functional.pad(SHARPNESS * observation.prior, (0, 1), value=-50.0)
    return torch.softmax(masked(scores, mask), dim=-1)


def visit(
    world: Lanes, policy: MatPolicy | None, count: int, lanes: int, rng: np.random.Generator
) -> tuple[Observation, Tensor]:
    """Gather ``count`` states and the index's picks there; ``policy`` plays every second lane, the index the others."""
    world.reset(rng.integers(world.trace.episodes, size=lanes))
    share = count / (lanes * (int(world.episodes.arrival.max()) + 60))
    seen: list[Observation] = []
    picks: list[Tensor] = []
    while world.live.size:
        observation, base = world.observe()
        chosen = torch.from_numpy(np.flatnonzero(rng.random(world.live.size) < share))
        if len(chosen):
            seen.append(pad(observation.rows(chosen), world.candidates))
            picks.append(widen_picks(base[chosen], observation.present.shape[1], world.candidates))
        if policy is not None:
            own = torch.from_numpy(world.live % 2 == 1)
            base = torch.where(own[:, None], act(policy, world, observation), base)
        world.step(base)
    return Observation(*(torch.cat(values) for values in zip(*seen, strict=True))), torch.cat(picks)


def clone(
    policy: MatPolicy,
    worlds: list[Lanes],
    settings: ImitationSettings,
    lanes: int,
    rng: np.random.Generator,
    generator: torch.Generator,
    log: Log,
) -> None:
    """Fit the network to the index on states of all worlds, round by round."""
    network: MatNetwork = policy.network
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    data: list[tuple[Lanes, Observation, Tensor]] = []
    share = math.ceil(settings.states / (settings.rounds * len(worlds)))
    for step in range(settings.rounds):
        for world in worlds:
            data.append((world, *visit(world, policy if step else None, share, lanes, rng)))
        loss_sum, right, count = 0.0, 0.0, 0
        for _ in range(settings.epochs):
            for which in torch.randperm(len(data), generator=generator).tolist():
                world, observation, base = data[which]
                for index in torch.randperm(len(base), generator=generator).split(settings.batch):
                    rows, own = observation.rows(index), base[index]
                    state = MaskState(rows.present, rows.up, world.cluster.max_nodes_per_task)
                    mask = feasible_all(state, own)
                    logits = masked(network.logits(network.encode(rows), own), mask)
                    log_p = torch.log_softmax(logits, dim=-1).masked_fill(~mask, 0.0)
                    loss = -(soft_targets(rows, own, mask) * log_p).sum(dim=-1).mean()
                    optimizer.zero_grad(set_to_none=True)
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                    optimizer.step()
                    loss_sum += float(loss.detach())
                    right += float((logits.argmax(dim=-1) == own).float().mean())
                    count += 1
        log({"phase": "imitation", "step": step, "loss": loss_sum / count, "agreement": right / count})
