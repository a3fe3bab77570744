"""Tune the weights of one method's allocator on training episodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mara.allocators.registry import allocator
from mara.allocators.tuning import tune
from mara.config.allocators import TunerSettings
from mara.config.base import Section
from mara.config.cluster import ClusterSettings
from mara.config.methods import METHODS
from mara.curves.corpus import load_corpus
from mara.errors import exit_on_input_error
from mara.files import atomic_path
from mara.simulator.cluster import Cluster
from mara.stages.arguments import generator_for, read_settings, stage_parser
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


class TuneSettings(Section):
    """What a tuning depends on."""

    cluster: ClusterSettings
    weights: dict[str, Any]
    """Where the search starts."""
    tuner: TunerSettings
    episodes: int
    """How many of the training episodes are used."""


def main() -> None:
    """Write the weights found, and the completion before and after on the held-back episodes, as JSON."""
    parser = stage_parser(__doc__)
    parser.add_argument("--method", choices=sorted(METHODS), required=True)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--trace", type=Path, required=True)
    parser.add_argument("--forecasts", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(TuneSettings, arguments.settings)
    name = METHODS[arguments.method].allocator
    trace = Trace.load(arguments.trace)
    found = tune(
        name,
        allocator(name).weights.model_validate(settings.weights),
        trace.select(np.arange(min(settings.episodes, trace.episodes))),
        TaskPool.load(arguments.pool),
        Cluster.of(settings.cluster),
        settings.tuner,
        generator_for(arguments.seed, "tune", arguments.method),
        ForecastTable.load(arguments.forecasts) if arguments.forecasts else None,
        load_corpus(),
    )
    result = {
        "weights": found.weights.model_dump(mode="json"),
        "default_rate": found.default_rate,
        "tuned_rate": found.tuned_rate,
        "history": found.history,
    }
    with atomic_path(arguments.output) as temporary:
        temporary.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    exit_on_input_error(main)
