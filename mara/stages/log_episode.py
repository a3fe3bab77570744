"""Log one episode under LARA and under MARA, for a picture of both schedules side by side."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mara.allocators.mat.log import log_episode
from mara.allocators.mat.policy import MatPolicy
from mara.allocators.registry import allocator, make_policy
from mara.errors import exit_on_input_error
from mara.files import atomic_path
from mara.simulator.cluster import Cluster
from mara.simulator.events import node_slots, record_events
from mara.stages.arguments import read_settings, stage_parser
from mara.stages.simulate import SimulateSettings
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace

EPISODE = 0
"""The first one: not picked by result."""


def main() -> None:
    """Write who ran where (one row a busy node-slot) and what became of the tasks."""
    parser = stage_parser(__doc__)
    for name in ("pool", "trace", "lara-forecasts", "mara-forecasts", "policy", "events", "tasks"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(SimulateSettings, arguments.settings)
    pool, trace = TaskPool.load(arguments.pool), Trace.load(arguments.trace)
    cluster = Cluster.of(settings.cluster)
    wls = ForecastTable.load(arguments.lara_forecasts)
    lara = make_policy("lara", allocator("lara").weights.model_validate(settings.weights), wls, cluster)
    log = record_events(trace, pool, cluster, lara, wls, EPISODE)
    ends = log[log["kind"].isin(["complete", "miss"])].sort_values("task")
    episode = slice(int(trace.offset[EPISODE]), int(trace.offset[EPISODE + 1]))
    common = {
        "task": range(episode.stop - episode.start),
        "family": pool.family[trace.template[episode]],
        "arrival": trace.arrival[episode],
        "deadline": trace.deadline[episode],
    }
    completed = (ends["kind"] == "complete").to_numpy()
    lara_tasks = pd.DataFrame(
        {"method": "lara", **common, "completed": completed, "finish": ends["slot"] - 1}
    )
    policy, flow = MatPolicy.load(arguments.policy), ForecastTable.load(arguments.mara_forecasts)
    slots, outcome = log_episode(policy, trace, pool, cluster, flow, EPISODE)
    mara_tasks = pd.DataFrame(
        {"method": "mara", **common, "completed": outcome.completed, "finish": outcome.finish}
    )
    tables = (
        (
            arguments.events,
            pd.concat([node_slots(log).assign(method="lara"), slots.assign(method="mara")]),
        ),
        (arguments.tasks, pd.concat([lara_tasks, mara_tasks])),
    )
    for path, table in tables:
        with atomic_path(path) as temporary:
            table.to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
