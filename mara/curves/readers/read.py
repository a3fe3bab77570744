"""Read a training log: find out what it is, read its table, tidy one metric.

``read_log(path)`` is all that most callers need. Known are CSV and its relatives, JSON documents and lines,
the Hugging Face Trainer's state, TensorBoard event files and folders, Stable-Baselines3's monitor.csv and
evaluations.npz, and MLflow's metrics files. Nothing in a file is ever executed: no pickle is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from mara.curves.readers.baselines import read_evaluations, read_monitor
from mara.curves.readers.delimited import read_delimited
from mara.curves.readers.files import encoding_of, read_head
from mara.curves.readers.json_logs import parse, read_document_table, read_json_lines
from mara.curves.readers.log import Log
from mara.curves.readers.mlflow import LINE, read_metric_file
from mara.curves.readers.naming import is_axis
from mara.curves.readers.table import Table
from mara.curves.readers.tensorboard import event_files, looks_like_events, read_events
from mara.curves.readers.tidy import tidy
from mara.errors import InputError

READERS: dict[str, Callable[[Path], Table]] = {
    "csv": read_delimited,
    "json": read_document_table,
    "jsonl": read_json_lines,
    "trainer_state": lambda path: read_document_table(path, trainer_state=True),
    "tensorboard": lambda path: read_events(event_files(path) if path.is_dir() else [path]),
    "monitor": read_monitor,
    "evaluations": read_evaluations,
    "mlflow": read_metric_file,
}
"""Format -> how it is read."""

LOG_NAMES = (
    *("trainer_state.json", "metrics.csv", "results.csv", "training.log", "log.csv", "history.csv"),
    *("evaluations.npz", "monitor.csv", "progress.csv", "log_history.json", "history.json", "metrics.json"),
    "scalars.json",
)
"""Files that are looked for in a run's folder, in this order, after event files."""
NAMELESS = ("vis_data",)
"""Folders that tools put logs in, which bear no run's name."""

_FOREIGN = {
    b"\x89HDF": "an HDF5 file",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "gzip; unpack it first",
    b"\xfd7zXZ": "xz; unpack it first",
    b"BZh": "bzip2; unpack it first",
    b"\x28\xb5\x2f\xfd": "zstd; unpack it first",
    b"\x93NUMPY": "a single NumPy array",
    b"SQLite": "a database",
    b"\x89PNG": "a picture",
    b":W&B": "W&B's own binary log; export the run's history as CSV (its charts' menu, or run.history() of the API)",
}


def read_log(
    path: Path | str,
    format: str | None = None,
    metric: str | None = None,
    axis: str | None = None,
    rising: bool | None = None,
) -> Log:
    """Read one metric of one run.

    Args:
        path: a file, or a folder that holds event files or one log under a usual name.
        format: a key of ``READERS``; None to find out from the content.
        metric: the column, or the end of its name; None for the likeliest (validation loss first).
        axis: step, epoch, time, row or a column; None for the first of these that goes with the metric.
        rising: whether more is better; None to go by the metric's name.

    Raises:
        InputError: in one line that names the file, the place and what would be right.
    """
    path, format, table = read_table(path, format)
    return tidy(table, run_name(path), format, metric, axis, rising)


def read_table(path: Path | str, format: str | None = None) -> tuple[Path, str, Table]:
    """What is read in the end (a folder's log), its format, and all of its columns.

    Raises:
        InputError: as :func:`read_log`.
    """
    if format is not None and format not in READERS:
        raise InputError(f"format {format!r}: unknown; known are {', '.join(READERS)}")
    path = Path(path)
    try:
        if path.is_dir():
            path = log_in(path)
        found = format or detect_format(path)
        if found == "tensorboard" and path.is_dir() and not event_files(path):
            raise InputError(f"{path}: no event file (*tfevents*) in this folder")
        return path, found, READERS[found](path)
    except MemoryError:
        raise InputError(f"{path}: too large to be read; keep only the columns and rows needed") from None


