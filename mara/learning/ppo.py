"""Cooperative PPO (Schulman et al., 2017; for agents in sequence Wen et al., 2022) with one team reward and γ = 1.

One update plays some whole episodes, so that every return ends at a true end and a checkpoint between updates needs
no simulator state; then it takes clipped gradient steps on them. All nodes share the advantage of the joint action.

T steps, E episodes, N = live steps of all episodes together, M nodes, K candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mara.allocators.mat.decoding import decode, evaluate, sampler
from mara.allocators.mat.lanes import Lanes
from mara.allocators.mat.network import MatNetwork, Observation
from mara.allocators.mat.policy import MatPolicy
from mara.config.mat import PpoSettings
from mara.learning.gae import advantages
from mara.learning.rollout import pad, widen_picks
from mara.learning.shaping import shaped


class ValueNorm:
    """Running mean and deviation of returns; the network's value head predicts the normalised return."""

    def __init__(self) -> None:
        self.count, self.mean, self.square = 0.0, 0.0, 0.0

    def update(self, returns: np.ndarray) -> None:
        """Take returns in (Chan et al.'s pairwise rule)."""
        n, mean = returns.size, float(returns.mean())
        delta, total = mean - self.mean, self.count + n
        self.square += float(((returns - mean) ** 2).sum()) + delta**2 * self.count * n / total
        self.mean += delta * n / total
        self.count = total

    @property
    def deviation(self) -> float:
        """Standard deviation, at least 1e-3; 1 before any return."""
        return max((self.square / self.count) ** 0.5, 1e-3) if self.count else 1.0

    def normalise(self, values: np.ndarray) -> np.ndarray:
        """Returns to the head's scale."""
        return (values - self.mean) / self.deviation

    def restore(self, values: np.ndarray) -> np.ndarray:
        """The head's scale to returns."""
        return values * self.deviation + self.mean


class Rollout(NamedTuple):
    """N live steps, flat, in the order (step, episode)."""

    observation: Observation
    picks: Tensor
    """(N, M)"""
    log_prob: Tensor
    """(N, M)"""
    mask: Tensor
    """(N, M, K + 1)"""
    advantage: Tensor
    """(N,), not yet standardised."""
    returns: Tensor
    """(N,), of the (shaped) reward, normalised."""
    total: float
    """Mean unshaped return of an episode."""
    shaped_total: float
    """Mean shaped return of an episode."""
    explained: float
    """Share of the returns' variance that the value explained."""


def play(
    world: Lanes,
    policy: MatPolicy,
    norm: ValueNorm,
    episodes: np.ndarray,
    settings: PpoSettings,
    generator: torch.Generator,
) -> Rollout:
    """Play whole episodes with sampled actions, and take their returns into ``norm``."""
    world.reset(episodes)
    lanes = episodes.size
    steps: list[tuple[Observation, Tensor, Tensor, Tensor]] = []
    lives: list[np.ndarray] = []
    columns: dict[str, list[np.ndarray]] = {"reward": [], "value": [], "potential": [], "ended": []}
    choose = sampler(generator)
    with torch.no_grad():
        while world.live.size:
            live = world.live
            observation, _ = world.observe()
            columns["potential"].append(world.potential())
            encoded = policy.network.encode(observation)
            decoded = decode(policy.network, encoded, policy.mask_state(observation, world.cluster), choose)
            value = norm.restore(policy.network.value(encoded, observation.setting).double().numpy())
            reward = world.step(decoded.picks)
            for name, values in (("reward", reward), ("value", value), ("ended", world.done[live])):
                full = np.zeros(lanes, values.dtype)
                full[live] = values
                columns[name].append(full)
            steps.append((observation, *decoded))
            lives.append(live)
    reward, value, potential, ended = (np.stack(columns[name]) for name in columns)
    rewards = (
        shaped(reward, potential, np.zeros(lanes)) if policy.settings.shaping else reward.astype(np.float64)
    )
    gain = advantages(rewards, value, np.zeros(lanes), ended, settings.gae_lambda)
    returns = rewards[::-1].cumsum(axis=0)[::-1]
    played = np.zeros(reward.shape, np.bool_)
    for t, live in enumerate(lives):
        played[t, live] = True
    spread = returns[played].var()
    explained = 1 - (returns - value)[played].var() / spread if spread > 0 else 0.0
    norm.update(returns[played])
    observation, picks, log_prob, mask = _flatten(steps, world.candidates)
    return Rollout(
        observation, picks, log_prob, mask,
        torch.from_numpy(gain[played]).float(),
        torch.from_numpy(norm.normalise(returns[played])).float(),
        float(reward.sum(axis=0, dtype=np.float64).mean()), float(rewards.sum(axis=0).mean()), float(explained),
    )  # fmt: skip


def _flatten(
    steps: list[tuple[Observation, Tensor, Tensor, Tensor]], candidates: int
) -> tuple[Observation, Tensor, Tensor, Tensor]:
    """Pad all steps to the same candidates and join them."""
    wide, picks, masks = [], [], []
    for observation, pick, _, mask in steps:
        narrow = observation.present.shape[1]
        wide.append(pad(observation, candidates))
        picks.append(widen_picks(pick, narrow, candidates))
        absent = mask.new_zeros(*mask.shape[:2], candidates - narrow)
        masks.append(torch.cat([mask[..., :-1], absent, mask[..., -1:]], dim=-1))
    observation = Observation(*(torch.cat(values) for values in zip(*wide, strict=True)))
    return observation, torch.cat(picks), torch.cat([step[2] for step in steps]), torch.cat(masks)


def ratio(network: MatNetwork, rollout: Rollout, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Probability ratios (n, M) to the roll-out's policy, entropies (n, M) and values (n,) of some steps."""
    observation = rollout.observation.rows(index)
    encoded = network.encode(observation)
    log_prob, entropy = evaluate(network, encoded, rollout.picks[index], rollout.mask[index])
    value = network.value(encoded, observation.setting)
    return (log_prob - rollout.log_prob[index]).exp(), entropy, value


def update(
    network: MatNetwork,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    settings: PpoSettings,
    generator: torch.Generator,
) -> dict[str, float]:
    """Take the clipped gradient steps on one roll-out; return the means of what is worth logging."""
    gain = (rollout.advantage - rollout.advantage.mean()) / (rollout.advantage.std() + 1e-8)
    sums = dict.fromkeys(("approx_kl", "clip_fraction", "entropy", "policy_loss", "value_loss"), 0.0)
    count, stopped = 0, False
    for _ in range(settings.epochs):
        order = torch.randperm(len(gain), generator=generator)
        for index in order.split(settings.minibatch):
            r, entropy, value = ratio(network, rollout, index)
            a = gain[index, None]
            clipped = r.clamp(1 - settings.clip, 1 + settings.clip)
            policy_loss = -torch.minimum(r * a, clipped * a).mean()
            value_loss = 0.5 * (value - rollout.returns[index]).square().mean()
            loss = policy_loss + settings.value_weight * value_loss - settings.entropy * entropy.mean()
            with torch.no_grad():
                kl = float((r - 1 - r.log()).mean())
                sums["approx_kl"] += kl
                sums["clip_fraction"] += float(((r - 1).abs() > settings.clip).float().mean())
                sums["entropy"] += float(entropy.mean())
                sums["policy_loss"] += float(policy_loss)
                sums["value_loss"] += float(value_loss)
                count += 1
            if kl > settings.target_kl:
                stopped = True
                break
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), settings.max_gradient)
            optimizer.step()
        if stopped:
            break
    return {name: value / count for name, value in sums.items()}
