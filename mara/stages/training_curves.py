"""Join the training logs of the learned parts into two long tables, one row a measured value."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from mara.errors import exit_on_input_error
from mara.files import atomic_path


def long_table(files: list[Path], run_of: Callable[[Path], str], fixed: list[str]) -> pd.DataFrame:
    """Stack logs with one column a metric into columns run, the fixed ones, metric and value."""
    parts = []
    for file in files:
        log = pd.read_csv(file)
        part = log.melt(id_vars=fixed, var_name="metric", value_name="value").dropna(subset="value")
        part.insert(0, "run", run_of(file))
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def main() -> None:
    """Write ``training_flow.csv`` and ``training_mat.csv``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flow", nargs="+", type=Path, required=True, help=".../<predictor>/training.csv")
    parser.add_argument("--mat", nargs="+", type=Path, required=True, help=".../seed<n>/training.csv")
    parser.add_argument("--flow-table", type=Path, required=True)
    parser.add_argument("--mat-table", type=Path, required=True)
    arguments = parser.parse_args()
    flow = long_table(arguments.flow, lambda file: file.parent.name, ["step"])
    mat = long_table(arguments.mat, lambda file: file.parent.name.removeprefix("seed"), ["phase", "step"])
    for path, table in ((arguments.flow_table, flow), (arguments.mat_table, mat)):
        with atomic_path(path) as temporary:
            table.to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
