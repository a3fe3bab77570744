"""MLflow's own files: ``mlruns/<experiment>/<run>/metrics/<name>`` with a line ``timestamp value step`` each.

Exports of MLflow and W&B (CSV, JSON) are read by the readers of those forms.
"""

from __future__ import annotations

import re
from pathlib import Path

from mara.curves.readers.files import read_lines
from mara.curves.readers.table import Table
from mara.errors import InputError

LINE = re.compile(r"\d{9,16} \S+( -?\d+)?( \S+)*")
"""A line of a metrics file: milliseconds, value, step and, in newer versions, more."""


def read_metric_file(path: Path) -> Table:
    """Read one metric; the column bears the file's name.

    Raises:
        InputError: naming the line that is not ``timestamp value step``.
    """
    table = Table(path)
    for line, text in read_lines(path):
        if not text.strip():
            continue
        if not LINE.fullmatch(text.strip()):
            raise InputError(f"{path}: line {line}: {text[:40]!r}; expected: timestamp value step")
        stamp, value, *rest = text.split()
        table.next_row(line)
        table.put("wall_time", float(stamp) / 1000)
        table.put_text(path.name, value)
        if rest:
            table.put_text("step", rest[0])
    if table.rows == 0:
        raise InputError(f"{path}: no line; has the run logged anything yet?")
    return table
