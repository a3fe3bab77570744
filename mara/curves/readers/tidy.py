"""From a table to one tidy metric: axis chosen, resumed parts replaced, NaN told apart from gaps.

Shapes: P points of the metric, R rows of the table.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mara.curves.readers.log import Axis, Floats, Log
from mara.curves.readers.naming import (
    AXIS_NAMES,
    PREFERRED,
    axis_columns,
    choose_metric,
    is_rising,
    may_be_metric,
    plain,
)
from mara.curves.readers.table import Table
from mara.errors import InputError, printable

LONGEST = 200
"""Signs of a name or a note that are kept."""
LARGEST = 1e30
"""A value beyond counts as infinite, as does a position on an axis."""
COVERED = 0.9
"""Share of the metric's rows that an axis must be written in to be taken unasked."""
STILL = 0.3
"""Share of steps of 0 above which an axis is too coarse for the metric to be taken unasked."""
MILLISECONDS = 1e11
"""A clock beyond counts milliseconds since 1970."""


@dataclass
class _Points:
    """P points as they are being tidied: rows of the table, positions and values."""

    row: NDArray[np.int64]
    position: Floats
    value: Floats

    def keep(self, chosen: NDArray) -> None:
        """Keep the points at a mask or at indices."""
        self.row, self.position, self.value = self.row[chosen], self.position[chosen], self.value[chosen]


def metric_names(table: Table) -> list[str]:
    """The columns that may be metrics: those with a name like one and two numbers or more.

    Columns that never change count only under a name that is known, or where there is no other.
    """
    names = [name for name, column in table.columns.items() if column.values and may_be_metric(name)]
    several = [name for name in names if len(table.columns[name].values) > 1]
    moving = [name for name in several if plain(name) in PREFERRED or _moves(table.columns[name].values)]
    return moving or several or names


def _moves(values: Sequence[float]) -> bool:
    return any(value != values[0] for value in values)


def tidy(
    table: Table,
    name: str,
    format: str,
    metric: str | None = None,
    axis: str | None = None,
    rising: bool | None = None,
    path: Path | None = None,
) -> Log:
    """One metric of a table as a :class:`Log`.

    Where the axis goes back, as after a resumed run, the earlier points from there on are dropped; a single
    point that would drop several is dropped itself. A counter that starts again with every epoch is made
    to go on. Values that are not finite are dropped; if they are the newest, the run counts as diverged.

    Args:
        table: what was read.
        name: of the run.
        format: as what it was read.
        metric: the column; None for the likeliest.
        axis: step, epoch, time, row or a column's name; None for the finest that there is.
        rising: whether the metric is to be maximised; None to go by its name.
        path: what to call the file, where it is not the table's.

    Raises:
        InputError: where metric or axis cannot be found or hold no numbers.
    """
    path = path or table.path
    numeric = [column for column, cells in table.columns.items() if cells.values]
    for column, cells in table.columns.items():
        if not cells.values and (column == metric or (metric is None and plain(column) in PREFERRED)):
            _refuse_wrong(table, column, path)
    if metric is None and metric_names(table):
        numeric = metric_names(table)
    column_name = choose_metric(numeric, metric, str(path))
    _refuse_wrong(table, column_name, path)
    row, value = table.columns[column_name].as_arrays()
    points = _Points(row, row.astype(np.float64), value)
    notes = list(table.notes)
    kind, axis_name = _find_axis(table, points, axis, column_name, path)
    if axis_name:
        _place(table, points, axis_name, path, notes)
        _follow_epochs(table, points, axis_name, notes)
    diverged = _drop_infinite(points, notes)
    if len(points.value) == 0:
        raise InputError(f"{path}: column {column_name!r} holds no finite number; has the run logged it yet?")
    _forget_replaced(table, points, notes)
    return Log(
        name=printable(name[:LONGEST]),
        path=path,
        format=format,
        metric=printable(column_name[:LONGEST]),
        axis=kind,
        axis_column=printable(axis_name[:LONGEST]),
        position=points.position,
        values=points.value,
        rising=is_rising(column_name) if rising is None else rising,
        diverged=diverged,
        seconds=_clock(table, points),
        notes=tuple(printable(note[:LONGEST]) for note in notes),
    )


def _refuse_wrong(table: Table, name: str, path: Path) -> None:
    column = table.columns[name]
    if column.wrong is not None:
        line, text = column.wrong
        raise InputError(
            f"{path}: {table.line_name} {line}, column {name!r}: {text!r} is no number "
            f"({column.wrong_count} such cells); leave the cell empty where nothing was logged"
        )


def _at(table: Table, name: str, rows: NDArray[np.int64]) -> Floats:
    """A column's values (P,) in rows, NaN where it was not written there."""
    at, values = table.columns[name].as_arrays()
    place = np.minimum(np.searchsorted(at, rows), max(len(at) - 1, 0))
    if len(at) == 0:
        return np.full(len(rows), np.nan)
    return np.where(at[place] == rows, values[place], np.nan)


