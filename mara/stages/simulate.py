"""Run one compiled method on the episodes of one setting and keep what became of every task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mara.allocators.registry import allocator, make_policy
from mara.config.base import Section
from mara.config.cluster import ClusterSettings
from mara.config.distortion import ForecastSettings
from mara.config.methods import METHODS
from mara.curves.corpus import load_corpus, read_curves
from mara.errors import exit_on_input_error
from mara.simulator.cluster import Cluster
from mara.simulator.simulate import simulate
from mara.stages.arguments import generator_for, read_settings, stage_parser
from mara.workload.distortion import distort
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


class SimulateSettings(Section):
    """What a simulation depends on."""

    cluster: ClusterSettings
    weights: dict[str, Any]
    """The allocator's weights; those that a file of tuned ones names are taken from there."""
    forecasts: ForecastSettings = ForecastSettings()
    """How the forecasts are made wrong, if they are."""


def read_forecasts(path: Path, settings: SimulateSettings, seed: int) -> ForecastTable:
    """Read a forecast table as allocators get to see it."""
    return distort(ForecastTable.load(path), settings.forecasts, generator_for(seed, "distortion"))


def main() -> None:
    """Write the outcome, one row a task (Parquet)."""
    parser = stage_parser(__doc__)
    parser.add_argument("--method", choices=sorted(METHODS), required=True)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--trace", type=Path, required=True)
    parser.add_argument("--forecasts", type=Path)
    parser.add_argument("--weights", type=Path, help="tuned weights (JSON)")
    parser.add_argument("--curves", type=Path, help="file of an own family, in place of the recorded corpus")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(SimulateSettings, arguments.settings)
    weights = settings.weights
    if arguments.weights:
        weights = weights | json.loads(arguments.weights.read_text(encoding="utf-8"))["weights"]
    name = METHODS[arguments.method].allocator
    pool, cluster = TaskPool.load(arguments.pool), Cluster.of(settings.cluster)
    forecasts = None
    if arguments.forecasts:
        forecasts = read_forecasts(arguments.forecasts, settings, arguments.seed)
    corpus = read_curves(arguments.curves, str(pool.family[0])) if arguments.curves else load_corpus()
    policy = make_policy(
        name, allocator(name).weights.model_validate(weights), forecasts, cluster, pool, corpus
    )
    outcome = simulate(Trace.load(arguments.trace), pool, cluster, policy, forecasts, arguments.seed)
    outcome.save(arguments.output)


if __name__ == "__main__":
    exit_on_input_error(main)
