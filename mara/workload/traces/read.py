"""Read a cluster trace: find out its format, make jobs of its rows, and say which rows are bad and why.

`read_trace(path)` is all that most callers need. Files are read line by line; a trace of 100,000 jobs takes
about a second.

Shapes: J jobs.
"""

from __future__ import annotations

import csv
import math
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from mara.errors import InputError
from mara.workload.traces import alibaba, elasticflow, philly, plain, sacct, swf
from mara.workload.traces.rows import LATEST, BadRow, Format, Row

FORMATS: dict[str, tuple[Format, ...]] = {
    "swf": (swf.FORMAT,),
    "sacct": (sacct.FORMAT,),
    "elasticflow": (elasticflow.FORMAT,),
    "alibaba": (alibaba.HEADERLESS, alibaba.FORMAT),
    "philly": (philly.FORMAT,),
    "plain": (plain.FORMAT,),
}
"""Formats by name, in the order in which they are tried."""

MOST_JOBS = 2_000_000
LONGEST_LINE = 100_000
MOST_NODES = 1_000_000
LINES_KEPT = 5
"""Line numbers that are kept of each kind of bad row."""


@dataclass(frozen=True)
class BadRows:
    """The rows that were skipped for one reason: how many, and the first few line numbers."""

    reason: str
    count: int
    lines: tuple[int, ...]

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.lines) else ""
        place = "line" if self.count == 1 else "lines"
        rows = "row" if self.count == 1 else "rows"
        return f"{self.count} {rows}: {self.reason} ({place} {', '.join(map(str, self.lines))}{more})"


@dataclass(frozen=True)
class Jobs:
    """J jobs, sorted by submit time."""

    id: np.ndarray
    """(J,) str objects, unique."""
    group: np.ndarray
    """(J,) str objects: queue, user or model, whatever the format has; empty where it has none."""
    submit: np.ndarray
    """(J,) float64 seconds >= 0 (slots, if ``in_slots``)."""
    duration: np.ndarray
    """(J,) float64 > 0 on ``nodes`` nodes; NaN where durations were not asked for and are not given."""
    deadline: np.ndarray
    """(J,) float64 on the clock of submit; NaN where there is none."""
    nodes: np.ndarray
    """(J,) int64 >= 1."""
    line: np.ndarray
    """(J,) int64 line in the file."""
    format: str
    """Name of the file's format."""
    in_slots: bool
    """Whether the file's times are slots rather than seconds."""
    reordered: bool
    """Whether the file was not sorted by submit time."""
    bad: tuple[BadRows, ...]
    """What was skipped."""

    def __len__(self) -> int:
        return len(self.submit)

    @property
    def skipped(self) -> int:
        """Number of rows that were skipped."""
        return sum(rows.count for rows in self.bad)

    def notes(self) -> list[str]:
        """What a reader should know of the file, a line each."""
        lines = ["rows were not sorted by submit time; sorted"] if self.reordered else []
        return lines + [f"skipped {rows}" for rows in self.bad]


def read_trace(
    path: Path | str,
    format: str | None = None,
    strict: bool = False,
    most_nodes: int | None = None,
    durations: bool = True,
) -> Jobs:
    """Read the jobs of a trace.

    Args:
        path: a text file.
        format: a key of ``FORMATS``; None to find out from the first row.
        strict: stop at the first bad row instead of skipping it.
        most_nodes: jobs that need more nodes than this are bad rows.
        durations: whether a job needs a duration (to replay submit times alone it does not).

    Raises:
        InputError: for a file that is not a trace or has no usable job, and, if ``strict``, for a bad row;
            in one line with the line number.
    """
    path = Path(path)
    if format is not None and format not in FORMATS:
        raise InputError(f"trace format {format!r}: unknown; known are {', '.join(FORMATS)}")
    with _open(path) as stream:
        first_line, first = _first_row(path, stream)
        known = _format_of(path, first, format)
        stream.seek(0)
        collector = _Collector(path, strict, MOST_NODES if most_nodes is None else most_nodes, durations)
        parse = known.parser([cell.strip().lower() for cell in first])
        for line, cells in _rows(path, stream, _delimiter(first_line)):
            if line < 1 or (known.header and cells == first and not collector.rows):
                continue
            collector.rows += 1
            try:
                collector.take(line, parse(cells))
            except BadRow as problem:
                collector.refuse(line, str(problem))
    lower = [cell.strip().lower() for cell in first]
    in_slots = known is plain.FORMAT and "demand" in lower and "duration" not in lower
    return collector.jobs(known.name, in_slots)


