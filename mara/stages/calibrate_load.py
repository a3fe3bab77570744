"""Find the training load: the arrival rate at which faithful LARA completes the published share of tasks."""

from __future__ import annotations

import json
from pathlib import Path

from mara.allocators.tuning import calibrate_rate
from mara.config.allocators import LaraWeights
from mara.config.base import Section
from mara.config.cluster import ClusterSettings
from mara.config.workload import ArrivalSettings
from mara.errors import exit_on_input_error
from mara.files import atomic_path
from mara.simulator.cluster import Cluster
from mara.stages.arguments import read_settings, seed_for, stage_parser
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool


class LoadSettings(Section):
    """What the training load depends on."""

    arrivals: ArrivalSettings
    cluster: ClusterSettings
    lara: LaraWeights
    lara_completion: float
    episodes: int


def main() -> None:
    """Write the rate, and the completion measured there, as JSON."""
    parser = stage_parser(__doc__)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--forecasts", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(LoadSettings, arguments.settings)
    rate, completion = calibrate_rate(
        settings.lara_completion,
        TaskPool.load(arguments.pool),
        settings.arrivals,
        Cluster.of(settings.cluster),
        ForecastTable.load(arguments.forecasts),
        settings.episodes,
        seed_for(arguments.seed, "training load"),
        settings.lara,
    )
    result = {
        "rate": rate,
        "lara_completion": completion,
        "asked_completion": settings.lara_completion,
        "episodes": settings.episodes,
    }
    with atomic_path(arguments.output) as temporary:
        temporary.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    exit_on_input_error(main)