def _find_axis(
    table: Table, points: _Points, wanted: str | None, metric: str, path: Path
) -> tuple[Axis, str]:
    """The kind of axis and its column, "" for the rows themselves."""
    if wanted == "row":
        return "row", ""
    numeric = [name for name, column in table.columns.items() if column.values]
    if wanted in AXIS_NAMES:
        kinds = [wanted]
    elif wanted is None:
        kinds = list(AXIS_NAMES)
    else:
        column = choose_metric(numeric, wanted, str(path), "axis")
        if column == metric:
            raise InputError(f"{path}: axis {wanted!r} is the metric; expected another column")
        kind = next((kind for kind in AXIS_NAMES if axis_columns(kind, [column])), "step")
        return cast(Axis, kind), column
    for kind in kinds:
        for name in axis_columns(kind, numeric):
            if _suits(_at(table, name, points.row), kind, unasked=wanted is None):
                return cast(Axis, kind), name
    if wanted is not None:
        raise InputError(
            f"{path}: no {wanted} axis beside the metric; there are {', '.join(map(repr, numeric[:12]))}"
        )
    return "row", ""


def _suits(where: Floats, kind: str, unasked: bool) -> bool:
    """Whether a column (P,) can be the axis: written in nearly all rows, and not standing still."""
    known = np.isfinite(where)
    steps = np.diff(where[known])
    if known.mean() < COVERED or (len(where) > 1 and not np.any(steps != 0)):
        return False
    coarse = int(np.sum(steps == 0)) > max(STILL * len(steps), 2)
    goes_back = kind == "time" and bool(np.any(steps < 0))
    return not unasked or not (coarse or goes_back)


def _place(table: Table, points: _Points, axis: str, path: Path, notes: list[str]) -> None:
    """Give the points their positions on the axis; drop those without one."""
    _refuse_wrong(table, axis, path)
    points.position = _at(table, axis, points.row)
    known = np.abs(points.position) <= LARGEST
    if not known.all():
        notes.append(f"{(~known).sum()} points without a finite {axis} are left out")
        points.keep(known)
    if len(points.position) > 1 and np.all(np.diff(points.position) < 0):
        notes.append("the newest row comes first; read from the last to the first")
        points.keep(np.arange(len(points.position))[::-1])


def _follow_epochs(table: Table, points: _Points, axis: str, notes: list[str]) -> None:
    """Make a counter that starts again with every epoch go on from epoch to epoch."""
    if not axis_columns("step", [axis]):
        return
    back = np.flatnonzero(np.diff(points.position) <= 0)
    for name in axis_columns("epoch", list(table.columns)):
        epoch = _at(table, name, points.row)
        steps = np.diff(epoch)
        if len(back) and np.isfinite(epoch).all() and np.all(steps[back] > 0) and np.all(steps >= 0):
            step = np.diff(points.position)
            step = step[step > 0]
            length = float(np.ptp(points.position) + (np.median(step) if len(step) else 1.0))
            points.position = points.position + (epoch - epoch[0]) * length
            notes.append(f"{axis} starts again with every {name}; counted on with {length:g} an epoch")
            return


def _drop_infinite(points: _Points, notes: list[str]) -> bool:
    """Drop values that are not finite; whether they are the newest."""
    finite = np.abs(points.value) <= LARGEST
    if finite.all():
        return False
    diverged = bool(len(finite)) and not finite[-1]
    lost = int((~finite).sum())
    notes.append(
        f"{lost} values are NaN or infinite" + (", the newest among them: diverged" if diverged else "")
    )
    points.keep(finite)
    return diverged


def _forget_replaced(table: Table, points: _Points, notes: list[str]) -> None:
    """Make positions strictly increasing: where they go back, a resumed run replaces what was before."""
    position = points.position
    if len(position) < 2 or np.all(np.diff(position) > 0):
        return
    kept: list[int] = []
    strays = replaced = 0
    first = 0
    for place in range(len(position)):
        here = position[place]
        if kept and here <= position[kept[-1]]:
            cut = bisect.bisect_left(kept, here, key=lambda index: position[index])
            alone = place + 1 == len(position) or position[place + 1] > position[kept[-1]]
            if alone and len(kept) - cut > 1:
                strays += 1
                continue
            first = first or int(table.lines[points.row[place]])
            replaced += len(kept) - cut
            del kept[cut:]
        kept.append(place)
    if replaced:
        notes.append(
            f"the axis goes back at {table.line_name} {first}: {replaced} earlier "
            + ("points are" if replaced > 1 else "point is")
            + " replaced by what follows"
        )
    if strays:
        notes.append(f"{strays} single point{'s' * (strays > 1)} going back by several: left out")
    points.keep(np.array(kept, dtype=np.int64))


def _clock(table: Table, points: _Points) -> Floats | None:
    """Seconds (P,) of the points, where a column of time never goes back."""
    for name in axis_columns("time", list(table.columns)):
        seconds = _at(table, name, points.row)
        known = len(seconds) > 1 and np.isfinite(seconds).all()
        if known and np.all(np.diff(seconds) >= 0) and seconds[-1] > seconds[0]:
            return seconds / 1000 if seconds[-1] > MILLISECONDS else seconds
    return None
