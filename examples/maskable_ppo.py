"""Train an off-the-shelf maskable PPO on the simulator for about a minute.

    python -m pip install -e ".[example]"
    python examples/maskable_ppo.py

Two nodes decide one after the other, and learn from nothing but completions of synthetic tasks and what the
observation shows (forecasts of the remaining demand among it). Printed are completion rates on episodes that
training never saw, of the untrained and the trained network, a random choice, and earliest deadline first.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from mara.allocators.edf import edf
from mara.config.workload import ArrivalSettings, TaskSettings
from mara.curves.synthetic import draw_curves
from mara.simulator.cluster import Cluster
from mara.simulator.environment import AllocationEnv
from mara.simulator.progress import log_progress
from mara.simulator.simulate import simulate
from mara.workload.forecast_table import ForecastTable, row_offsets
from mara.workload.tasks import TaskPool, make_pool
from mara.workload.trace import make_trace

WIDTH = 32
"""Places for active tasks in the observation; the environment refuses a trace that needs more."""


class StopAfter(BaseCallback):
    """Ends training when the seconds are over."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.end = time.monotonic() + seconds

    def _on_step(self) -> bool:
        return time.monotonic() < self.end


def age_forecasts(pool: TaskPool, horizon: int = 120) -> ForecastTable:
    """Forecast the remaining demand from the units trained alone: the share of the pool's demands."""
    offset = row_offsets(pool.demand)
    cdf = np.zeros((offset[-1], horizon + 1), np.float32)
    for template in range(len(pool)):
        for units in range(offset[template + 1] - offset[template]):
            alive = pool.demand[pool.demand > units] - units
            cdf[offset[template] + units] = (alive[:, None] <= np.arange(horizon + 1)).mean(0)
    return ForecastTable("marginal", offset, cdf, np.full(len(cdf), np.inf, np.float32))


def completion_rate(env: AllocationEnv, tasks: int, episodes: int, model: MaskablePPO | None) -> float:
    """Play all episodes of the environment's trace; without a model, choose at random what is possible."""
    rng, completed = np.random.default_rng(0), 0.0
    for episode in range(episodes):
        seen, _ = env.reset(options={"episode": episode})
        over = False
        while not over:
            mask = env.action_masks()
            if model is None:
                action = int(rng.choice(np.flatnonzero(mask)))
            else:
                action = int(model.predict(seen, action_masks=mask, deterministic=True)[0])
            seen, reward, over, _, _ = env.step(action)
            completed += reward
    return completed / tasks


def main() -> None:
    """Train and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=45.0, help="training time")
    seconds = parser.parse_args().seconds
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    curves = draw_curves(300, rng)
    pool = make_pool(curves, TaskSettings(templates=200, reference="own", longest_window=60), rng)
    arrivals = ArrivalSettings(warm_up=0, scored=60, cool_down=0)
    training, test = (make_trace(pool, arrivals, 0.2, episodes, rng) for episodes in (200, 40))
    cluster, forecasts, progress = Cluster(np.ones(2)), age_forecasts(pool), log_progress(pool, curves)
    model = MaskablePPO(
        "MlpPolicy",
        AllocationEnv(training, pool, cluster, forecasts, progress, width=WIDTH),
        n_steps=1024,
        batch_size=256,
        gamma=1.0,
        ent_coef=0.01,
        seed=0,
    )
    unseen = AllocationEnv(test, pool, cluster, forecasts, progress, width=WIDTH)
    rates = {
        "random": completion_rate(unseen, len(test), test.episodes, None),
        "earliest deadline first": simulate(test, pool, cluster, edf()).completed.mean(),
        "maskable PPO, untrained": completion_rate(unseen, len(test), test.episodes, model),
    }
    model.learn(10_000_000, callback=StopAfter(seconds))
    rates["maskable PPO, trained"] = completion_rate(unseen, len(test), test.episodes, model)
    print(f"{len(test)} tasks of {test.episodes} episodes, {model.num_timesteps} steps of training")
    for name, rate in rates.items():
        print(f"{name:<26}{100 * rate:5.1f} % completed")


if __name__ == "__main__":
    main()
