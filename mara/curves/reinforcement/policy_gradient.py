"""REINFORCE, advantage actor-critic and PPO, for many runs at once.

A learner has ``behaviour()``, the chances of each action where the actors are now, and ``learn(rate)``, one
unit of training.

Shapes: R runs, E actors of a run, T steps, B = T * E cases, A actions, D observed numbers, P parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mara.curves.optimizers import StackedOptimizer
from mara.curves.reinforcement.actors import Actors
from mara.curves.reinforcement.networks import ActorCritic, advantages, clipped, flat_cases, per_run


class PolicyGradientLearner:
    """What the three learners share: a network, an optimizer and how the actors behave."""

    def __init__(
        self, actors: Actors, net: ActorCritic, configs: Sequence[dict[str, Any]], parameters: Tensor
    ) -> None:
        """Set up R runs with their settings and first parameters (R, P)."""
        self._actors = actors
        self._net = net
        self._parameters = parameters.requires_grad_()
        self._chances = net.behaviour(parameters)
        self._optimizer = StackedOptimizer(
            [config["optimizer"] for config in configs], [0.0] * len(configs), parameters
        )
        self._gamma = per_run(configs, "gamma")
        self._entropy = per_run(configs, "entropy")[:, 0]

    def behaviour(self) -> NDArray[np.floating]:
        """Chances (R, E, A) of each action where the actors are now."""
        return self._chances(torch.from_numpy(self._actors.seen())).numpy()

    def learn(self, rate: NDArray[np.float64]) -> None:
        """Train for one unit at the runs' learning rates (R,)."""
        raise NotImplementedError

    def _descend(self, losses: Tensor, rate: NDArray[np.float64]) -> None:
        """One gradient step of every run on its loss (R,)."""
        (gradient,) = torch.autograd.grad(losses.sum(), self._parameters)
        self._optimizer.step(clipped(gradient), torch.from_numpy(rate).float())


def _chosen(log_chances: Tensor, action: Tensor) -> Tensor:
    """Log chances (R, B) of the actions (R, B) taken."""
    return log_chances.gather(2, action[:, :, None])[:, :, 0]


def _entropy(log_chances: Tensor) -> Tensor:
    """Entropy (R, B) of the policy."""
    return -(log_chances.exp() * log_chances).sum(dim=2)


def _standardised(values: Tensor, weight: Tensor) -> Tensor:
    """Values (R, B) less their weighted mean, over their weighted deviation, run by run."""
    total = weight.sum(dim=1, keepdim=True)
    centred = values - (values * weight).sum(dim=1, keepdim=True) / total
    variance = (centred.square() * weight).sum(dim=1, keepdim=True) / total
    return centred / (variance.sqrt() + 1e-6)


class Reinforce(PolicyGradientLearner):
    """Monte-Carlo policy gradient on whole episodes (Williams 1992); one unit is an episode of every actor.

    The baseline is the mean of the returns to go of all cases ("standardised" runs also divide by their
    deviation), or none.
    """

    def __init__(
        self, actors: Actors, net: ActorCritic, configs: Sequence[dict[str, Any]], parameters: Tensor
    ) -> None:
        """See the base class."""
        super().__init__(actors, net, configs, parameters)
        self._standardise = torch.tensor([config["baseline"] == "standardised" for config in configs])[
            :, None
        ]
        self._centre = torch.tensor([config["baseline"] != "none" for config in configs])[:, None]

    def learn(self, rate: NDArray[np.float64]) -> None:
        """Play, then take one gradient step."""
        episodes = self._actors.play(self.behaviour)
        to_go = np.zeros_like(episodes.reward)
        running = np.zeros(self._actors.shape)
        gamma = self._gamma.numpy().astype(np.float64)
        for step in reversed(range(len(to_go))):
            running = (episodes.reward[step] + gamma * running) * episodes.alive[step]
            to_go[step] = running
        weight = flat_cases(episodes.alive).float()
        value = flat_cases(to_go)
        mean = (value * weight).sum(dim=1, keepdim=True) / weight.sum(dim=1, keepdim=True)
        value = torch.where(self._standardise, _standardised(value, weight), value - mean * self._centre)

        log_chances = self._net.log_chances(self._parameters, flat_cases(episodes.seen))
        gain = _chosen(log_chances, flat_cases(episodes.action)) * value
        gain = gain + self._entropy[:, None] * _entropy(log_chances)
        self._descend(-(gain * weight).sum(dim=1) / weight.sum(dim=1), rate)


