"""The Standard Workload Format of the Parallel Workloads Archive (Feitelson).

Eighteen numbers a line (more are ignored), parted by blanks; lines that begin with ``;`` are comments; -1
stands for unknown. Of them are read: 1 job number, 2 submit time (seconds), 4 run time, 5 allocated
processors (8, requested ones, where unknown) and 12 user. A node of the simulation is a processor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mara.workload.traces.rows import BadRow, Format, Row, number, seconds

FIELDS = 18
MOST_FIELDS = 24
"""Simulators append a few of their own."""


def _fits(first: Sequence[str]) -> bool:
    if not FIELDS <= len(first) <= MOST_FIELDS:
        return False
    try:
        return all(math.isfinite(float(cell)) for cell in first)
    except ValueError:
        return False


def parse(cells: Sequence[str]) -> Row | None:
    """Make a job of a line's numbers.

    Raises:
        BadRow: for a line of other than eighteen numbers, or a job without a run time.
    """
    if not FIELDS <= len(cells) <= MOST_FIELDS:
        raise BadRow(f"{len(cells)} fields in place of {FIELDS}" if len(cells) < 99 else "too many fields")
    run_time = seconds(cells[3], "run time")
    if run_time == -1:
        raise BadRow("run time unknown")
    allocated, requested = number(cells[4], "processors"), number(cells[7], "requested processors")
    nodes = allocated if allocated > 0 else requested
    user = cells[11].strip()
    return Row(
        submit=seconds(cells[1], "submit time"),
        duration=run_time,
        nodes=nodes if nodes > 0 else 1.0,
        id=cells[0].strip(),
        group="" if user == "-1" else f"user {user}",
    )


FORMAT = Format("swf", _fits, lambda _: parse, header=False)
