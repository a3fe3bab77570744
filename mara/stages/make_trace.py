"""Draw the arrivals of a pool's tasks: the episodes of one setting."""

from __future__ import annotations

import json
from pathlib import Path

from mara.config.base import Section
from mara.config.cluster import ClusterSettings
from mara.config.workload import ArrivalSettings
from mara.errors import exit_on_input_error
from mara.files import atomic_path
from mara.simulator.cluster import Cluster
from mara.stages.arguments import generator_for, read_settings, stage_parser
from mara.workload.card import trace_card
from mara.workload.tasks import TaskPool
from mara.workload.trace import draw_weights, make_trace


class TraceSettings(Section):
    """What a trace depends on."""

    arrivals: ArrivalSettings
    cluster: ClusterSettings
    standard_cluster: ClusterSettings
    """The cluster of the training load: the rate is scaled by the ratio of the capacities."""
    slack: tuple[float, float] | None = None
    """Which tasks are drawn, by window over the time that their user went by."""
    mix: dict[str, float] | None = None
    """Shares of the families among the arrivals."""


def main() -> None:
    """Write the trace (Parquet) and its card (JSON)."""
    parser = stage_parser(__doc__)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--training-load", type=Path, required=True)
    parser.add_argument("--load", type=float, required=True, help="multiple of the training load's rate")
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--card", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(TraceSettings, arguments.settings)
    pool = TaskPool.load(arguments.pool)
    training_rate = json.loads(arguments.training_load.read_text(encoding="utf-8"))["rate"]
    capacity = float(Cluster.of(settings.cluster).speeds.sum())
    growth = capacity / float(Cluster.of(settings.standard_cluster).speeds.sum())
    rng = generator_for(arguments.seed, "trace", arguments.pool.stem)
    rate = training_rate * arguments.load * growth
    weight = draw_weights(pool, settings.slack, settings.mix)
    trace = make_trace(pool, settings.arrivals, rate, arguments.episodes, rng, weight)
    trace.save(arguments.output)
    with atomic_path(arguments.card) as temporary:
        card = trace_card(trace, pool, capacity)
        temporary.write_text(json.dumps(card, indent=2, default=str) + "\n", encoding="utf-8")


if __name__ == "__main__":
    exit_on_input_error(main)