def log_in(folder: Path) -> Path:
    """The log in a run's folder: the folder itself if it holds event files, else a file of a usual name, or
    the only one that looks like a log.

    Raises:
        InputError: if there is none, or several.
    """
    if event_files(folder):
        return folder
    for name in LOG_NAMES:
        if (folder / name).is_file():
            return folder / name
    states = [path for path in folder.glob("checkpoint-*/trainer_state.json") if path.is_file()]
    if states:
        return max(states, key=lambda path: (len(path.parent.name), path.parent.name))
    inner = [path for path in folder.glob("*/vis_data/scalars.json") if path.is_file()]
    if (folder / "vis_data" / "scalars.json").is_file():
        inner.append(folder / "vis_data" / "scalars.json")
    others = [path for path in sorted(folder.iterdir()) if path.is_file() and _may_be_log(path)]
    if len(found := inner or others) == 1:
        return found[0]
    if found:
        names = ", ".join(str(path.relative_to(folder)) for path in found[:8])
        raise InputError(f"{folder}: {len(found)} logs in this folder; name one: {names}")
    raise InputError(
        f"{folder}: no log in this folder; name the file, or have one called {', '.join(LOG_NAMES)}"
    )


def run_name(path: Path) -> str:
    """What a run is called: its file, or its folder where the file's name is one that all runs have."""
    if path.is_file() and (
        path.name in (*LOG_NAMES, "log.txt") or "tfevents" in path.name or path.parent.name == "metrics"
    ):
        folder = path.resolve().parent
        return folder.parent.name if folder.name in NAMELESS else folder.name
    return path.resolve().name if path.is_dir() else path.stem


def detect_format(path: Path) -> str:
    """Tell a log's format from its first bytes.

    Raises:
        InputError: for what is not a log, and never will be read (pickles, archives, pictures).
    """
    if path.is_dir():
        return "tensorboard"
    head = read_head(path)
    if looks_like_events(head) or "tfevents" in path.name:
        return "tensorboard"
    if head.startswith(b"PK\x03\x04"):
        return "evaluations"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise InputError(
            f"{path}: a pickle, which is never read as it could run code; export it as CSV or JSON"
        )
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise InputError(f"{path}: {what}; expected a training log (see the page on formats)")
    text = head.decode(encoding_of(head), errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    first = lines[0].strip() if lines else ""
    if first.startswith("#{"):
        return "monitor"
    if first.startswith("["):
        return "json"
    if first.startswith("{"):
        if path.name == "trainer_state.json" or '"log_history"' in text:
            return "trainer_state"
        return (
            "jsonl" if _is_object(first) and len(lines) > 1 and lines[1].lstrip().startswith("{") else "json"
        )
    if LINE.fullmatch(first):
        return "mlflow"
    if any(re.search(r"[|\-:\]] \{\"", line) for line in lines[:200]):
        return "jsonl"
    return "csv"


def _is_object(line: str) -> bool:
    try:
        return isinstance(parse(line), dict)
    except ValueError:
        return False


def find_logs(folder: Path) -> list[Path]:
    """The runs under a folder: folders with event files, and files that look like logs; sorted by name.

    Raises:
        InputError: if the folder is none.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected one with training logs")
    found: set[Path] = set()
    for path in sorted(folder.rglob("*")):
        if any(part.startswith(".") for part in path.relative_to(folder).parts) or not path.is_file():
            continue
        if "tfevents" in path.name:
            found.add(path.parent)
        elif _may_be_log(path):
            found.add(path)
    return sorted(found)


def _may_be_log(path: Path) -> bool:
    """Whether a file has a log's name; JSON and text files must also look like records, not like settings."""
    if path.suffix in (".csv", ".tsv", ".jsonl", ".npz") or path.name in LOG_NAMES:
        return True
    if path.suffix in (".json", ".log", ".txt"):
        try:
            return _holds_records(path)
        except InputError:
            return False
    return path.parent.name == "metrics" and path.suffix == ""


def _holds_records(path: Path) -> bool:
    """Whether the text of a file begins as a log's: JSON of several objects, or a header with an axis.

    Raises:
        InputError: for empty and binary files.
    """
    head = read_head(path)
    text = head.decode(encoding_of(head), errors="replace").lstrip()
    if path.suffix == ".json":
        return text.startswith("[") or '"log_history"' in text or '"metrics"' in text or text.count("{") > 2
    form = detect_format(path)
    names = text.split("\n", 1)[0].strip().split(",")
    return form == "jsonl" or (form == "csv" and len(names) > 1 and any(map(is_axis, names)))
