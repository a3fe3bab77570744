"""What every format is read into: named columns of numbers, each with the rows that have it.

Logs have gaps (a validation loss every tenth row), so a column keeps the rows in which it was written and
their values; a value that was written as NaN is there, one that was not written is not.

Shapes: V values of a column, R rows.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mara.errors import InputError

MAX_VALUES = 16_000_000
"""Numbers that are read from one log, 16 bytes each."""
MAX_COLUMNS = 20_000
"""Names of columns in one log."""
MISSING = frozenset({"", "-", "--", "na", "n/a", "none", "null", "#n/a"})
"""What stands for "not written", in small letters."""


@dataclass
class Column:
    """V numbers and the rows they stand in."""

    rows: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    wrong: tuple[int, str] | None = None
    """Line and text of the first cell that is no number."""
    wrong_count: int = 0

    def as_arrays(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Rows (V,) and values (V,)."""
        return np.array(self.rows, dtype=np.int64), np.array(self.values, dtype=np.float64)


class Table:
    """The columns of one log, filled cell by cell; a row's second value for a column replaces the first.

    Attributes:
        columns: by name, in the order in which they appeared.
        notes: what was left out, in sentences.
        line_name: what a row's place is called: line, record or entry.
    """

    def __init__(self, path: Path, line_name: str = "line") -> None:
        self.path = path
        self.columns: dict[str, Column] = {}
        self.notes: list[str] = []
        self.line_name = line_name
        self.lines = array("q")
        self._values = 0

    @property
    def rows(self) -> int:
        """Rows begun so far."""
        return len(self.lines)

    def next_row(self, line: int) -> None:
        """Begin a row that stands in a line of the file."""
        self.lines.append(line)
        self._count()

    def put(self, name: str, value: float) -> None:
        """Set a number of the newest row."""
        column = self._column(name)
        row = len(self.lines) - 1
        if column.rows and column.rows[-1] == row:
            column.values[-1] = value
            return
        column.rows.append(row)
        column.values.append(value)
        self._count()

    def put_text(self, name: str, text: str, decimal_comma: bool = False) -> None:
        """Set a cell of the newest row from text; empty ones stay unwritten, wrong ones are remembered."""
        value = number(text, decimal_comma)
        if value is not None:
            self.put(name, value)
        elif text.strip().lower() not in MISSING:
            column = self._column(name)
            column.wrong = column.wrong or (self.lines[-1], text.strip()[:40])
            column.wrong_count += 1

    def _column(self, name: str) -> Column:
        column = self.columns.get(name)
        if column is None:
            if len(self.columns) >= MAX_COLUMNS:
                raise InputError(f"{self.path}: more than {MAX_COLUMNS} columns; a log has a few names")
            column = self.columns[name] = Column()
        return column

    def _count(self) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise InputError(
                f"{self.path}: more than {MAX_VALUES:,} numbers; keep only the columns and rows needed"
            )


def number(text: str, decimal_comma: bool = False) -> float | None:
    """The number that a text writes, None if it writes none; ``1_000`` is none, ``nan`` and ``inf`` are.

    With ``decimal_comma``, ``0,5`` is a half; without it, it is no number.
    """
    cell = text.strip()
    if decimal_comma and cell.count(",") == 1 and "." not in cell:
        cell = cell.replace(",", ".")
    if not cell.isascii() or "_" in cell:
        return None
    try:
        return float(cell)
    except ValueError:
        return None
