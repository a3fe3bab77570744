"""What Stable-Baselines3 writes: ``monitor.csv`` of its Monitor and ``evaluations.npz`` of its EvalCallback.

An npz file is a zip archive of arrays. Its arrays are read here and not by NumPy, so that sizes are known
before memory is taken, and objects (pickles) are refused.

Shapes: E evaluations, K episodes of an evaluation.
"""

from __future__ import annotations

import csv
import math
import re
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from mara.curves.readers.files import MAX_DOCUMENT, check_file, read_lines
from mara.curves.readers.json_logs import parse
from mara.curves.readers.table import Table
from mara.errors import InputError

MAX_ARCHIVE = 16_000_000
"""Bytes of an npz file; those of evaluations have thousands."""
REWARD, TIMESTEPS, TIME = "episode_reward", "timesteps", "elapsed_time"
_HEADER = re.compile(
    r"\{'descr': '(?P<descr>[<>|=]?(?:[iu][1248]|f[248]|b1))', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>(?:\d{1,18}(?:, \d{1,18}){0,2},?)?)\),? ?\}"
)
MONITOR_NAMES = {"r": REWARD, "l": "episode_length", "t": TIME}


def read_monitor(path: Path) -> Table:
    """Read a row an episode: reward, length and seconds, and the time steps so far.

    Raises:
        InputError: naming the line.
    """
    lines = read_lines(path)
    line, first = next(lines, (1, ""))
    try:
        if not isinstance(parse(first.removeprefix("#")), dict):
            raise ValueError("no object")
    except ValueError as error:
        raise InputError(f"{path}: line 1: {error}; expected #{{...}} as the Monitor writes it") from None
    line, header = next(lines, (2, ""))
    names = [MONITOR_NAMES.get(name.strip(), name.strip()) for name in header.split(",")]
    if len(set(names)) < len(names) or not {REWARD, "episode_length"} <= set(names):
        raise InputError(f"{path}: line {line}: {header[:40]!r}; expected the names r,l,t")
    table = Table(path)
    steps = 0.0
    for line, text in lines:
        if not text.strip() or text.startswith("#") or text == header:
            continue
        try:
            cells = next(csv.reader([text]))
        except csv.Error as error:
            raise InputError(f"{path}: line {line}: {error}") from None
        if len(cells) != len(names):
            raise InputError(f"{path}: line {line}: {len(cells)} cells; expected {len(names)}: {header}")
        table.next_row(line)
        for name, cell in zip(names, cells, strict=True):
            table.put_text(name, cell)
        length = table.columns["episode_length"].values[-1:] if "episode_length" in table.columns else []
        if not length or not length[0] >= 0 or table.columns["episode_length"].rows[-1] != table.rows - 1:
            raise InputError(f"{path}: line {line}: an episode without a length; expected a whole number")
        steps += length[0]
        table.put(TIMESTEPS, steps)
    if table.rows == 0:
        raise InputError(f"{path}: no episode has ended yet")
    return table


def read_evaluations(path: Path) -> Table:
    """Read the mean result of every evaluation.

    Raises:
        InputError: for what is no npz file of ``timesteps`` (E,) and ``results`` (E, K), for pickled
            objects, and for arrays above ``MAX_DOCUMENT`` bytes.
    """
    if check_file(path) > MAX_ARCHIVE:
        raise InputError(f"{path}: above {MAX_ARCHIVE:,} bytes; evaluations have thousands")
    try:
        with zipfile.ZipFile(path) as archive:
            timesteps, results = (_array(archive, name, path) for name in (TIMESTEPS, "results"))
            names = archive.namelist()
            lengths = _array(archive, "ep_lengths", path) if "ep_lengths.npy" in names else None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, ValueError) as error:
        reason = str(error)[:100]
        raise InputError(f"{path}: not a whole npz file ({reason}); expected evaluations.npz") from None
    if timesteps.ndim != 1 or results.ndim not in (1, 2) or len(results) != len(timesteps):
        raise InputError(
            f"{path}: timesteps {timesteps.shape} and results {results.shape}; expected (E,) and (E, K)"
        )
    if results.size == 0:
        raise InputError(f"{path}: no evaluation yet")
    table = Table(path, "evaluation")
    columns = {"mean_reward": results, "mean_ep_length": lengths}
    with np.errstate(over="ignore", invalid="ignore"):
        means = {
            name: values.reshape(len(timesteps), -1).mean(axis=1)
            for name, values in columns.items()
            if values is not None and values.size and values.shape[:1] == timesteps.shape
        }
    for row in range(len(timesteps)):
        table.next_row(row)
        table.put(TIMESTEPS, float(timesteps[row]))
        for name, mean in means.items():
            table.put(name, float(mean[row]))
    return table


def _array(archive: zipfile.ZipFile, name: str, path: Path) -> NDArray[np.float64]:
    """An array of numbers of the archive, its size checked before it is unpacked."""
    try:
        entry = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise InputError(f"{path}: no array {name!r}; expected evaluations.npz of the EvalCallback") from None
    if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{path}: array {name!r} is encrypted or packed in a way that npz files are not")
    if entry.file_size > MAX_DOCUMENT:
        raise InputError(f"{path}: array {name!r} unpacks to {entry.file_size:,} bytes; refused")
    with archive.open(entry) as stream:
        dtype, fortran, shape = _header(stream, f"{path}: array {name!r}")
        data = stream.read()
    if len(data) != math.prod(shape) * dtype.itemsize:
        raise InputError(f"{path}: array {name!r}: {len(data)} bytes for shape {shape}; damaged")
    values = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    return values.astype(np.float64)


def _header(stream: IO[bytes], where: str) -> tuple[np.dtype, bool, tuple[int, ...]]:
    """Type, order and shape of an array of the npy format, versions 1 to 3, in the one way NumPy writes it."""
    start = stream.read(8)
    width = 2 if start[6:7] == b"\x01" else 4
    length = int.from_bytes(stream.read(width), "little")
    if start[:6] != b"\x93NUMPY" or length > 10_000:
        raise InputError(f"{where} does not begin as an array of NumPy's does")
    text = stream.read(length).decode("latin-1").strip()
    found = _HEADER.fullmatch(text)
    if found is None:
        raise InputError(f"{where} holds {text[:60]!r}; expected numbers (pickles are never read)")
    shape = tuple(int(extent) for extent in re.findall(r"\d+", found["shape"]))
    return np.dtype(found["descr"]), found["fortran"] == "True", shape
