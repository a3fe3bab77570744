"""Run a trained transformer on the episodes of one setting and keep what became of every task."""

from __future__ import annotations

from pathlib import Path

from mara.allocators.mat.policy import MatPolicy, run_policy
from mara.config.methods import METHODS
from mara.errors import exit_on_input_error
from mara.simulator.cluster import Cluster
from mara.stages.arguments import read_settings, stage_parser
from mara.stages.simulate import SimulateSettings, read_forecasts
from mara.stages.tuned import read_index
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace


def main() -> None:
    """Write the outcome, one row a task (Parquet)."""
    parser = stage_parser(__doc__)
    parser.add_argument("--method", choices=sorted(METHODS), required=True)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--trace", type=Path, required=True)
    parser.add_argument("--forecasts", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True, help="trained policy")
    parser.add_argument("--index", type=Path, required=True, help="tuned index of the setting (JSON)")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(SimulateSettings, arguments.settings)
    outcome = run_policy(
        MatPolicy.load(arguments.weights),
        Trace.load(arguments.trace),
        TaskPool.load(arguments.pool),
        Cluster.of(settings.cluster),
        read_forecasts(arguments.forecasts, settings, arguments.seed),
        arguments.seed,
        weights=read_index(arguments.index),
    )
    outcome.save(arguments.output)


if __name__ == "__main__":
    exit_on_input_error(main)
