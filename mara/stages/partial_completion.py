"""Completion from the runs that are there, while others are still missing."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pandas as pd

from mara.config.evaluation import EvaluationSettings
from mara.errors import InputError, exit_on_input_error
from mara.evaluation.completion import completion_rows
from mara.evaluation.outcomes import PairedOutcomes, Setting
from mara.files import atomic_path
from mara.stages.arguments import read_settings, stage_parser
from mara.stages.evaluate_setting import parts_of, read_outcome
from mara.workload.tasks import TaskPool


def main() -> None:
    """Write one row a setting and method, with the training seeds so far."""
    parser = stage_parser(__doc__)
    parser.add_argument("--pools", type=Path, required=True, help="folder of the task pools")
    parser.add_argument(
        "--runs",
        nargs="*",
        type=Path,
        required=True,
        help=".../POOL/SCENARIO/loadLOAD/METHOD/seedSEED.parquet",
    )
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(EvaluationSettings, arguments.settings)
    if not arguments.runs:
        raise InputError("no run has been made yet: there is nothing to sum up")
    by_setting: dict[tuple[str, str, str], list[Path]] = defaultdict(list)
    for path in sorted(arguments.runs):
        pool, scenario, load = path.parts[-5:-2]
        by_setting[pool, scenario, load].append(path)
    tables = []
    for (name, scenario, load), paths in by_setting.items():
        pool = TaskPool.load(arguments.pools / f"{name}.parquet")
        runs: dict[str, dict[int, pd.DataFrame]] = defaultdict(dict)
        for path in paths:
            runs[path.parts[-2]][int(path.stem.removeprefix("seed"))] = read_outcome(path, pool)
        setting = Setting(scenario, name, float(load.removeprefix("load")))
        parts = {method: parts_of(method, settings.bound) for method in runs}
        # Methods are only listed, not compared; any of them may be missing still, the reference too.
        listed = settings.model_copy(update={"reference": next(iter(runs))})
        tables.append(completion_rows(PairedOutcomes(setting, runs, listed), parts))
    table = pd.concat(tables, ignore_index=True).rename(columns={"suite": "scenario"})
    table = table.drop(
        columns=[name for name in table.columns if str(name).startswith(("difference", "diff_"))]
    )
    with atomic_path(arguments.output) as temporary:
        table.to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
