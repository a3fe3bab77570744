"""Bind claims, figures and tables into one self-contained page and a summary in Markdown."""

from __future__ import annotations

from pathlib import Path

from mara.command_line import LineParser
from mara.errors import exit_on_input_error
from mara.report.page import write_report


def main() -> None:
    """Write the page and the summary."""
    parser = LineParser(description=__doc__)
    for name in ("tables", "figures", "provenance", "settings-file", "page", "summary"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    arguments = parser.parse_args()
    write_report(
        arguments.tables,
        arguments.figures,
        arguments.provenance,
        arguments.settings_file,
        arguments.page,
        arguments.summary,
    )


if __name__ == "__main__":
    exit_on_input_error(main)
