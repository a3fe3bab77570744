"""Alibaba-like CSV, in the three shapes in which the GPU traces of 2020 and 2023 come.

- the simulator's list of jobs: ``job_id,num_inst,submit_time,num_cpu,num_gpu,gpu_type,duration,user``; a job
  takes ``num_inst`` x ``num_gpu`` GPUs,
- ``pai_job_table``: ``job_name,inst_id,user,status,start_time,end_time`` (the published file has no header
  row), submitted at its start_time, one node a job,
- the list of pods of 2023: ``name, ..., num_gpu, ..., creation_time,deletion_time,scheduled_time``.

A node of the simulation is a GPU; fractions of one, and jobs without any, take one node. Jobs that have not
ended have no end and are reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mara.workload.traces.rows import BadRow, Columns, Format, Parser, Row, named_format, number

JOB_TABLE = ("job_name", "inst_id", "user", "status", "start_time", "end_time")

_JOBS = named_format(
    "alibaba",
    {
        "submit": ("submit_time",),
        "duration": ("duration",),
        "instances": ("num_inst",),
        "nodes": ("num_gpu",),
        "id": ("job_id",),
        "group": ("user",),
    },
    lambda columns: all(key in columns for key in ("submit", "duration", "instances")),
)
_TABLE = named_format(
    "alibaba",
    {
        "submit": ("start_time",),
        "start": ("start_time",),
        "end": ("end_time",),
        "inst": ("inst_id",),
        "id": ("job_name",),
        "group": ("user",),
    },
    lambda columns: all(key in columns for key in ("start", "end", "inst", "id")),
)
_PODS = named_format(
    "alibaba",
    {
        "submit": ("creation_time",),
        "start": ("scheduled_time",),
        "end": ("deletion_time",),
        "nodes": ("num_gpu",),
        "id": ("name",),
        "group": ("qos",),
    },
    lambda columns: all(key in columns for key in ("submit", "start", "end")),
)


def _fits(first: Sequence[str]) -> bool:
    return any(shape.fits(first) for shape in (_JOBS, _TABLE, _PODS)) or _is_job_table_row(first)


def _is_job_table_row(cells: Sequence[str]) -> bool:
    """Whether this is a row of pai_job_table, which comes without names."""
    states = ("terminated", "failed", "running", "waiting")
    return len(cells) == len(JOB_TABLE) and cells[3].strip().lower() in states


def _parser(first: Sequence[str]) -> Parser:
    if _is_job_table_row(first):
        first = JOB_TABLE
    shape = next(shape for shape in (_JOBS, _TABLE, _PODS) if shape.fits(first))
    inner = shape.parser(first)
    instances = Columns(first, {"instances": ("num_inst",)})

    def parse(cells: Sequence[str]) -> Row | None:
        row = inner(cells)
        if row is None:
            return None
        many = number(instances.cell(cells, "instances"), "num_inst") if "instances" in instances else 1.0
        if math.isnan(many) or many < 1:
            raise BadRow("num_inst is below 1")
        return row._replace(nodes=many * max(row.nodes, 1.0))

    return parse


FORMAT = Format("alibaba", _fits, _parser)
HEADERLESS = Format("alibaba", _is_job_table_row, _parser, header=False)
