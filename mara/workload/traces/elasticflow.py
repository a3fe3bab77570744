"""ElasticFlow's CSV with deadlines, and the raw traces of the same clusters without.

Two spellings are in use: ``job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration`` (the
scheduler's repository) and ``job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,
duration`` (the published traces). The jobs that the scheduler's simulator writes have ``start_time`` and
``end_time`` in place of the duration. Deadlines are absolute. A node of the simulation is a GPU. Jobs that the
trace marks as best effort have the deadline 0 or none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mara.workload.traces.rows import Columns, Format, Parser, Row, named_format


def _fits(columns: Columns) -> bool:
    typical = "deadline" in columns or "iterations" in columns or "late_name" in columns
    ran = "duration" in columns or ("start" in columns and "end" in columns)
    return "submit" in columns and "nodes" in columns and ran and typical


_NAMED = named_format(
    "elasticflow",
    {
        "submit": ("submission_time", "submit_time"),
        "late_name": ("submission_time",),
        "start": ("start_time",),
        "end": ("end_time",),
        "duration": ("duration",),
        "deadline": ("ddl", "deadline"),
        "iterations": ("iteration", "iterations", "num_iteration"),
        "nodes": ("num_gpu",),
        "id": ("job_id",),
        "group": ("model_name",),
    },
    _fits,
)


def _parser(first: Sequence[str]) -> Parser:
    inner = _NAMED.parser(first)

    def parse(cells: Sequence[str]) -> Row | None:
        row = inner(cells)
        return row._replace(deadline=math.nan) if row is not None and row.deadline <= 0 else row

    return parse


FORMAT = Format("elasticflow", _NAMED.fits, _parser)
