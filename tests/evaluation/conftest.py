"""Fabricated outcomes: an invented population of tasks in which every method has a known true rate."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from mara.config.evaluation import EvaluationSettings

Fabricate = Callable[..., dict[str, dict[int, pd.DataFrame]]]


@pytest.fixture(scope="session")
def settings() -> EvaluationSettings:
    return EvaluationSettings(resamples=400)


@pytest.fixture(scope="session")
def fabricate() -> Fabricate:
    return fabricate_runs


def fabricate_runs(
    rates: dict[str, float],
    *,
    seeds: dict[str, int] | None = None,
    episodes: int = 40,
    bound_episodes: int | None = None,
    groups: int = 60,
    seed: int = 0,
) -> dict[str, dict[int, pd.DataFrame]]:
    """Runs of methods with true completion rates ``rates`` on the same tasks.

    A task's latent ease is shared by all methods, so their outcomes are strongly paired; groups differ in
    ease. Tasks in the first tenth of the arrivals are not scored.
    """
    rng = np.random.default_rng(seed)
    per_episode = 60
    total = episodes * per_episode
    group_of_template = np.arange(groups * 5) // 5
    template = rng.integers(0, groups * 5, size=total)
    group = group_of_template[template]
    arrival = np.sort(rng.integers(0, 300, size=(episodes, per_episode)), axis=1).ravel()
    window = rng.integers(10, 100, size=total)
    ease = rng.normal(0.0, 0.7, size=groups)[group] + rng.normal(size=total)
    rank = np.argsort(np.argsort(ease)) / total
    tasks = pd.DataFrame(
        {
            "episode": np.repeat(np.arange(episodes), per_episode),
            "template": template,
            "group": np.char.add("g", group.astype(str)),
            "family": np.array(["supervised", "vision", "rl"])[group % 3],
            "arrival": arrival,
            "deadline": arrival + window,
            "scored": arrival >= 30,
        }
    )
    runs: dict[str, dict[int, pd.DataFrame]] = {}
    for method, rate in rates.items():
        runs[method] = {}
        trainings = (seeds or {}).get(method, 1)
        for train_seed in range(1, trainings + 1):
            luck = 0.01 * rng.normal() if trainings > 1 else 0.0
            noisy = rank + 0.05 * rng.normal(size=total) + luck
            completed = (noisy > 1.0 - rate) & (rate > 0.0)
            first = np.where(completed | (rng.random(total) < 0.5), arrival + window // 4, -1)
            frame = tasks.assign(
                completed=completed,
                finish=np.where(completed, arrival + window - 1, -1),
                first_served=first,
                units=np.where(completed, window // 2, 0).astype(np.float32),
            )
            if method == "clairvoyant" and bound_episodes is not None:
                frame = frame[frame["episode"] < bound_episodes]
            runs[method][train_seed] = frame
    return runs
