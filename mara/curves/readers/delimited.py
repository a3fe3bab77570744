"""Tables of delimited text: Keras' CSVLogger, Lightning's metrics.csv, YOLO's results.csv, exports and others.

The delimiter is the one of comma, semicolon, tab and bar that the header has most of. Names are stripped of
padding. A decimal comma is read where the delimiter is another character and no number of the file has a
point. A header that is repeated by an appended run, and blank lines, are skipped. A table in long form
(columns key or metric, value, step; MLflow writes it) becomes one column a key.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mara.curves.readers.files import read_lines
from mara.curves.readers.table import Table, number
from mara.errors import InputError

DELIMITERS = ",;\t|"
KEY_NAMES = ("key", "metric", "tag", "metric_name", "name")
_COMMA_NUMBER = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
_POINT_NUMBER = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")


def read_delimited(path: Path) -> Table:
    """Read a table with a header.

    Raises:
        InputError: naming the line, for a missing or double name, a row of another width than the header,
            or a file that mixes decimal commas and points.
    """
    lines = read_lines(path)
    first, header_line = _first_line(lines, path)
    delimiter = max(DELIMITERS, key=header_line.count)
    (header,) = _split(iter([(first, header_line)]), delimiter, path)
    names = _names(header[1], path, first)
    _refuse_runs_table(names, path, first)
    table = Table(path)
    columns = _Cells(table, names, delimiter)
    short = 0
    for line, cells in _split(lines, delimiter, path):
        if not any(cell.strip() for cell in cells) or [cell.strip() for cell in cells] == names:
            continue
        while len(cells) > len(names) and not cells[-1].strip():
            cells = cells[:-1]
        if len(cells) > len(names):
            raise InputError(
                f"{path}: line {line}: {len(cells)} cells under {len(names)} names; "
                "expected as many as in the header"
            )
        if len(cells) < len(names):
            short = line
        columns.add(line, cells)
    if short:
        table.notes.append(
            f"line {short} has fewer cells than the header; what is missing counts as not logged"
        )
    if table.rows == 0:
        raise InputError(f"{path}: a header and no rows; has the run logged anything yet?")
    columns.finish()
    return table


def _first_line(lines: Iterator[tuple[int, str]], path: Path) -> tuple[int, str]:
    for line, text in lines:
        if text.strip() and not text.startswith("#"):
            return line, text
    raise InputError(f"{path}: holds nothing but blank lines; expected a header and rows")


def _split(lines: Iterator[tuple[int, str]], delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Cells of every line; a quoted cell may span lines, and the last of them is the one that is named."""
    newest = 0

    def feed() -> Iterator[str]:
        nonlocal newest
        for line, text in lines:
            newest = line
            yield text + "\n"

    rows = csv.reader(feed(), delimiter=delimiter, skipinitialspace=True, strict=True)
    while True:
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{path}: line {newest}: {error}; is a quotation mark left open?") from None
        yield newest, cells


def _names(cells: Sequence[str], path: Path, line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    while len(names) > 1 and not names[-1]:
        names.pop()
    if len(names) > 1 and not names[0]:
        names[0] = "index"  # pandas writes its row numbers under no name
    if all(number(name, True) is not None for name in names):
        raise InputError(f"{path}: line {line}: numbers where the header should be; give each column a name")
    seen: set[str] = set()
    for place, name in enumerate(names):
        if not name:
            raise InputError(f"{path}: line {line}: column {place + 1} has no name")
        if name in seen:
            raise InputError(f"{path}: line {line}: two columns are named {name!r}; names must differ")
        seen.add(name)
    return names


def _refuse_runs_table(names: Sequence[str], path: Path, line: int) -> None:
    """Refuse W&B's table of runs, as which many runs' last values would be read as the points of one."""
    small = {name.lower() for name in names}
    if "name" in small and ({"_wandb", "_timestamp", "_runtime"} & small or {"state", "runtime"} <= small):
        raise InputError(
            f"{path}: line {line}: a table with a row a run, as W&B exports of all runs; expected the history of one "
            "run (open its chart and export that as CSV)"
        )


class _Cells:
    """Puts rows of text into a table."""

    def __init__(self, table: Table, names: list[str], delimiter: str) -> None:
        self.table = table
        self.names = names
        self.commas = delimiter != ","
        self.first_comma = self.first_point = 0
        small = [name.lower() for name in names]
        self.key = next((small.index(name) for name in KEY_NAMES if name in small), None)
        self.value = small.index("value") if "value" in small and self.key is not None else None

    def add(self, line: int, cells: Sequence[str]) -> None:
        """Put one row."""
        self.table.next_row(line)
        for place, (name, cell) in enumerate(zip(self.names, cells, strict=False)):
            if self.commas and cell:
                self._watch(line, cell)
            if self.value is not None and place in (self.key, self.value):
                continue
            self.table.put_text(name, cell, self.commas)
        if self.value is not None and self.key is not None and len(cells) > max(self.key, self.value):
            self.table.put_text(cells[self.key].strip(), cells[self.value], self.commas)

    def _watch(self, line: int, cell: str) -> None:
        if not self.first_comma and _COMMA_NUMBER.fullmatch(cell):
            self.first_comma = line
        elif not self.first_point and _POINT_NUMBER.fullmatch(cell):
            self.first_point = line

    def finish(self) -> None:
        """Refuse a file that mixes commas and points, in which 1,234 could be either number."""
        if self.first_comma and self.first_point:
            raise InputError(
                f"{self.table.path}: line {self.first_comma} has a number with a comma, line "
                f"{self.first_point} one with a point; write decimals one way and thousands without a mark"
            )
        if self.first_comma:
            self.table.notes.append("commas are read as decimal points")
