"""How fast the simulator is, on one core: ``python benchmarks/simulator.py [--json] [--bound]``.

- Throughput in node-slots a second (one node deciding and running one slot) at about the training load,
  8 nodes, batches of 200 episodes: EDF, the Gittins index on forecast tables, and the roll-out path of PPO
  (observations built, the index policy's picks stepped; no network).
- Growth: one episode of 1,000 nodes and up to 100,000 tasks with EDF.
- With ``--bound``: the certified optimum of 200 episodes in two processes.

Times are CPU seconds of this process, best of five, so that other work on the machine does not count;
those of ``--bound`` are wall-clock.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable

import numpy as np
import torch

from mara.allocators.mat.lanes import Lanes
from mara.allocators.registry import default_weights, make_policy
from mara.config.allocators import MatchingWeights
from mara.config.mat import NetworkSettings
from mara.config.workload import ArrivalSettings, TaskSettings
from mara.curves.corpus import load_corpus
from mara.simulator.clairvoyant import bound
from mara.simulator.cluster import Cluster
from mara.simulator.simulate import simulate
from mara.workload.forecast_table import ForecastTable, row_offsets
from mara.workload.tasks import TaskPool, make_pool
from mara.workload.trace import Trace, make_trace

NODES, EPISODES, HORIZON = 8, 200, 120
RATE_PER_NODE = 0.052
"""Arrivals a slot and node: EDF then completes about half of the tasks, as at the training load."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--bound", action="store_true", help="also time the clairvoyant bound")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    pool = make_pool(load_corpus().of(family="supervised"), TaskSettings(), rng)
    trace = make_trace(pool, ArrivalSettings(), RATE_PER_NODE * NODES, EPISODES, rng)
    result = {"node_slots_per_second": throughput(pool, trace), "growth": growth(pool, rng)}
    if arguments.bound:
        result["bound"] = time_bound(pool, trace)
    if arguments.json:
        print(json.dumps(result))
        return
    for name, parts in result.items():
        print(name)
        for key, value in parts.items():
            print(f"  {key:<28}{value:>16,.4g}" if abs(value) < 1000 else f"  {key:<28}{value:>16,.0f}")


def throughput(pool: TaskPool, trace: Trace) -> dict[str, float]:
    """Node-slots a second of the two policies and of the roll-out path."""
    cluster, forecasts = Cluster(np.ones(NODES)), marginal_forecasts(pool)
    rates = {}
    for name in ("edf", "gittins"):
        policy = make_policy(name, forecasts=forecasts, cluster=cluster)
        slots = simulate(trace, pool, cluster, policy, forecasts).totals["slots"].sum()
        seconds = fastest(lambda policy=policy: simulate(trace, pool, cluster, policy, forecasts))
        rates[name] = NODES * slots / seconds
    weights = default_weights("index_matching")
    assert isinstance(weights, MatchingWeights)
    lanes = Lanes(trace, pool, cluster, forecasts, weights, NetworkSettings())
    decided = 0

    def roll_out() -> None:
        nonlocal decided
        lanes.reset()
        decided = 0
        while lanes.live.size:
            decided += lanes.live.size
            _, picks = lanes.observe()
            lanes.step(picks)

    roll_out()
    seconds = fastest(roll_out)
    rates["rollout"] = NODES * decided / seconds
    return rates


def growth(pool: TaskPool, rng: np.random.Generator) -> dict[str, float]:
    """CPU seconds of one episode of 1,000 nodes for growing numbers of tasks, and the most memory used."""
    nodes, seconds = 1_000, {}
    rate = RATE_PER_NODE * nodes
    for tasks in (12_500, 25_000, 50_000, 100_000):
        arrivals = ArrivalSettings(warm_up=0, scored=round(tasks / rate), cool_down=0)
        trace = make_trace(pool, arrivals, rate, 1, rng)
        seconds[f"seconds_{tasks}_tasks"] = fastest(
            lambda trace=trace: simulate(trace, pool, Cluster(np.ones(nodes)), make_policy("edf")), repeats=2
        )
    return seconds | {"peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def time_bound(pool: TaskPool, trace: Trace) -> dict[str, float]:
    """Wall-clock seconds and gap of the certified optimum over all tasks of the episodes."""
    start = time.perf_counter()
    found = bound(trace, pool, Cluster(np.ones(NODES)), "all", workers=2)
    seconds = time.perf_counter() - start
    return {
        "episodes": EPISODES,
        "seconds": seconds,
        "gap": found.gap,
        "completion_rate": found.completion_rate,
    }


def marginal_forecasts(pool: TaskPool) -> ForecastTable:
    """Forecast each task by the pool's demands above the units it has had: a full table, made fast."""
    offset = row_offsets(pool.demand)
    demand = np.sort(pool.demand)
    units = np.arange(np.diff(offset).max())
    within = np.searchsorted(demand, units[:, None] + np.arange(HORIZON + 1), side="right")
    gone = np.searchsorted(demand, units, side="right")[:, None]
    cdf = ((within - gone) / np.maximum(demand.size - gone, 1)).astype(np.float32)
    row = np.arange(offset[-1]) - np.repeat(offset[:-1], np.diff(offset))
    point = np.where(cdf[:, -1] >= 0.5, (cdf < 0.5).sum(1), np.inf).astype(np.float32)
    return ForecastTable("marginal", offset, cdf[row], point[row])


def fastest(action: Callable[[], object], repeats: int = 5) -> float:
    """CPU seconds of the fastest of some repeats."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
