"""Reading other people's files safely: sizes are checked first, lines are bounded, nothing is executed."""

from __future__ import annotations

import codecs
import stat
from collections.abc import Iterator
from pathlib import Path

from mara.errors import InputError

MAX_LINE = 1_000_000
"""Characters of a line."""
MAX_DOCUMENT = 64_000_000
"""Bytes of a file that has to be read whole (JSON, npz); the others are streamed."""
HEAD = 65_536
"""Bytes looked at to tell the format."""


def check_file(path: Path) -> int:
    """Size of a regular file.

    Raises:
        InputError: if there is none, it is empty, or it is something else than a file.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: cannot be read ({reason}); expected a training log") from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: not a regular file; expected a training log")
    if status.st_size == 0:
        raise InputError(f"{path}: the file is empty; has the run logged anything yet?")
    return status.st_size


def read_head(path: Path) -> bytes:
    """The first bytes of a file."""
    check_file(path)
    try:
        with path.open("rb") as stream:
            return stream.read(HEAD)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def read_document(path: Path) -> bytes:
    """A whole file of at most ``MAX_DOCUMENT`` bytes."""
    size = check_file(path)
    if size > MAX_DOCUMENT:
        raise InputError(
            f"{path}: {size:,} bytes; files of this format may have {MAX_DOCUMENT:,}, "
            "as they have to be read whole"
        )
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_DOCUMENT + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def encoding_of(head: bytes) -> str:
    """UTF-8 with or without a byte-order mark, or UTF-16 with one (as some spreadsheets write it)."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig"


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of every line, without its end.

    Bytes that are no text become replacement characters, which no number contains.

    Raises:
        InputError: for a line longer than ``MAX_LINE`` and for NUL characters, which text has not.
    """
    encoding = encoding_of(read_head(path))
    number = 0
    try:
        with path.open(encoding=encoding, errors="replace") as stream:
            while line := stream.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    raise InputError(
                        f"{path}: line {number}: longer than {MAX_LINE:,} characters; expected a log's line"
                    )
                if "\0" in line:
                    raise InputError(f"{path}: line {number}: holds NUL characters; expected text")
                yield number, line.rstrip("\n")
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path}: line {number + 1}: cannot be read ({error})") from None
