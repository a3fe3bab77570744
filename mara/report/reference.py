"""Make a run the one that the documentation speaks of.

``python -m mara.report.reference [--results results] [--repository .]`` keeps the run's tables in
``docs/reference/``, with which ``mara compare`` holds other runs against it, and writes from them the table of
claims in the README and ``docs/results.md``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from mara.command_line import LineParser
from mara.errors import InputError, exit_on_input_error
from mara.files import atomic_path
from mara.report.markdown import Tables, claims_table, results_page
from mara.report.tables import read_tables

KEPT = (
    "ablation",
    "attribution",
    "claims",
    "comparisons",
    "completion",
    "corpus",
    "effects",
    "fairness",
    "flow_variants",
    "gap",
    "history",
    "losses",
    "prediction",
    "prediction_cost",
    "prediction_differences",
    "runtime",
    "shaping",
    "stress",
)
"""The tables that are kept: those of results, without events, drawn points and single groups."""

PICTURES = ("completion_training", "prediction_error")
BEGIN, END = "<!-- claims of docs/reference -->", "<!-- end of claims -->"


def publish(results: Path, repository: Path) -> None:
    """Keep the tables of ``results`` in the documentation of ``repository`` and write its pages from them.

    Raises:
        InputError: the results lack a table or a picture, or the README has no place for the claims.
    """
    sources = [results / "tables" / f"{name}.csv" for name in KEPT]
    sources += [results / "provenance.json"]
    pictures = [results / "figures" / f"{name}.png" for name in PICTURES]
    for source in (*sources, *pictures):
        if not source.is_file():
            raise InputError(f"{source}: no such file; give the results folder of a whole run")
    docs = repository / "docs"
    readme = repository / "README.md"
    text = with_claims(readme.read_text(encoding="utf-8"), read_tables(results / "tables"), readme)
    for source in sources:
        _copy(source, docs / "reference" / source.relative_to(results))
    for picture in pictures:
        _copy(picture, docs / "images" / picture.name)
    _write(docs / "results.md", reference_page(read_tables(docs / "reference" / "tables")))
    _write(readme, text)


def reference_page(tables: Tables) -> str:
    """The text of ``docs/results.md``: every section, under a line that says where the numbers stand."""
    title, _, sections = results_page(tables).partition("\n\n")
    about = (
        "Figures of the run that the [README](../README.md) speaks of, written from its tables, which "
        "[docs/reference/tables](reference/tables) holds as CSV; `mara compare docs/reference results` compares your "
        "own run with it. `results/report.html` of a run has the same with pictures."
    )
    return f"{title}\n\n{about}\n\n{sections}"


def with_claims(readme: str, tables: Tables, path: Path) -> str:
    """The README's text with the table of claims between its two marks.

    Raises:
        InputError: a mark is missing; ``path`` is named.
    """
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{path}: the lines {BEGIN} and {END} are needed, around the table of claims")
    return f"{before}{BEGIN}\n{claims_table(tables)}\n{END}{after}"


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(target) as path:
        shutil.copyfile(source, path)


def _write(target: Path, text: str) -> None:
    with atomic_path(target) as path:
        path.write_text(text, encoding="utf-8")


def main() -> None:
    """Publish a results folder."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--repository", type=Path, default=Path())
    arguments = parser.parse_args()
    publish(arguments.results, arguments.repository)


if __name__ == "__main__":
    exit_on_input_error(main)
