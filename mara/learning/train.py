"""Training of the transformer allocator from start to end: warm start, look-ahead, PPO; with exact resumption.

Phases, each with rows of its own in the training log:
  imitation  only with ``warm_start: imitation``
  lookahead  regression of look-ahead advantages, then a choice of how far to trust what was learned
  ppo        polish by policy gradients
  selection  whether what PPO made is kept
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mara.allocators.mat.lanes import Lanes
from mara.allocators.mat.network import MatNetwork
from mara.allocators.mat.policy import MatPolicy, build_network, run_policy
from mara.config.mat import MatSettings
from mara.errors import InputError
from mara.files import UNREADABLE, atomic_path
from mara.learning.imitation import clone
from mara.learning.improvement import regress
from mara.learning.lookahead import Deviations
from mara.learning.ppo import ValueNorm, play, update
from mara.learning.rollout import Course, Labelled, label_states

LANES = 64
"""Episodes stepped side by side while states are collected."""


class Training:
    """The state of a training, saved after every phase and every PPO update.

    Args:
        courses: the curriculum's settings.
        settings: the transformer's settings.
        seed: of this training; fixes everything.
        log: CSV file that grows with the training, one row a step.
        checkpoint: file to resume from and to save to; none is kept without it.
    """

    def __init__(
        self,
        courses: list[Course],
        settings: MatSettings,
        seed: int,
        log: Path,
        checkpoint: Path | None = None,
    ) -> None:
        if not courses:
            raise InputError("mat: the curriculum has no setting to train on; give at least one")
        self.courses, self.settings, self.log_path, self.checkpoint = courses, settings, log, checkpoint
        self.rng = np.random.default_rng([seed, 0])
        self.generator = torch.Generator().manual_seed(seed)
        network = build_network(settings, self.generator)
        self.policy = MatPolicy(network, settings, courses[0].weights)
        self.optimizer = torch.optim.Adam(network.parameters(), lr=settings.ppo.learning_rate, eps=1e-5)
        self.norm = ValueNorm()
        self.rows: list[dict[str, Any]] = []
        self.done = 0
        self.before_ppo: dict[str, torch.Tensor] | None = None
        self._worlds: list[Lanes] = []

    @property
    def network(self) -> MatNetwork:
        """The network in training."""
        return self.policy.network

    def worlds(self) -> list[Lanes]:
        """Lanes of all courses, made when first asked for."""
        if not self._worlds:
            self._worlds = [
                Lanes(
                    c.trace, c.pool, c.cluster, c.forecasts, c.weights, self.settings.network,
                    progress=c.progress, drop_clashes=not self.settings.mask,
                )
                for c in self.courses
            ]  # fmt: skip
        return self._worlds

    def log(self, row: dict[str, Any]) -> None:
        """Add a row to the training log and write it out."""
        self.rows.append(row)
        names = list(dict.fromkeys(name for r in self.rows for name in r))
        with (
            atomic_path(self.log_path) as temporary,
            temporary.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(self.rows)

    def save(self) -> None:
        """Write the checkpoint, if one is kept."""
        if self.checkpoint is None:
            return
        content = {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "norm": vars(self.norm),
            "generator": self.generator.get_state(),
            "rng": self.rng.bit_generator.state,
            "rows": self.rows,
            "done": self.done,
            "before_ppo": self.before_ppo,
        }
        with atomic_path(self.checkpoint) as temporary:
            torch.save(content, temporary)

    def restore(self) -> None:
        """Go on from the checkpoint, if there is one.

        Raises:
            InputError: when the file is not a checkpoint of this network.
        """
        if self.checkpoint is None or not self.checkpoint.exists():
            return
        try:
            content = torch.load(self.checkpoint, weights_only=True)
            self.network.load_state_dict(content["network"])
            self.optimizer.load_state_dict(content["optimizer"])
        except UNREADABLE as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"{self.checkpoint}: not a checkpoint of this training ({reason}); delete it"
            ) from None
        vars(self.norm).update(content["norm"])
        self.generator.set_state(content["generator"])
        self.rng.bit_generator.state = content["rng"]
        self.rows, self.done, self.before_ppo = content["rows"], content["done"], content["before_ppo"]

    def run(self) -> MatPolicy:
        """Train to the end, from the checkpoint on where there is one."""
        self.restore()
        phases: list[Callable[[], None]] = []
        if self.settings.warm_start == "imitation":
            phases.append(self._imitate)
        if self.settings.lookahead is not None:
            phases += [self._look_ahead] * self.settings.lookahead.rounds
        if self.settings.ppo.updates:
            phases += [self._ppo] * self.settings.ppo.updates + [self._keep_the_better]
        while self.done < len(phases):
            phases[self.done]()
            self.done += 1
            self.save()
        return self.policy

    def _imitate(self) -> None:
        clone(self.policy, self.worlds(), self.settings.imitation, LANES, self.rng, self.generator, self.log)

    def _look_ahead(self) -> None:
        settings = self.settings.lookahead
        assert settings is not None
        behaviour = None if self.done == 0 else self.policy
        share = settings.states // (settings.rounds * len(self.courses))
        data: list[Labelled] = []
        for world in self.worlds():
            world.reset(np.arange(1))
            deviations = Deviations(world, settings.deviations, settings.hold, settings.horizon, self.rng)
            fitted = deviations.fit_worth(self.rng.integers(world.trace.episodes, size=LANES // 2))
            self.log({"phase": "worth", "step": self.done, "explained_variance": fitted})
            data.append(label_states(world, deviations, behaviour, max(share, 1), LANES, self.rng))
        before = {name: value.clone() for name, value in self.network.state_dict().items()}
        regress(self.network, data, settings, self.generator, self.log)
        if self.settings.warm_start == "prior":
            self._choose_trust(before)

    def _choose_trust(self, before: dict[str, torch.Tensor]) -> None:
        """Keep the share of the learned change that completes most training episodes; 0 keeps the policy of before."""
        settings = self.settings.lookahead
        assert settings is not None
        after = {name: value.clone() for name, value in self.network.state_dict().items()}
        counts = []
        for trust in settings.trust:
            self.network.load_state_dict(blend(before, after, trust))
            counts.append([self._completion(course, settings.trust_episodes) for course in self.courses])
        gains = np.array(counts)
        best = int(gains.mean(axis=1).argmax())
        self.network.load_state_dict(blend(before, after, settings.trust[best]))
        for trust, gain in zip(settings.trust, gains, strict=True):
            row: dict[str, Any] = {"phase": "trust", "step": self.done, "trust": trust}
            row |= {f"completion_{k}": float(value) for k, value in enumerate(gain)}
            self.log(row | {"kept": int(trust == settings.trust[best])})

    def _completion(self, course: Course, episodes: int) -> float:
        first = course.trace.select(np.arange(min(episodes, course.trace.episodes)))
        policy = MatPolicy(self.network, self.settings, course.weights)
        return run_policy(policy, first, course.pool, course.cluster, course.forecasts).completion_rate

    def _ppo(self) -> None:
        settings = self.settings.ppo
        if self.before_ppo is None:
            self.before_ppo = {name: value.clone() for name, value in self.network.state_dict().items()}
            if self.settings.warm_start == "prior":
                sharpen(self.network, settings.sharpen)
        world = self.worlds()[int(self.rng.integers(len(self.courses)))]
        episodes = self.rng.integers(world.trace.episodes, size=settings.episodes)
        rollout = play(world, self.policy, self.norm, episodes, settings, self.generator)
        measured = update(self.network, self.optimizer, rollout, settings, self.generator)
        row: dict[str, Any] = {"phase": "ppo", "step": self.done, "return": rollout.total}
        row |= {"shaped_return": rollout.shaped_total, "explained_variance": rollout.explained}
        self.log(row | measured)

    def _keep_the_better(self) -> None:
        """Keep what PPO made only if it completes more of the training episodes than what it started from."""
        assert self.before_ppo is not None
        after = {name: value.clone() for name, value in self.network.state_dict().items()}
        rates = []
        for weights in (self.before_ppo, after):
            self.network.load_state_dict(weights)
            completed = [self._completion(c, self.settings.ppo.selection_episodes) for c in self.courses]
            rates.append(float(np.mean(completed)))
        kept = int(rates[1] > rates[0])
        self.network.load_state_dict(after if kept else self.before_ppo)
        row = {"phase": "selection", "step": self.done, "before_ppo": rates[0], "after_ppo": rates[1]}
        self.log(row | {"kept": kept})


LAST_FACTORS = ("query.weight", "query.bias", "bias.2.weight", "bias.2.bias", "gain")
"""Parameters in which the logits of a network with the index as its prior are linear."""


def sharpen(network: MatNetwork, factor: float) -> None:
    """Multiply all logits: the greedy choice stays, the entropy falls."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name in LAST_FACTORS:
                parameter.mul_(factor)


def blend(
    before: dict[str, torch.Tensor], after: dict[str, torch.Tensor], trust: float
) -> dict[str, torch.Tensor]:
    """The network after learning, with the learned part of its logits scaled by ``trust``.

    Scaling the change of the last, linear factors scales the logits' change where they were zero before. 0 returns
    the network of before.
    """
    if trust == 0.0:
        return before
    return {
        name: before[name] + trust * (value - before[name]) if name in LAST_FACTORS else value
        for name, value in after.items()
    }


def train_mat(
    courses: list[Course],
    settings: MatSettings,
    seed: int,
    log: Path,
    checkpoint: Path | None = None,
) -> MatPolicy:
    """Train one policy; the same arguments give the same policy, resumed or not.

    Args:
        courses: settings of the curriculum, the first with the index that the policy carries along.
        settings: the transformer's settings.
        seed: of this training.
        log: CSV of the training's curves: phase, step and the phase's measures.
        checkpoint: file to resume from, which the caller removes when the policy is safe.
    """
    return Training(courses, settings, seed, log, checkpoint).run()
