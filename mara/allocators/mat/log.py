"""Who trained what, slot by slot, in one episode under a trained transformer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from mara.allocators.mat.greedy import GreedyDecoder
from mara.allocators.mat.lanes import Lanes
from mara.allocators.mat.policy import MatPolicy
from mara.simulator.cluster import Cluster
from mara.simulator.engine import COUNT, SLOT
from mara.simulator.simulate import Outcome
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


def log_episode(
    policy: MatPolicy, trace: Trace, pool: TaskPool, cluster: Cluster, forecasts: ForecastTable, episode: int
) -> tuple[pd.DataFrame, Outcome]:
    """Play one episode greedily.

    Returns:
        one row per busy node-slot with columns slot, node, task (its number in the episode, in the order of
        arrival), and the episode's outcome.
    """
    world = Lanes(trace, pool, cluster, forecasts, policy.weights, policy.settings.network)
    world.reset(np.array([episode]))
    decoder = GreedyDecoder(policy.network)
    rows: list[tuple[int, int, int]] = []
    while world.live.size:
        observation, _ = world.observe()
        with torch.no_grad():
            encoded = policy.network.encode(observation)
            picks = decoder(encoded, policy.mask_state(observation, cluster))
        slot = int(world.state.counter[0, SLOT])
        active = world.state.active[0, : world.state.counter[0, COUNT]]
        candidate = world.buffers.candidate[0]
        for place, pick in enumerate(picks[0].tolist()):
            if pick < candidate.size and candidate[pick] >= 0:
                rows.append((slot, int(world.order[place]), int(active[candidate[pick]])))
        world.step(picks)
    return pd.DataFrame(rows, columns=["slot", "node", "task"]), world.outcome()