class AdvantageActorCritic(PolicyGradientLearner):
    """Synchronous advantage actor-critic (Mnih et al. 2016) with generalised advantages.

    One unit is ``UPDATES`` times: ``STEPS`` steps of every actor, then one gradient step.
    """

    UPDATES = 4
    STEPS = 12

    def __init__(
        self, actors: Actors, net: ActorCritic, configs: Sequence[dict[str, Any]], parameters: Tensor
    ) -> None:
        """See the base class."""
        super().__init__(actors, net, configs, parameters)
        self._lambda = per_run(configs, "lambda")

    def learn(self, rate: NDArray[np.float64]) -> None:
        """Play a few steps and learn from them, several times."""
        for _ in range(self.UPDATES):
            cases = self._rollout(self.STEPS)
            log_chances = self._net.log_chances(self._parameters, cases["observation"])
            gain = _chosen(log_chances, cases["action"]) * cases["advantage"]
            gain = gain + self._entropy[:, None] * _entropy(log_chances)
            error = self._net.values(self._parameters, cases["observation"]) - cases["value_target"]
            self._descend((0.5 * error.square() - gain).mean(dim=1), rate)

    def _rollout(self, steps: int) -> dict[str, Tensor]:
        """Play and return the cases, (R, B, ...), with standardised advantages."""
        seen, actions, results = [], [], []
        for _ in range(steps):
            seen.append(self._actors.seen())
            actions.append(self._actors.choose(self.behaviour()))
            results.append(self._actors.step(actions[-1]))
        observation = flat_cases(np.stack(seen))
        reached = flat_cases(np.stack([result.seen for result in results]))
        shape = (self._actors.shape[0], steps, self._actors.shape[1])
        with torch.no_grad():
            value, next_value = (
                np.moveaxis(self._net.values(self._parameters, cases).numpy().reshape(shape), 1, 0)
                for cases in (observation, reached)
            )
            log_chances = self._net.log_chances(self._parameters, observation)
        advantage = advantages(
            np.stack([result.reward for result in results]),
            value,
            next_value,
            np.stack([result.terminated for result in results]),
            np.stack([result.done for result in results]),
            self._gamma.numpy(),
            self._lambda.numpy(),
        )
        action = flat_cases(np.stack(actions))
        flat = flat_cases(advantage)
        return {
            "observation": observation,
            "action": action,
            "advantage": _standardised(flat, torch.ones_like(flat)),
            "value_target": flat_cases(advantage + value),
            "log_chance": _chosen(log_chances, action),
        }


class ProximalPolicy(AdvantageActorCritic):
    """Proximal policy optimisation with the clipped objective (Schulman et al. 2017, equation 7).

    One unit is ``STEPS`` steps of every actor and some epochs of ``PARTS`` gradient steps over the cases.
    """

    STEPS = 48
    EPOCHS = 4
    PARTS = 3

    def __init__(
        self, actors: Actors, net: ActorCritic, configs: Sequence[dict[str, Any]], parameters: Tensor
    ) -> None:
        """See the base class."""
        super().__init__(actors, net, configs, parameters)
        self._clip = per_run(configs, "clip")

    def learn(self, rate: NDArray[np.float64]) -> None:
        """Play, then go over the cases several times."""
        cases = self._rollout(self.STEPS)
        count = cases["action"].shape[1]
        runs = torch.arange(len(self._parameters))[:, None]
        for _ in range(self.EPOCHS):
            order = torch.from_numpy(
                np.stack([generator.permutation(count) for generator in self._actors.generators])
            )
            for rows in order.chunk(self.PARTS, dim=1):
                self._descend(self._losses({name: case[runs, rows] for name, case in cases.items()}), rate)

    def _losses(self, cases: dict[str, Tensor]) -> Tensor:
        log_chances = self._net.log_chances(self._parameters, cases["observation"])
        ratio = (_chosen(log_chances, cases["action"]) - cases["log_chance"]).exp()
        near = torch.minimum(torch.maximum(ratio, 1 - self._clip), 1 + self._clip)
        gain = torch.minimum(ratio * cases["advantage"], near * cases["advantage"])
        gain = gain + self._entropy[:, None] * _entropy(log_chances)
        error = self._net.values(self._parameters, cases["observation"]) - cases["value_target"]
        return (0.5 * error.square() - gain).mean(dim=1)
