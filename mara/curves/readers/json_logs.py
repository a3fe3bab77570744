"""JSON logs: one object a line (MMEngine, fairseq, W&B and many more), or one document.

Documents: the Hugging Face Trainer's ``trainer_state.json``, a list of objects, an object of lists (a Keras
history), MLflow's ``{"metrics": [...]}`` and TensorBoard's downloaded ``[[time, step, value], ...]``.
Nested objects are flattened with ``/``, and short lists of numbers with their places. Numbers written as text
count as numbers, as fairseq writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mara.curves.readers.delimited import KEY_NAMES
from mara.curves.readers.files import encoding_of, read_document, read_lines
from mara.curves.readers.table import Table
from mara.errors import InputError

MAX_DEPTH = 8
"""Levels of objects that are flattened."""
MAX_LIST = 16
"""Numbers of a list that become columns of their own, as the scores that detectors log together."""


def read_json_lines(path: Path) -> Table:
    """Read one object a line; text before the object (a logger's prefix) and lines without one are skipped.

    A last line that breaks off belongs to a run that is still writing.

    Raises:
        InputError: naming the line, for a line that begins with an object but is none.
    """
    table = Table(path)
    broken: tuple[int, str] | None = None
    skipped = 0
    for line, text in read_lines(path):
        start = _object_start(text)
        if start is None:
            skipped += bool(text.strip())
            continue
        if broken is not None:
            raise InputError(f"{path}: line {broken[0]}: not JSON ({broken[1]}); expected one object a line")
        try:
            entry = parse(text[start:])
        except ValueError as error:
            if start > 0:
                skipped += 1
            else:
                broken = line, str(error)
            continue
        if isinstance(entry, dict):
            put_entry(table, entry, line)
        else:
            skipped += 1
    if broken is not None:
        table.notes.append(f"line {broken[0]} breaks off and is left out")
    if skipped:
        table.notes.append(f"{skipped} lines without a JSON object are left out")
    if table.rows == 0:
        raise InputError(f"{path}: no line holds a JSON object; expected one a line")
    return table


def _object_start(text: str) -> int | None:
    """Where the object of a line begins: at its start, or after a logger's ``... | ``, ``... - ``, ``...: ``."""
    stripped = text.lstrip()
    if stripped.startswith("{"):
        return len(text) - len(stripped)
    for mark in ("| {", "- {", ": {", "] {"):
        place = text.find(mark)
        if place >= 0:
            return place + len(mark) - 1
    return None


def parse(text: str) -> Any:
    """Parse JSON; every failure, of depth and of giant integers too, is a ValueError of one line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_document_table(path: Path, trainer_state: bool = False) -> Table:
    """Read one JSON document; with ``trainer_state`` it must be the Hugging Face Trainer's.

    Raises:
        InputError: for what is no JSON, or a document of another make.
    """
    data = read_document(path)
    try:
        document = parse(data.decode(encoding_of(data), errors="replace"))
    except ValueError as error:
        raise InputError(f"{path}: not a JSON document ({error})") from None
    except UnicodeError:
        raise InputError(f"{path}: not text; expected a JSON document") from None
    if isinstance(document, dict) and isinstance(document.get("log_history"), list):
        document = document["log_history"]
    elif trainer_state:
        raise InputError(f'{path}: no list "log_history"; expected the Trainer\'s trainer_state.json')
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        if isinstance(document.get("metrics"), list):
            document = document["metrics"]
        elif lists and not any(isinstance(item, dict | list) for some in lists for item in some[:1]):
            return _from_lists(document, path)
        elif len(lists) == 1:
            document = lists[0]
        else:
            document = [document]
    table = Table(path, "entry")
    if not isinstance(document, list):
        raise InputError(f"{path}: a JSON {type(document).__name__}; expected a list of logged objects")
    for place, entry in enumerate(document):
        if isinstance(entry, dict):
            put_entry(table, entry, place)
        elif _is_triple(entry):
            put_entry(table, dict(zip(("wall_time", "step", "value"), entry, strict=True)), place)
        else:
            raise InputError(f"{path}: entry {place}: {type(entry).__name__}; expected an object of numbers")
    if table.rows == 0:
        raise InputError(f"{path}: the list of logged objects is empty; has the run logged anything yet?")
    return table


def _is_triple(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 3 and all(isinstance(x, int | float) for x in entry)


def _from_lists(document: Mapping[str, Any], path: Path) -> Table:
    """Read an object of lists, one number a row each."""
    table = Table(path, "entry")
    columns = {name: value for name, value in document.items() if isinstance(value, list)}
    for row in range(max(len(values) for values in columns.values())):
        table.next_row(row)
        for name, values in columns.items():
            if row < len(values):
                _put(table, name, values[row], 0)
    return table


def put_entry(table: Table, entry: Mapping[str, Any], line: int) -> None:
    """Add an object as a row; ``{"key": "loss", "value": 0.5, "step": 3}`` becomes a column "loss"."""
    table.next_row(line)
    key = next((name for name in KEY_NAMES if isinstance(entry.get(name), str)), None)
    for name, value in entry.items():
        if key is not None and name == "value":
            _put(table, str(entry[key]), value, 0)
        elif name != key:
            _put(table, str(name), value, 0)


def _put(table: Table, name: str, value: Any, depth: int) -> None:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        try:
            table.put(name, float(value))
        except OverflowError:
            table.put_text(name, "too large a whole number")
    elif isinstance(value, str):
        table.put_text(name, value)
    elif isinstance(value, Mapping) and depth < MAX_DEPTH:
        for inner, item in value.items():
            _put(table, f"{name}/{inner}", item, depth + 1)
    elif isinstance(value, Sequence) and len(value) == 1:
        _put(table, name, value[0], depth + 1)
    elif isinstance(value, Sequence) and len(value) <= MAX_LIST and all(map(_is_number, value)):
        for place, item in enumerate(value):
            _put(table, f"{name}/{place}", item, depth + 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
