"""Training of the transformer allocator from start to end: warm start, look-ahead, PPO; with exact resumption.

Phases, each with rows of its own in the training log:
  imitation  only with ``warm_start: imitation``
  worth      fit of what a state is worth, with which look-ahead ends its roll-outs
  pairs      regression of look-ahead advantages on the pair of task and node alone: few weights
  lookahead  the same with the whole network
  trust      after each of the two, how far what was learned is to be trusted
  ppo        polish by policy gradients; with ``warm_start: none`` the whole of learning
  selection  whether what PPO made is kept, where there was a policy before

Where there was one, trust and selection choose on curve groups that nothing was learned from (split.py).
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
from mara.allocators.mat.policy import MatPolicy, build_network, run_lanes
from mara.config.mat import LookaheadSettings, MatSettings
from mara.errors import InputError
from mara.files import UNREADABLE, atomic_path, why_unreadable
from mara.learning.imitation import clone
from mara.learning.improvement import regress
from mara.learning.lookahead import Deviations
from mara.learning.ppo import ValueNorm, play, update
from mara.learning.rollout import Course, Labelled, label_states
from mara.learning.split import split_groups
from mara.tensor_files import save_tensors

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
        self.settings, self.log_path, self.checkpoint = settings, log, checkpoint
        self.courses, self.choosing = courses, courses
        if settings.warm_start != "none":
            chance = np.random.default_rng([seed, 1])
            self.courses, self.choosing = split_groups(courses, settings.held_back, chance)
        self.rng = np.random.default_rng([seed, 0])
        self.generator = torch.Generator().manual_seed(seed)
        network = build_network(settings, self.generator)
        self.policy = MatPolicy(network, settings, courses[0].weights)
        self.ppo = settings.scratch if settings.warm_start == "none" else settings.ppo
        self.optimizer = torch.optim.Adam(network.parameters(), lr=self.ppo.learning_rate, eps=1e-5)
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
        save_tensors(self.checkpoint, content)

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
            raise InputError(
                f"{self.checkpoint}: not a checkpoint of this training ({why_unreadable(error)}); delete it"
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
        phases += [self._ppo] * self.ppo.updates
        if self.ppo.updates and self.settings.warm_start != "none":
            phases.append(self._keep_the_better)
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
        for pairs_only in (True, False) if behaviour is None else (False,):
            before = self._weights()
            regress(self.network, data, settings, self.generator, self.log, pairs_only)
            if self.settings.warm_start == "prior":
                self._choose_trust(before, settings)

    def _weights(self) -> dict[str, torch.Tensor]:
        """Return a copy of the network's weights."""
        return {name: value.clone() for name, value in self.network.state_dict().items()}

    def _choose_trust(self, before: dict[str, torch.Tensor], settings: LookaheadSettings) -> None:
        """Keep the share of the learned change that is best on the groups held back, the policy of before in doubt."""
        after = self._weights()
        old = self._completions(before, settings.trust_episodes)
        trusts = [0.0, *(trust for trust in settings.trust if trust > 0)]
        found = [old]
        for trust in trusts[1:]:
            found.append(self._completions(blend(before, after, trust), settings.trust_episodes))
        best = int(np.argmax([gain(new, old)[0] if surely_better(new, old) else 0.0 for new in found]))
        self.network.load_state_dict(blend(before, after, trusts[best]))
        for k, (trust, new) in enumerate(zip(trusts, found, strict=True)):
            row: dict[str, Any] = {"phase": "trust", "step": self.done, "trust": trust}
            row |= {f"completion_{course}": float(rate.mean()) for course, rate in enumerate(new)}
            self.log(row | {"kept": int(k == best)})

    def _completions(self, weights: dict[str, torch.Tensor], episodes: int) -> list[np.ndarray]:
        """Play the first episodes of the groups held back: per course (E,), completed per mean number of arrivals."""
        self.network.load_state_dict(weights)
        result = []
        for world, course in zip(self.worlds(), self.choosing, strict=True):
            first = course.trace.select(np.arange(min(episodes, course.trace.episodes)))
            outcome = run_lanes(self.policy, world.on(first))
            count = np.bincount(outcome.episode, outcome.completed & outcome.scored, first.episodes)
            result.append(count * first.episodes / max(outcome.scored.sum(), 1))
        return result

    def _ppo(self) -> None:
        settings = self.ppo
        if self.before_ppo is None and self.settings.warm_start != "none":
            self.before_ppo = self._weights()
            if self.settings.warm_start == "prior":
                sharpen(self.network, settings.sharpen)
        world = self.worlds()[int(self.rng.integers(len(self.courses)))]
        episodes = self.rng.integers(world.trace.episodes, size=settings.episodes)
        rollout = play(world, self.policy, self.norm, episodes, settings, self.generator)
        measured = update(self.network, self.optimizer, rollout, settings, self.generator)
        row: dict[str, Any] = {"phase": "ppo", "step": self.done, "slots": len(rollout.picks)}
        row |= {"return": rollout.total, "shaped_return": rollout.shaped_total}
        row |= {
            "completion": rollout.total * settings.episodes / world.episodes.arrival.size,
            "explained_variance": rollout.explained,
        }
        self.log(row | measured)

    def _keep_the_better(self) -> None:
        """Keep what PPO made only if it is surely better on the groups held back than what it started from."""
        assert self.before_ppo is not None
        after, episodes = self._weights(), self.ppo.selection_episodes
        new, old = (self._completions(weights, episodes) for weights in (after, self.before_ppo))
        kept = surely_better(new, old)
        self.network.load_state_dict(after if kept else self.before_ppo)
        rates = {"before_ppo": float(np.mean(old)), "after_ppo": float(np.mean(new))}
        self.log({"phase": "selection", "step": self.done, **rates, "kept": int(kept)})


SURE = 1.64
"""Standard errors that a gain must exceed to be believed: of several trials the luckiest is picked."""


def gain(new: list[np.ndarray], old: list[np.ndarray]) -> tuple[float, float]:
    """Mean paired gain over courses of episodes (E,) each, and its standard error (infinite with one episode)."""
    pairs = [a - b for a, b in zip(new, old, strict=True)]
    variance = [float(d.var(ddof=1)) / len(d) if len(d) > 1 else np.inf for d in pairs]
    return float(np.mean([d.mean() for d in pairs])), float(np.sqrt(np.sum(variance))) / len(pairs)


def surely_better(new: list[np.ndarray], old: list[np.ndarray]) -> bool:
    """Whether the gain is beyond chance."""
    mean, error = gain(new, old)
    return mean > SURE * error


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
