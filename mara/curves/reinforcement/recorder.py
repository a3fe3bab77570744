"""Recorder of the RL family: learners on Gymnasium's classic-control and toy-text tasks.

Groups are task x algorithm (x network). A group has seven configurations, every third of them with a second
seed; its runs are trained side by side, each with its own stream of random numbers and its own first weights.

``validation_loss`` is the normalised shortfall (``tasks.Task.loss``) of the running mean of the returns of
the last ``window`` episodes under the behaviour policy, exploration included; ``train_loss`` that of the
episodes that ended in the unit (of the unit before where none did). Point 0 is the untrained policy's, which
also fills the window. ``schedule`` is the learning rate, for tables the step size.

Shapes: R runs of a batch, N = 200 points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from mara.curves.corpus import POINTS
from mara.curves.optimizers import SCHEDULES, learning_rates
from mara.curves.recipes import Recipe, Recorded, run_seed
from mara.curves.reinforcement.actors import Actors
from mara.curves.reinforcement.networks import ActorCritic
from mara.curves.reinforcement.policy_gradient import (
    AdvantageActorCritic,
    PolicyGradientLearner,
    ProximalPolicy,
    Reinforce,
)
from mara.curves.reinforcement.tabular import RULES, TabularLearner
from mara.curves.reinforcement.tasks import TASKS

CONFIGURATIONS = 7
TABLE_ACTORS = 8

NETWORKS: dict[str, tuple[tuple[int, ...], str]] = {
    "linear": ((), "tanh"),
    "tanh16": ((16,), "tanh"),
    "relu32x2": ((32, 32), "relu"),
}
"""Hidden sizes and activation."""

LEARNERS: dict[str, type[PolicyGradientLearner]] = {
    "reinforce": Reinforce,
    "actor-critic": AdvantageActorCritic,
    "ppo": ProximalPolicy,
}

_LEARNING_RATES = {"adam": (-3.3, -0.9), "rmsprop": (-3.5, -1.2), "momentum": (-2.0, 0.0), "sgd": (-1.0, 0.8)}
"""Range of log10 of the learning rate by optimizer; gradients are clipped to norm 1."""

_CONTROL = ("cartpole-200", "cartpole-500", "acrobot", "mountaincar-shaped", "pendulum-3")
_TOYS = ("lake-4x4", "lake-4x4-slippery", "cliff", "cliff-slippery", "taxi", "blackjack")
_TABLES = (
    *("lake-4x4", "lake-4x4-slippery", "lake-8x8", "lake-8x8-slippery", "cliff", "cliff-slippery", "taxi"),
    *("blackjack", "cartpole-200", "mountaincar", "pendulum-5", "acrobot"),
)
_RULES_PER_TASK = 2
_TOO_SLOW = {
    *(("cartpole-500", "reinforce"), ("acrobot", "reinforce"), ("acrobot", "relu32x2")),
    *(("taxi", "reinforce"), ("taxi", "ppo")),
}
"""Tasks with learners or networks that would cost as much to record as all the rest."""


def groups() -> list[tuple[str, str]]:
    """Every task and architecture (``algorithm-network`` or a tabular rule), in row order."""
    found = [
        (task, f"{learner}-{network}")
        for task in _CONTROL
        for learner in LEARNERS
        for network in ("tanh16", "relu32x2")
        if (task, learner) not in _TOO_SLOW and (task, network) not in _TOO_SLOW
    ]
    found += [
        (task, f"{learner}-linear")
        for task in _TOYS
        for learner in LEARNERS
        if (task, learner) not in _TOO_SLOW
    ]
    for place, task in enumerate(_TABLES):
        found += [(task, RULES[(place + turn) % len(RULES)]) for turn in range(_RULES_PER_TASK)]
    return found


def recipes() -> list[Recipe]:
    """Every run of the family, in row order."""
    found = []
    for task, architecture in groups():
        group = f"{task}/{architecture}"
        rng = np.random.default_rng([60917, *group.encode()])
        pace = {"pace": float(rng.choice([0.5, 1.0, 1.5]))} if architecture in RULES else {}
        for index in range(CONFIGURATIONS):
            draw = _draw_table_config if architecture in RULES else _draw_network_config
            config = draw(rng) | pace
            for sibling in range(2 if index % 3 == 0 else 1):
                found.append(
                    Recipe(
                        id=f"{group}/{index:02d}-{sibling}",
                        family="rl",
                        dataset=task,
                        group=group,
                        config=config,
                        seed=sibling,
                        split="test",
                        batch=group,
                    )
                )
    return found


def _draw_network_config(rng: np.random.Generator) -> dict[str, Any]:
    optimizer = str(rng.choice(list(_LEARNING_RATES)))
    return {
        "optimizer": optimizer,
        "schedule": str(rng.choice(SCHEDULES)),
        "learning_rate": float(f"{10 ** rng.uniform(*_LEARNING_RATES[optimizer]):.3g}"),
        "gamma": float(rng.choice([0.95, 0.98, 0.99, 0.995])),
        "lambda": float(rng.choice([0.8, 0.95, 1.0])),
        "entropy": float(rng.choice([0.0, 0.003, 0.01, 0.03])),
        "baseline": str(rng.choice(["none", "mean", "standardised"])),
        "clip": float(rng.choice([0.1, 0.2, 0.3])),
        "gain": float(rng.choice([0.5, 1.0, 2.0])),
    }


def _draw_table_config(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "schedule": str(rng.choice(SCHEDULES)),
        "learning_rate": float(f"{10 ** rng.uniform(-1.7, -0.1):.3g}"),
        "gamma": float(rng.choice([0.9, 0.95, 0.99, 1.0])),
        "epsilon": float(rng.choice([0.05, 0.1, 0.3, 1.0])),
        "explore": float(rng.choice([0.2, 0.5, 1.0])),
        "first_value": float(rng.choice([0.0, 0.0, 0.3, 1.0])),
    }


def record(batch: list[Recipe]) -> Recorded:
    """Train the runs of one group side by side."""
    task_name, architecture = batch[0].group.split("/")
    task, configs = TASKS[task_name], [recipe.config for recipe in batch]
    schedule = np.stack([learning_rates(config["schedule"], config["learning_rate"]) for config in configs])
    streams = [np.random.default_rng(run_seed(recipe, "play")) for recipe in batch]
    learner: PolicyGradientLearner | TabularLearner
    if architecture in RULES:
        actors = Actors(task, TABLE_ACTORS, streams, table=True)
        learner = TabularLearner(architecture, actors, configs, round(configs[0]["pace"] * task.table_steps))
    else:
        algorithm, network = architecture.rsplit("-", 1)
        actors = Actors(task, task.actors, streams, table=False)
        hidden, activation = NETWORKS[network]
        net = ActorCritic(actors.environment.features, actors.environment.actions, hidden, activation)
        parameters = torch.stack(
            [
                net.initial(recipe.config["gain"], torch.Generator().manual_seed(run_seed(recipe, "weights")))
                for recipe in batch
            ]
        )
        learner = LEARNERS[algorithm](actors, net, configs, parameters)

    actors.fill_window(learner.behaviour)
    train_loss = np.empty((len(batch), POINTS))
    validation_loss = np.empty((len(batch), POINTS))
    for point in range(POINTS):
        if point:
            learner.learn(schedule[:, point])
        train_loss[:, point] = task.loss(actors.fresh_score())
        validation_loss[:, point] = task.loss(actors.running_score())
    return Recorded(train_loss, validation_loss, schedule)
