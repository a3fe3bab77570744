"""Damaged files for every reader: ``python -m tests.curves.readers.fuzz --seconds 300 [--only FORMAT]``.

A case is a sample of the format (:mod:`tests.curves.readers.samples`) that is cut, doubled, flipped or spiced
with words that parsers stumble on, or is built anew from odd parts (records with right checksums around wrong
messages, archives with odd headers). Whatever it is, a reader has to answer within a second or two, either
with one line that names the file or with a log that holds nothing but what the file says.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

from mara.curves.readers.log import Log, shortfall
from mara.curves.readers.read import READERS, read_log
from mara.errors import InputError
from tests.curves.readers.samples import LOSSES, MAKERS, record

WORDS = [
    *(
        b",",
        b";",
        b"\t",
        b"|",
        b'"',
        b"'",
        b"\n",
        b"\r\n",
        b"\r",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xfe\xff",
    ),
    *(b"nan", b"-inf", b"1e999", b"1e-400", b"0x10", b"1_0", b"0,5", b"1.234,5", b"1,234.5", b"-", b"None"),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b'{"loss": 1}',
        b"null",
        b"true",
        b"9" * 400,
        b"#",
        b"step",
        b"loss",
        b" ",
    ),
    *(b"epoch,step\n", b"\xd9\xa3", "½".encode(), b"\\u0000", b"\\", b"\x80\x04", b"PK\x05\x06", b"\x00" * 9),
]
SLOW = 5.0
"""Seconds after which a small file counts as a hang."""


def samples() -> dict[str, list[tuple[str, bytes]]]:
    """Names and bytes of the sample files by format."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for make, (form, _, _) in MAKERS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = make(Path(folder), LOSSES[:12])
            found.setdefault(form, []).append((path.name, path.read_bytes()))
    return found


SAMPLES = samples()


def damaged(form: str, rng: random.Random) -> tuple[str, bytes]:
    """A file's name and bytes."""
    name, data = rng.choice(SAMPLES[form])
    if form == "tensorboard" and rng.random() < 0.6:
        return name, _reframed(data, rng)
    if form == "evaluations" and rng.random() < 0.7:
        return name, _repacked(data, rng)
    if rng.random() < 0.02:
        return name, rng.randbytes(rng.randrange(200))
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        data = _mutated(data, rng)
    return name, data


def _mutated(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    end = min(start + rng.choice((1, 1, 2, 4, 8, 40, 200)), len(data))
    kind = rng.randrange(6)
    if kind == 0:
        return data[:start] + data[end:]
    if kind == 1:
        return data[:end] + data[start:]
    if kind == 2:
        return data[:start] + rng.choice(WORDS) + data[end if rng.random() < 0.5 else start :]
    if kind == 3 and start < len(data):
        return data[:start] + bytes([data[start] ^ 1 << rng.randrange(8)]) + data[start + 1 :]
    if kind == 4 and rng.random() < 0.2:
        return data[:start]
    lines = data.split(b"\n")
    here, there = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[here], lines[there] = lines[there], lines[here]
    return b"\n".join(lines)


def _reframed(data: bytes, rng: random.Random) -> bytes:
    """Event files whose checksums are right and whose messages are not."""
    bodies, place = [], 0
    while place < len(data):
        length = int.from_bytes(data[place : place + 8], "little")
        bodies.append(data[place + 12 : place + 12 + length])
        place += 16 + length
    for _ in range(rng.choice((1, 3))):
        which = rng.randrange(len(bodies))
        bodies[which] = _mutated(bodies[which], rng)
    return b"".join(record(body) for body in bodies)


def _repacked(data: bytes, rng: random.Random) -> bytes:
    """Archives that are whole, with arrays that are not."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w", rng.choice((0, 8))) as new:
        for entry in old.infolist():
            content = old.read(entry)
            if rng.random() < 0.6:
                content = _mutated(content, rng)
            if rng.random() < 0.1:
                odd = io.BytesIO()
                values = rng.choice(
                    [np.zeros(0), np.array(["a"]), np.array(1.0), np.zeros((3, 0)), np.arange(12) > 5]
                )
                np.save(odd, values)
                content = odd.getvalue()
            new.writestr(entry.filename, content)
    return stream.getvalue()


def check(name: str, data: bytes, form: str | None, folder: Path) -> str:
    """Read the bytes and judge the answer; what it was.

    Raises:
        AssertionError: for an answer that is not one line or a sound log; other exceptions are crashes.
    """
    path = folder / name
    path.write_bytes(data)
    begun = time.process_time()
    try:
        log = read_log(path, form)
        shortfall(log)
    except InputError as error:
        _check_message(str(error), path)
        return "refused"
    finally:
        path.unlink()
        assert time.process_time() - begun < SLOW, "too slow"
    _check_log(log, data)
    return "read"


def _check_message(message: str, path: Path) -> None:
    assert "\n" not in message, message
    assert len(message) < 2000, message
    assert str(path) in message, message


def _check_log(log: Log, data: bytes) -> None:
    assert len(log.values) == len(log.position) >= 1
    assert np.all(np.isfinite(log.values))
    assert np.all(np.isfinite(log.position))
    assert np.all(np.diff(log.position) > 0)
    assert log.seconds is None or len(log.seconds) == len(log.values)
    assert all("\n" not in note for note in log.notes)
    loss = shortfall(log).values
    assert np.all(loss > 0)
    assert np.all(np.isfinite(loss))
    if log.format not in ("tensorboard", "evaluations"):
        written = _numbers(data)
        assert all(value in written for value in log.values.tolist()), "a value that the file does not have"


def _numbers(data: bytes) -> set[float]:
    """All numbers that a text writes, with decimal commas too."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    text = data.decode(encoding, errors="replace")
    found = set()
    for piece in re.split(r"[\s;|\"'\[\]{}:]+|,(?!\d)", text):
        for word in {piece, piece.replace(",", "."), *piece.split(",")}:
            try:
                found.add(float(word))
            except ValueError:
                continue
    return found


def main() -> None:
    """Fuzz every reader for some time each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for each format")
    parser.add_argument("--only", choices=READERS)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for form in [arguments.only] if arguments.only else READERS:
        answers: Counter[str] = Counter()
        seed, end = arguments.seed, time.monotonic() + arguments.seconds
        with tempfile.TemporaryDirectory() as folder:
            while time.monotonic() < end:
                seed += 1
                rng = random.Random(f"{form} {seed}")
                name, data = damaged(form, rng)
                try:
                    answers[check(name, data, rng.choice((None, form)), Path(folder))] += 1
                except Exception:
                    print(f"{form}: seed {seed}: {data[:2000]!r}", flush=True)
                    raise
        print(
            f"{form}: {answers.total()} files, {answers['read']} read, {answers['refused']} refused",
            flush=True,
        )


if __name__ == "__main__":
    main()
