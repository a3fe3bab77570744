"""Join the forecasts of the first templates of several pools, in the order in which the pools are joined."""

from __future__ import annotations

from pathlib import Path

from mara.command_line import LineParser
from mara.errors import exit_on_input_error
from mara.workload.forecast_table import ForecastTable, join_tables


def main() -> None:
    """Write the forecast table (a folder of arrays)."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--forecasts", type=Path, nargs="+", required=True)
    parser.add_argument("--templates", type=int, required=True, help="of each pool")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    tables = [ForecastTable.load(path) for path in arguments.forecasts]
    join_tables(tables, arguments.templates).save(arguments.output)


if __name__ == "__main__":
    exit_on_input_error(main)
