"""Train the multi-agent transformer once; an interrupted training goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

import torch

from mara.config.base import Section
from mara.config.cluster import ClusterSettings
from mara.config.mat import MatSettings
from mara.curves.corpus import load_corpus
from mara.errors import exit_on_input_error
from mara.files import atomic_path
from mara.learning.rollout import Course
from mara.learning.train import train_mat
from mara.simulator.cluster import Cluster
from mara.simulator.progress import log_progress
from mara.stages.arguments import read_settings, seed_for, stage_parser
from mara.stages.checkpoints import checkpoint_path
from mara.stages.tuned import read_index
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


class TrainMatSettings(Section):
    """What a training depends on."""

    mat: MatSettings
    clusters: list[ClusterSettings]
    """The cluster of each course, in the order of ``--traces``."""


def main() -> None:
    """Write the trained policy and its training log."""
    parser = stage_parser(__doc__)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--traces", nargs="+", type=Path, required=True, help="one a course")
    parser.add_argument("--indices", nargs="+", type=Path, required=True, help="tuned index of each course")
    parser.add_argument("--forecasts", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--training-log", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    settings = read_settings(TrainMatSettings, arguments.settings)
    checkpoint = checkpoint_path(
        arguments.checkpoints,
        ["mara.learning.train"],
        [arguments.settings, str(arguments.seed)],
        [arguments.pool, arguments.forecasts, *arguments.traces, *arguments.indices],
    )
    pool, forecasts = TaskPool.load(arguments.pool), ForecastTable.load(arguments.forecasts)
    progress = log_progress(pool, load_corpus())
    courses = []
    for trace, index, cluster in zip(arguments.traces, arguments.indices, settings.clusters, strict=True):
        weights = read_index(index)
        course = Course(Trace.load(trace), pool, Cluster.of(cluster), forecasts, weights, progress)
        courses.append(course)
    with atomic_path(arguments.training_log) as log:
        seed = seed_for(arguments.seed, "train mat")
        policy = train_mat(courses, settings.mat, seed, log, checkpoint)
        policy.save(arguments.output)
    checkpoint.unlink(missing_ok=True)


if __name__ == "__main__":
    exit_on_input_error(main)
