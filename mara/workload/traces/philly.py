"""Philly-like CSV: one job a row with its GPUs, its queue (virtual cluster) and three times.

The columns are those of the Helios logs and of the usual flattenings of the Philly trace: ``job_id``,
``user``, ``vc``, ``gpu_num``, ``state``, ``submit_time``, ``start_time``, ``end_time``, ``duration``, and a
``deadline`` that somebody has added. Times are dates or seconds. A node of the simulation is a GPU; jobs
without a GPU take one node.
"""

from __future__ import annotations

from collections.abc import Sequence

from mara.workload.traces.rows import Format, Parser, Row, named_format

_NAMED = named_format(
    "philly",
    {
        "submit": ("submit_time", "submitted_time"),
        "start": ("start_time",),
        "end": ("end_time", "finished_time"),
        "duration": ("duration", "run_time"),
        "deadline": ("deadline", "ddl"),
        "nodes": ("gpu_num", "num_gpus", "num_gpu", "gpus"),
        "id": ("job_id", "jobid"),
        "group": ("vc", "user"),
    },
    lambda columns: (
        "submit" in columns
        and "nodes" in columns
        and ("duration" in columns or ("start" in columns and "end" in columns))
    ),
)


def _parser(first: Sequence[str]) -> Parser:
    inner = _NAMED.parser(first)

    def parse(cells: Sequence[str]) -> Row | None:
        row = inner(cells)
        return row._replace(nodes=1.0) if row is not None and row.nodes == 0 else row

    return parse


FORMAT = Format("philly", _NAMED.fits, _parser)
