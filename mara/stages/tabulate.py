"""Forecast the remaining demand of every task of a pool after every unit it may have received."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mara.command_line import LineParser
from mara.curves.corpus import load_corpus, read_curves
from mara.errors import InputError, exit_on_input_error
from mara.predictors.registry import load_predictor
from mara.predictors.table import tabulate
from mara.workload.tasks import TaskPool


def main() -> None:
    """Write the forecast table (a folder of arrays)."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--predictor", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--curves", type=Path, help="file of an own family, in place of the recorded corpus")
    parser.add_argument("--refresh", type=float, default=0.0, help="share by which the units grow in between")
    parser.add_argument("--earlier-runs", type=int, help="runs that are known at most")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    pool = TaskPool.load(arguments.pool)
    families = np.unique(pool.family)
    if len(families) != 1:
        raise InputError(f"{arguments.pool}: holds {len(families)} families; a pool must be of one")
    predictor = load_predictor(arguments.predictor, arguments.model)
    corpus = read_curves(arguments.curves, str(families[0])) if arguments.curves else load_corpus()
    corpus = corpus.select(np.isin(corpus.group, pool.group))
    table = tabulate(predictor, pool, corpus, refresh=arguments.refresh, earlier_runs=arguments.earlier_runs)
    table.save(arguments.output)


if __name__ == "__main__":
    exit_on_input_error(main)
