"""Compare the methods of one suite in one setting: completion, differences, gap closed, effects, fairness."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pandas as pd

from mara.config.evaluation import EvaluationSettings
from mara.config.methods import MAT_VARIANTS, METHODS
from mara.errors import exit_on_input_error
from mara.evaluation.ablation import ablation_rows
from mara.evaluation.attribution import effect_rows
from mara.evaluation.completion import Parts, comparison_rows, completion_rows, gap_rows
from mara.evaluation.fairness import fairness_rows, group_rows
from mara.evaluation.history import history_rows
from mara.evaluation.outcomes import PairedOutcomes, Setting
from mara.files import atomic_path
from mara.stages.arguments import read_settings, stage_parser
from mara.workload.tasks import TaskPool

GAP_METHODS = ("mara", "index", "gittins", "lara_tuned", "lara_slope")
"""Methods whose share of the gap to the optimum is printed, where they were run."""

FAIRNESS_SUITES = ("in_distribution", "unseen_load", "held_out_family", "fairness")
"""Suites in which it is audited who is served."""


def read_outcome(path: Path, pool: TaskPool) -> pd.DataFrame:
    """Read what became of every task, with the curve group and family that its template has."""
    frame = pd.read_parquet(path)
    return frame.assign(group=pool.group[frame["template"]], family=pool.family[frame["template"]])


def parts_of(method: str, bound: str) -> Parts:
    """Predictor and allocator of a method."""
    if method == bound:
        return Parts("oracle", bound)
    row = METHODS[method]
    return Parts(row.predictor or "none", row.allocator)


def is_baseline(method: str, settings: EvaluationSettings) -> bool:
    """Whether a deployable method other than ours: neither bound, nor told the truth, nor a variant."""
    return (
        method not in (settings.method, settings.bound)
        and not method.startswith(f"{settings.method}_")
        and METHODS[method].predictor != "oracle"
        and METHODS[method].weights != "borrowed"
    )


def main() -> None:
    """Write one CSV a table into the output folder, each with the rows of this setting."""
    parser = stage_parser(__doc__)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--load", type=float, required=True)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument(
        "--run", nargs=3, action="append", required=True, metavar=("METHOD", "SEED", "OUTCOME")
    )
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(EvaluationSettings, arguments.settings)
    pool = TaskPool.load(arguments.pool)
    runs: dict[str, dict[int, pd.DataFrame]] = defaultdict(dict)
    for method, seed, path in arguments.run:
        runs[method][int(seed)] = read_outcome(Path(path), pool)
    parts = {method: parts_of(method, settings.bound) for method in runs}
    baselines = [method for method in runs if is_baseline(method, settings)]
    outcomes = PairedOutcomes(Setting(arguments.suite, arguments.workload, arguments.load), runs, settings)
    tables = {"completion": completion_rows(outcomes, parts)}
    if arguments.suite == "ablation":
        labels = {method: MAT_VARIANTS[method][0] for method in runs if method in MAT_VARIANTS}
        tables["ablation"] = ablation_rows(outcomes, parts, labels)
    elif arguments.suite == "attribution":
        tables["effects"] = effect_rows(outcomes, parts, settings.reference)
    elif arguments.suite == "history":
        tables["history"] = history_rows(outcomes)
    else:
        tables["comparisons"] = comparison_rows(outcomes, settings.method, baselines)
    if arguments.suite in FAIRNESS_SUITES:
        tables["fairness"] = fairness_rows(outcomes, runs, parts)
        tables["fairness_groups"] = group_rows(outcomes, runs)
    if settings.bound in runs:
        closing = [method for method in GAP_METHODS if method in runs]
        tables["gap"] = gap_rows(outcomes, closing, baselines)
    with atomic_path(arguments.output) as temporary:
        temporary.mkdir()
        for name, table in tables.items():
            table.to_csv(temporary / f"{name}.csv", index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
