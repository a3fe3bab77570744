"""What the transformer costs, on one core: ``python benchmarks/allocator.py [--json] [--training]``.

- Milliseconds of one decision (all nodes of one slot): observing, encoding and decoding, for 8 nodes with 60 active
  tasks and 64 nodes with 500, and of the compiled index there. The network's learned part is random, not zero.
- With ``--training``: CPU seconds of one training with the full run's settings, on marginal forecasts.

Times are CPU seconds of this process; a decision's is the median over many, so that other work counts little.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from simulator import marginal_forecasts

from mara.allocators.mat.greedy import GreedyDecoder
from mara.allocators.mat.lanes import Lanes
from mara.allocators.mat.policy import MatPolicy, build_network
from mara.config.allocators import MatchingWeights
from mara.config.mat import MatSettings
from mara.config.workload import ArrivalSettings, TaskSettings
from mara.curves.corpus import load_corpus
from mara.learning.rollout import Course
from mara.learning.train import train_mat
from mara.simulator.cluster import Cluster
from mara.simulator.engine import COUNT
from mara.workload.tasks import TaskPool, make_pool
from mara.workload.trace import make_trace

SIZES = ((8, 60), (64, 500))
DECISIONS = 100


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--training", action="store_true", help="also time one training")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    pool = make_pool(load_corpus().of(family="supervised"), TaskSettings(), rng)
    result = {}
    for nodes, tasks in SIZES:
        result |= decision(pool, nodes, tasks, rng)
    if arguments.training:
        result["training_cpu_s"] = training(pool, rng)
    if arguments.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:<32}{value:>10.3f}")


def decision(pool: TaskPool, nodes: int, tasks: int, rng: np.random.Generator) -> dict[str, float]:
    """Milliseconds of a slot's decision with at least so many active tasks, on nodes of three speeds."""
    settings, cluster = MatSettings(), Cluster(np.resize([2.0, 1.0, 1.0, 0.5], nodes))
    policy = MatPolicy(build_network(settings, torch.Generator()), settings, MatchingWeights())
    with torch.no_grad():
        for parameter in policy.network.parameters():
            parameter.add_(0.01 * torch.randn(parameter.shape))
    trace = make_trace(pool, ArrivalSettings(), tasks / 20, 1, rng)
    world = Lanes(trace, pool, cluster, marginal_forecasts(pool), policy.weights, settings.network)
    world.reset()
    decoder = GreedyDecoder(policy.network)
    spent: dict[str, list[float]] = {"observe": [], "network": []}
    while world.live.size and len(spent["observe"]) < DECISIONS:
        crowded = world.state.counter[0, COUNT] >= tasks
        start = time.process_time()
        observation, base = world.observe()
        seen = time.process_time()
        if crowded:
            with torch.inference_mode():
                encoded = policy.network.encode(observation)
                base = decoder(encoded, policy.mask_state(observation, cluster))
            spent["observe"].append(seen - start)
            spent["network"].append(time.process_time() - seen)
        world.step(base)
    place = f"{nodes}_nodes_{tasks}_tasks"
    parts = {f"ms_{name}_{place}": 1e3 * float(np.median(values)) for name, values in spent.items()}
    return parts | {f"ms_decision_{place}": sum(parts.values())}


def training(pool: TaskPool, rng: np.random.Generator) -> float:
    """CPU seconds of one training on alike and on mixed nodes."""
    forecasts = marginal_forecasts(pool)
    courses = []
    for speeds in (np.ones(8), np.array([0.5, 0.5, 1, 1, 1, 1, 2, 2])):
        trace = make_trace(pool, ArrivalSettings(), 0.052 * float(speeds.sum()), 64, rng)
        courses.append(Course(trace, pool, Cluster(speeds), forecasts, MatchingWeights()))
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        train_mat(courses, MatSettings(), 1, Path(folder) / "log.csv")
    return time.process_time() - start


if __name__ == "__main__":
    main()
