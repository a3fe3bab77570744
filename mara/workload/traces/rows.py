"""What the readers of cluster traces share: what a row gives, how cells are read, and what is a bad row.

A format turns the cells of one row into a `Row`; reading, counting and checking across rows is done once for
all formats in `mara.workload.traces.read`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

LATEST = 1e12
"""Times from here on are refused: no clock in seconds shows them."""

UNKNOWN = frozenset({"", "-", "none", "null", "na", "n/a", "unknown", "notset", "invalid"})
"""Cells that say nothing, in small letters."""


class Row(NamedTuple):
    """One job as a row of a trace gives it; times in seconds (or slots, where the file counts in them)."""

    submit: float
    duration: float
    """How long it ran on ``nodes`` nodes; NaN where the file does not say."""
    deadline: float = math.nan
    """By when it has to be done, on the clock of ``submit``; NaN where the file has none."""
    nodes: float = 1.0
    id: str = ""
    group: str = ""


class BadRow(Exception):
    """A row that gives no job; the message is the reason, without its place."""


Parser = Callable[[Sequence[str]], Row | None]
"""Makes a job of a row's cells; None for a row that is not a job (a step of one, a comment)."""


@dataclass(frozen=True)
class Format:
    """One kind of trace.

    fits: whether a file whose first row is this one (cells in small letters) may be of the format.
    parser: makes the parser, given the first row; ``header`` says whether that row holds names.
    """

    name: str
    fits: Callable[[Sequence[str]], bool]
    parser: Callable[[Sequence[str]], Parser]
    header: bool = True


def number(cell: str, name: str) -> float:
    """A cell as a finite number, or NaN where it says nothing.

    Raises:
        BadRow: for anything else.
    """
    text = cell.strip()
    try:
        value = float(text)
    except ValueError:
        if text.lower() in UNKNOWN:
            return math.nan
        raise BadRow(f"{name} is not a number") from None
    if not math.isfinite(value) or "_" in text:
        raise BadRow(f"{name} is not a finite number")
    return value


def seconds(cell: str, name: str) -> float:
    """A time as seconds: a number, or a date and time (without a zone: UTC) as seconds since 1970.

    Raises:
        BadRow: for anything else, and for times out of any range.
    """
    text = cell.strip()
    if len(text) > 9 and ("-" in text[1:] or ":" in text):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise BadRow(f"{name} is neither a number of seconds nor a date") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    value = number(text, name)
    if abs(value) >= LATEST:
        raise BadRow(f"{name} is out of range")
    return value


class Columns:
    """Where the wanted columns stand in a file with named columns."""

    def __init__(self, header: Sequence[str], names: Mapping[str, Sequence[str]]) -> None:
        """Find each of ``names`` (what it is for -> the column names it may have, best first)."""
        places = {name.strip().lower(): place for place, name in reversed(list(enumerate(header)))}
        self.place = {
            key: next((places[name] for name in known if name in places), None)
            for key, known in names.items()
        }
        self.width = 1 + max((place for place in self.place.values() if place is not None), default=-1)

    def __contains__(self, key: str) -> bool:
        return self.place.get(key) is not None

    def cell(self, cells: Sequence[str], key: str) -> str:
        """The cell of a column, empty where the file has no such column.

        Raises:
            BadRow: the row is too short.
        """
        place = self.place[key]
        if place is None:
            return ""
        if place >= len(cells):
            raise BadRow("too few columns")
        return cells[place].strip()

    def duration(self, cells: Sequence[str]) -> float:
        """Seconds of running: ``duration`` where it is given, else ``end`` less ``start``; NaN if neither is.

        Raises:
            BadRow: for an end before the start.
        """
        value = seconds(self.cell(cells, "duration"), "duration") if "duration" in self else math.nan
        if math.isnan(value) and "start" in self and "end" in self:
            start = seconds(self.cell(cells, "start"), "start")
            end = seconds(self.cell(cells, "end"), "end")
            if end < start:
                raise BadRow("end before start")
            value = end - start
        return value

    def job(self, cells: Sequence[str]) -> Row:
        """The job of a row with the columns submit, duration or start and end, deadline, nodes, id, group.

        Raises:
            BadRow: for a cell that cannot be read.
        """
        nodes = number(self.cell(cells, "nodes"), "nodes")
        return Row(
            submit=seconds(self.cell(cells, "submit"), "submit time"),
            duration=self.duration(cells),
            deadline=seconds(self.cell(cells, "deadline"), "deadline"),
            nodes=1.0 if math.isnan(nodes) else nodes,
            id=self.cell(cells, "id"),
            group=self.cell(cells, "group"),
        )


NO_COLUMNS: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("submit", "start", "end", "duration", "deadline", "nodes", "id", "group"), ()
)
"""What `Columns.job` asks for; a format fills in its names."""


def named_format(name: str, names: Mapping[str, Sequence[str]], needs: Callable[[Columns], bool]) -> Format:
    """A format of named columns; it fits a header in which ``needs`` finds its columns."""
    wanted = {**NO_COLUMNS, **names}
    return Format(
        name=name,
        fits=lambda header: needs(Columns(header, wanted)),
        parser=lambda header: Columns(header, wanted).job,
    )
