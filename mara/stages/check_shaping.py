"""Check on real episodes that the log-progress potential leaves the undiscounted objective unchanged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mara.config.base import Section
from mara.config.cluster import ClusterSettings
from mara.curves.corpus import load_corpus
from mara.errors import exit_on_input_error
from mara.files import atomic_path
from mara.learning.shaping import shaped
from mara.simulator.batch import BatchSimulator
from mara.simulator.cluster import Cluster
from mara.simulator.progress import log_progress
from mara.stages.arguments import read_settings, stage_parser
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


class ShapingSettings(Section):
    """What the check depends on."""

    cluster: ClusterSettings


def earliest_deadlines(simulator: BatchSimulator, nodes: int) -> np.ndarray:
    """Assign each node one of the active tasks with the least time left: (E, M) positions, -1 idle."""
    view = simulator.view()
    left = np.where(view.mask, view.left, np.iinfo(np.int32).max)
    order = np.argsort(left, axis=1, kind="stable")[:, :nodes]
    chosen = np.take_along_axis(view.mask, order, axis=1)
    assignment = np.full((len(left), nodes), -1, dtype=np.int64)
    assignment[:, : order.shape[1]] = np.where(chosen, order, -1)
    return assignment


def main() -> None:
    """Play the episodes by earliest deadline; write the identity's error and how often there is feedback."""
    parser = stage_parser(__doc__)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--trace", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(ShapingSettings, arguments.settings)
    pool, trace = TaskPool.load(arguments.pool), Trace.load(arguments.trace)
    cluster = Cluster.of(settings.cluster)
    simulator = BatchSimulator(trace, pool, cluster, progress=log_progress(pool, load_corpus()))
    rewards, potentials, running = [], [], []
    view = simulator.reset()
    while not view.done.all():
        running.append(~view.done.copy())
        potentials.append(simulator.potential().copy())
        rewards.append(simulator.step(earliest_deadlines(simulator, cluster.nodes)).copy())
        view = simulator.view()
    reward, potential, live = np.array(rewards, dtype=np.float64), np.array(potentials), np.array(running)
    end = np.zeros(reward.shape[1])
    with_shaping = shaped(reward, potential, end)
    expected = reward.sum(axis=0) - potential[0]
    control = shaped(reward, potential, end + 1.0).sum(axis=0)
    row = {
        "episodes": trace.episodes,
        "identity_error": np.abs(with_shaping.sum(axis=0) - expected).max(),
        "control_error": np.abs(control - expected).max(),
        "feedback_shaped": (with_shaping[live] != 0).mean(),
        "feedback_plain": (reward[live] != 0).mean(),
    }
    with atomic_path(arguments.output) as temporary:
        pd.DataFrame([row]).to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
