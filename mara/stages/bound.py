"""Compute the clairvoyant optimum of the first episodes of one setting."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from mara.config.base import Section
from mara.config.cluster import ClusterSettings
from mara.errors import exit_on_input_error
from mara.files import atomic_path
from mara.simulator.clairvoyant import bound, plan_outcome
from mara.simulator.cluster import Cluster
from mara.stages.arguments import read_settings, stage_parser
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


class BoundSettings(Section):
    """What the optimum depends on."""

    cluster: ClusterSettings
    episodes: int


def main() -> None:
    """Write the optimal plan as an outcome (Parquet) and its certificate (JSON)."""
    parser = stage_parser(__doc__)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--trace", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--certificate", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(BoundSettings, arguments.settings)
    pool, cluster = TaskPool.load(arguments.pool), Cluster.of(settings.cluster)
    trace = Trace.load(arguments.trace)
    trace = trace.select(np.arange(min(settings.episodes, trace.episodes)))
    found = bound(trace, pool, cluster)
    certificate = {
        "episodes": trace.episodes,
        "exact": found.exact,
        "gap": found.gap,
        "upper_completion_rate": found.completion_rate,
    }
    with atomic_path(arguments.certificate) as temporary:
        temporary.write_text(json.dumps(certificate, indent=2) + "\n", encoding="utf-8")
    plan_outcome(trace, pool, cluster, found).save(arguments.output)


if __name__ == "__main__":
    exit_on_input_error(main)
