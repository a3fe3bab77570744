"""The plain CSV of this package: ``submit_time``, ``duration`` or ``demand``, and what else is known.

============  ======================================================================================
column        meaning
============  ======================================================================================
submit_time   seconds, or a date and time
duration      seconds of running on ``nodes`` nodes
demand        in its place: units of training; all times of the file are then slots, not seconds
deadline      optional, on the clock of submit_time
nodes         optional, 1 if left out
id, group     optional
============  ======================================================================================
"""

from __future__ import annotations

from mara.workload.traces.rows import named_format

FORMAT = named_format(
    "plain",
    {
        "submit": ("submit_time",),
        "duration": ("duration", "demand"),
        "deadline": ("deadline",),
        "nodes": ("nodes",),
        "id": ("id",),
        "group": ("group",),
    },
    lambda columns: "submit" in columns,
)
