"""Join the training logs of the learned parts into two long tables, one row a measured value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from mara.command_line import LineParser
from mara.errors import exit_on_input_error
from mara.files import atomic_path


def long_table(
    files: list[Path], names: Mapping[str, Callable[[Path], str]], fixed: list[str]
) -> pd.DataFrame:
    """Stack logs with one column a metric into columns named after the file, the fixed ones, metric and value."""
    parts = []
    for file in files:
        log = pd.read_csv(file)
        part = log.melt(id_vars=fixed, var_name="metric", value_name="value").dropna(subset="value")
        for at, (name, of) in enumerate(names.items()):
            part.insert(at, name, of(file))
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def main() -> None:
    """Write ``training_flow.csv`` and ``training_mat.csv``."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--flow", nargs="+", type=Path, required=True, help=".../<predictor>/training.csv")
    parser.add_argument(
        "--mat", nargs="+", type=Path, required=True, help=".../<method>/seed<n>/training.csv"
    )
    parser.add_argument("--flow-table", type=Path, required=True)
    parser.add_argument("--mat-table", type=Path, required=True)
    arguments = parser.parse_args()
    flow = long_table(arguments.flow, {"run": lambda file: file.parent.name}, ["step"])
    names = {
        "method": lambda file: file.parent.parent.name,
        "run": lambda file: file.parent.name.removeprefix("seed"),
    }
    mat = long_table(arguments.mat, names, ["phase", "step"])
    for path, table in ((arguments.flow_table, flow), (arguments.mat_table, mat)):
        with atomic_path(path) as temporary:
            table.to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
