"""TensorBoard event files, without TensorBoard.

A file is a row of TFRecords: length (8 bytes, little-endian), masked CRC-32C of it (4), data, masked CRC-32C
of the data (4). The data is a protocol buffer ``Event``: 1 wall_time (double), 2 step (varint), 5 summary; a
summary repeats 1 value: 1 tag, 2 simple_value (float), 8 tensor; a tensor has 1 dtype, 4 tensor_content,
5 float_val, 6 double_val. Everything else is passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from mara.curves.readers.files import check_file
from mara.curves.readers.table import Table
from mara.errors import InputError

LARGEST_RECORD = 1 << 20
"""Records above are images and graphs; they are skipped without being read."""
WALL_TIME, STEP = "wall_time", "step"
_FLOAT, _DOUBLE = 1, 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_CRC = _crc_table()


def masked_crc(data: bytes) -> int:
    """CRC-32C (Castagnoli), rotated and shifted as TFRecords want it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def looks_like_events(head: bytes) -> bool:
    """Whether bytes begin with a TFRecord."""
    return len(head) >= 12 and masked_crc(head[:8]) == int.from_bytes(head[8:12], "little")


def event_files(folder: Path) -> list[Path]:
    """The event files of a folder, oldest first: their names begin with the time of their making."""
    return sorted(path for path in folder.glob("*tfevents*") if path.is_file())


def read_events(paths: Sequence[Path]) -> Table:
    """Read the scalars of event files in order, as one log.

    Raises:
        InputError: naming file and byte, where a record is damaged. A record that breaks off at the end of
            a file belongs to a run that is still writing, and is left out.
    """
    table = Table(paths[0] if len(paths) == 1 else paths[0].parent, "record")
    for path in paths:
        size = check_file(path)
        try:
            with path.open("rb") as stream:
                for record, data, check in _records(stream, path, size, table):
                    if not _put_event(table, data, record):
                        continue
                    # Sums in Python are slow, so only what is used is checked, not histograms and images.
                    if masked_crc(data) != check:
                        raise InputError(f"{path}: record {record}: its checksum is wrong; it is damaged")
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if table.rows == 0:
        raise InputError(f"{table.path}: holds no scalar; has the run logged anything yet?")
    return table


def _records(stream: BinaryIO, path: Path, size: int, table: Table) -> Iterator[tuple[int, bytes, int]]:
    """Number, data and checksum of every record that is small enough to hold scalars."""
    place, record = 0, 0
    while place < size:
        head = stream.read(12)
        length = int.from_bytes(head[:8], "little")
        if len(head) == 12 and masked_crc(head[:8]) != int.from_bytes(head[8:], "little"):
            raise InputError(
                f"{path}: byte {place}: the checksum of a record's length is wrong; the file is no event "
                "file or is damaged from there"
            )
        if len(head) < 12 or place + 16 + length > size:
            table.notes.append(f"{path.name} breaks off in record {record}, which is left out")
            return
        if length > LARGEST_RECORD:
            stream.seek(length + 4, 1)
        else:
            yield record, stream.read(length), int.from_bytes(stream.read(4), "little")
        place += 16 + length
        record += 1


def _put_event(table: Table, data: bytes, record: int) -> bool:
    """Add an event's scalars as a row; return whether there were any."""
    wall_time, step, scalars = 0.0, 0, []
    try:
        for number, kind, value in _fields(data):
            if (number, kind) == (1, _FIXED64):
                (wall_time,) = struct.unpack("<d", value)
            elif (number, kind) == (2, _VARINT):
                step = value
                step -= (step >> 63) << 64
            elif (number, kind) == (5, _BYTES):
                scalars += _scalars(value)
    except ValueError as error:
        raise InputError(f"{table.path}: record {record}: not an event ({error})") from None
    if not scalars:
        return False
    table.next_row(record)
    table.put(STEP, float(step))
    table.put(WALL_TIME, wall_time)
    for tag, scalar in scalars:
        table.put(tag, scalar)
    return True


def _scalars(summary: bytes) -> list[tuple[str, float]]:
    values = [item for number, kind, item in _fields(summary) if (number, kind) == (1, _BYTES)]
    return [scalar for scalar in map(_scalar, values) if scalar is not None]


def _scalar(data: bytes) -> tuple[str, float] | None:
    """Tag and number of a summary's value, None if it is an image, a histogram or text."""
    tag, found = "", None
    for number, kind, value in _fields(data):
        if (number, kind) == (1, _BYTES):
            tag = value.decode("utf-8", errors="replace")
        elif (number, kind) == (2, _FIXED32):
            (found,) = struct.unpack("<f", value)
        elif (number, kind) == (8, _BYTES):
            found = _tensor(value)
    return None if found is None or not tag else (tag, found)


def _tensor(data: bytes) -> float | None:
    """The number of a tensor that holds exactly one float or double."""
    dtype, numbers = 0, b""
    for number, kind, value in _fields(data):
        if (number, kind) == (1, _VARINT):
            dtype = value
        elif number in (4, 5, 6) and kind in (_BYTES, _FIXED32, _FIXED64):
            numbers = value
    layout = {_FLOAT: "<f", _DOUBLE: "<d"}.get(dtype)
    if layout is None or len(numbers) != struct.calcsize(layout):
        return None
    (value_,) = struct.unpack(layout, numbers)
    return float(value_)


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and content of every field of a message.

    Raises:
        ValueError: where the message breaks off or uses a wire type that events have not.
    """
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield key >> 3, kind, value
            continue
        if kind == _BYTES:
            length, place = _varint(data, place)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"wire type {kind}")
        if place + length > len(data):
            raise ValueError("a field breaks off")
        yield key >> 3, kind, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise ValueError("a number breaks off")
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (1 << 64) - 1, place
    raise ValueError("a number of more than 64 bits")