class _Collector:
    """Takes rows one by one, checks them, and keeps the jobs and the reasons of refusals."""

    def __init__(self, path: Path, strict: bool, most_nodes: int, durations: bool) -> None:
        self.path, self.strict, self.most_nodes, self.durations = path, strict, most_nodes, durations
        self.rows = 0
        self.columns = [array("d") for _ in range(5)]  # submit, duration, deadline, nodes, line
        self.ids: dict[str, int] = {}
        self.groups: list[str] = []
        self.refused: dict[str, list[int]] = {}
        self.counts: dict[str, int] = {}

    def take(self, line: int, row: Row | None) -> None:
        """Keep the job of a row.

        Raises:
            BadRow: with the reason why it is none.
            InputError: for more jobs than can be held.
        """
        if row is None:
            return
        problem = self._problem(row)
        if problem:
            raise BadRow(problem)
        name = row.id or f"line {line}"
        if name in self.ids:
            raise BadRow("id was there before")
        if len(self.groups) >= MOST_JOBS:
            raise InputError(f"{self.path}: more than {MOST_JOBS:,} jobs; cut the trace")
        self.ids[name] = line
        self.groups.append(sys.intern(row.group))
        values = (row.submit, row.duration, row.deadline, math.ceil(row.nodes), line)
        for column, value in zip(self.columns, values, strict=True):
            column.append(value)

    def _problem(self, row: Row) -> str:
        """Why a row gives no job; empty if it does."""
        if math.isnan(row.submit):
            return "no submit time"
        if row.submit < 0:
            return "negative submit time"
        if math.isnan(row.duration):
            if self.durations:
                return "no duration (not ended, or no such column)"
        elif row.duration < 0:
            return "negative duration"
        elif row.duration == 0:
            return "zero duration"
        elif row.duration >= LATEST:
            return "duration is out of range"
        if row.nodes <= 0:
            return "zero or fewer nodes"
        if row.nodes > self.most_nodes:
            return f"needs more than the {self.most_nodes} nodes there are"
        if row.deadline <= row.submit:
            return "deadline must be after submit time"
        return ""

    def refuse(self, line: int, reason: str) -> None:
        """Count a bad row.

        Raises:
            InputError: if rows must not be skipped.
        """
        if self.strict:
            raise InputError(f"{self.path}: line {line}: {reason}")
        self.counts[reason] = self.counts.get(reason, 0) + 1
        lines = self.refused.setdefault(reason, [])
        if len(lines) < LINES_KEPT:
            lines.append(line)

    def jobs(self, format: str, in_slots: bool) -> Jobs:
        """What was kept, sorted.

        Raises:
            InputError: nothing was.
        """
        bad = tuple(
            BadRows(reason, self.counts[reason], tuple(lines)) for reason, lines in self.refused.items()
        )
        if not self.groups:
            why = f"; {bad[0]}" if bad else ""
            raise InputError(f"{self.path}: no job in it ({format} format, {self.rows} rows{why})")
        submit, duration, deadline, nodes, line = (np.array(column) for column in self.columns)
        order = np.argsort(submit, kind="stable")
        return Jobs(
            id=np.array(list(self.ids), dtype=object)[order],
            group=np.array(self.groups, dtype=object)[order],
            submit=submit[order],
            duration=duration[order],
            deadline=deadline[order],
            nodes=nodes[order].astype(np.int64),
            line=line[order].astype(np.int64),
            format=format,
            in_slots=in_slots,
            reordered=bool(np.any(np.diff(submit) < 0)),
            bad=bad,
        )


def _open(path: Path) -> IO[str]:
    """The file as text.

    Raises:
        InputError: there is none, or it is not text.
    """
    if path.is_dir():
        raise InputError(f"{path}: a folder; give one trace file")
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: not a regular file")
        with path.open("rb") as raw:
            head = raw.read(65536)
        if not head.strip():
            raise InputError(f"{path}: empty; expected a trace with one job a row")
        if b"\0" in head or head.startswith((b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")):
            raise InputError(f"{path}: not a text file (unpack it first, if it is packed)")
        return path.open(encoding="utf-8-sig", errors="replace", newline="")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # a name that no file can have
        raise InputError(f"{path}: cannot be read ({error})") from None


def _first_row(path: Path, stream: IO[str]) -> tuple[str, list[str]]:
    """The first line that is neither blank nor a comment, and its cells."""
    for line in _lines(path, stream):
        if line.strip() and not line.lstrip().startswith(("#", ";")):
            delimiter = _delimiter(line)
            cells = line.split() if delimiter is None else next(csv.reader([line], delimiter=delimiter))
            return line, [cell.strip() for cell in cells]
    raise InputError(f"{path}: no row in it but comments")


def _delimiter(line: str) -> str | None:
    """What parts the cells of a line; None for blanks."""
    best = max("|,;\t", key=line.count)
    if line.count(best):
        return best
    return "," if len(line.split()) < 2 else None


def _format_of(path: Path, first: Sequence[str], name: str | None) -> Format:
    lower = [cell.lower() for cell in first]
    tried = [name] if name else list(FORMATS)
    for known in tried:
        for shape in FORMATS[known]:
            if shape.fits(lower):
                return shape
    if sacct.is_sacct(lower):
        raise InputError(f"{path}: sacct's output without what is needed; make it by {sacct.COMMAND}")
    shown = ", ".join(first)
    shown = shown if len(shown) <= 100 else f"{shown[:100]} ..."
    what = f"not {name} format" if name else "no known trace format"
    raise InputError(
        f"{path}: {what}: no column submit_time or what stands for it in the first row ({shown}); "
        f"formats are {', '.join(FORMATS)}"
    )


def _lines(path: Path, stream: IO[str]) -> Iterator[str]:
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise InputError(f"{path}: line {number}: longer than {LONGEST_LINE:,} characters; not a trace")
        yield line


def _rows(path: Path, stream: IO[str], delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every line that is neither blank nor a comment."""
    if delimiter is None:
        for line, text in enumerate(_lines(path, stream), start=1):
            cells = text.split()
            if cells and not cells[0].startswith(("#", ";")):
                yield line, cells
        return
    reader = csv.reader(_lines(path, stream), delimiter=delimiter)
    try:
        for cells in reader:
            if any(cells) and not cells[0].lstrip().startswith("#"):
                cells = [cell.strip() for cell in cells]
                decimal = delimiter == ";"
                yield reader.line_num, [c.replace(",", ".") for c in cells] if decimal else cells
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: not a row of cells ({error})") from None
