"""Slurm's accounting: the output of ``sacct --parsable2`` (names in the first line, ``|`` between cells).

For instance what ``COMMAND`` writes. Needed are JobID, Submit, and ElapsedRaw, Elapsed or Start and End. Lines
of job steps (``17.batch``, ``17.0``) are not jobs and are passed over. Jobs that still run or wait are reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mara.workload.traces.rows import BadRow, Columns, Format, Parser, Row

COMMAND = "sacct -a -X --parsable2 --format=JobID,User,Submit,Start,End,ElapsedRaw,NNodes,State"

_NAMES = {
    "submit": ("submit",),
    "start": ("start",),
    "end": ("end",),
    "duration": ("elapsedraw",),
    "elapsed": ("elapsed",),
    "deadline": (),
    "nodes": ("nnodes", "allocnodes", "reqnodes"),
    "id": ("jobid", "jobidraw"),
    "group": ("user", "account", "partition"),
    "state": ("state",),
}
_NOT_ENDED = ("RUNNING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING")


def elapsed_seconds(text: str) -> float:
    """Read ``[days-]hours:minutes:seconds``.

    Raises:
        BadRow: for anything else.
    """
    days, dash, rest = text.rpartition("-")
    try:
        if dash and not days.isdigit():
            raise ValueError
        parts = [float(part) for part in rest.split(":")]
        if not 1 <= len(parts) <= 3 or min(parts) < 0 or not all(map(math.isfinite, parts)):
            raise ValueError
        return 86400 * float(days or 0) + sum(v * 60**i for i, v in enumerate(reversed(parts)))
    except ValueError:
        raise BadRow("Elapsed is not [days-]hours:minutes:seconds") from None


def is_sacct(first: Sequence[str]) -> bool:
    """Whether a first row (in small letters) is sacct's, with the columns that are needed or without."""
    return "jobid" in first and bool({"jobname", "state", "elapsed", "submit", "partition"} & set(first))


def _fits(first: Sequence[str]) -> bool:
    columns = Columns(first, _NAMES)
    ran = "duration" in columns or "elapsed" in columns or ("start" in columns and "end" in columns)
    return "id" in columns and "submit" in columns and ran


def _parser(first: Sequence[str]) -> Parser:
    columns = Columns(first, _NAMES)

    def parse(cells: Sequence[str]) -> Row | None:
        if "." in columns.cell(cells, "id"):
            return None
        state = columns.cell(cells, "state").upper()
        if state.startswith(_NOT_ENDED):
            raise BadRow("not ended yet")
        row = columns.job(cells)
        if math.isnan(row.duration) and "elapsed" in columns:
            row = row._replace(duration=elapsed_seconds(columns.cell(cells, "elapsed")))
        return row._replace(nodes=max(row.nodes, 1.0)) if row.nodes == 0 else row

    return parse


FORMAT = Format("sacct", _fits, _parser)
