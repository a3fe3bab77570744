"""Join the rows of all settings into the tables of results."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mara.command_line import LineParser
from mara.config.evaluation import SUITE_TABLES
from mara.errors import exit_on_input_error
from mara.evaluation.completion import adjust_within_suites
from mara.files import atomic_path

OWN_TABLES = {"attribution": "attribution", "stress": "stress"}
"""Suites whose completion rows form a table of their own; all others go into ``completion``."""


def main() -> None:
    """Write ``<table>.csv`` for every table of SUITE_TABLES; one without rows keeps its header only."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--settings-evaluated", nargs="+", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="folder of the tables")
    arguments = parser.parse_args()
    rows: dict[str, list[pd.DataFrame]] = {name: [] for name in SUITE_TABLES}
    for folder in arguments.settings_evaluated:
        suite = folder.parts[-3]
        for file in sorted(folder.glob("*.csv")):
            table = pd.read_csv(file, dtype={"train_seed": str})
            name = file.stem
            if name == "completion":
                if suite == "ablation":
                    continue
                name = OWN_TABLES.get(suite, name)
            rows[name].append(table)
    for name, parts in rows.items():
        table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        if name == "comparisons" and len(table):
            table = adjust_within_suites(table)
        with atomic_path(arguments.output / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
