"""Judge the published claims from the tables of results, and list where our method loses."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pandas as pd

from mara.config.evaluation import EvaluationSettings
from mara.errors import InputError, exit_on_input_error
from mara.evaluation.claims import Tables, judge, losses
from mara.files import atomic_path
from mara.stages.arguments import read_settings, stage_parser


def read_table(folder: Path, name: str) -> pd.DataFrame:
    """Read one table of results; one without rows is an empty frame."""
    path = folder / f"{name}.csv"
    try:
        return pd.read_csv(path, dtype={"train_seed": str})
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); run the tables' rules first") from None


def main() -> None:
    """Write ``claims.csv`` and ``losses.csv``."""
    parser = stage_parser(__doc__)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--claims", type=Path, required=True)
    parser.add_argument("--losses", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(EvaluationSettings, arguments.settings)
    evidence = Tables(**{field.name: read_table(arguments.tables, field.name) for field in fields(Tables)})
    with atomic_path(arguments.claims) as temporary:
        judge(evidence, settings).to_csv(temporary, index=False)
    with atomic_path(arguments.losses) as temporary:
        losses(read_table(arguments.tables, "comparisons")).to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
