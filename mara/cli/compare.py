"""``mara compare``: what changed between two runs of the study."""

from __future__ import annotations

from pathlib import Path

from mara.cli.arguments import command_parser, print_json
from mara.errors import InputError

DESCRIPTION = """\
Compare the tables of two results folders, row by row: every published quantity, its difference with an
interval, whether the two intervals overlap, and which verdicts turned. Run the study with other settings or
another version into a folder of its own first (snakemake --directory)."""
EXAMPLE = """\
mara compare results other/results
mara compare results other/results --limit 5 --json"""


def main(words: list[str]) -> None:
    """Compare, print.

    Raises:
        InputError: for a folder without tables, or twice the same folder.
    """
    parser = command_parser("compare", DESCRIPTION, EXAMPLE)
    parser.add_argument("first", type=Path, help="results folder")
    parser.add_argument("second", type=Path, help="the other results folder")
    parser.add_argument("--limit", type=int, default=20, help="rows of each kind to print (default: 20)")
    arguments = parser.parse_args(words)
    if arguments.limit < 0:
        raise InputError(f"--limit {arguments.limit}: expected 0 or more rows")
    if arguments.first.resolve() == arguments.second.resolve():
        raise InputError(f"{arguments.second}: given twice; name the results folders of two runs")

    from mara.evaluation.compare import compare_results

    found = compare_results(arguments.first, arguments.second)
    if arguments.json:
        print_json(
            {
                "compared": len(found.changes),
                "apart": len(found.apart),
                "changes": found.changes.to_dict("records"),
                "turned": found.turned.to_dict("records"),
                "unmatched": found.unmatched.to_dict("records"),
            }
        )
    else:
        print(found.text(arguments.limit))
