"""Files that were made to hurt: bombs, pickles, endless lines, odd kinds of files."""

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mara.curves.readers import baselines, files, table
from mara.curves.readers.read import read_log
from mara.errors import InputError
from tests.curves.readers.samples import record, tensorboard


class Explosive:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, ("exploded",)


def refused(path: Path, **options: str) -> str:
    with pytest.raises(InputError) as caught:
        read_log(path, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def npz(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def test_pickles_are_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_bytes(pickle.dumps(Explosive()))
    assert "pickle" in refused(tmp_path / "log.csv")
    stream = io.BytesIO()
    np.save(stream, np.array([Explosive()], dtype=object), allow_pickle=True)
    path = npz(tmp_path / "evaluations.npz", timesteps=stream.getvalue(), results=stream.getvalue())
    assert "pickles are never read" in refused(path)
    assert not (tmp_path / "exploded").exists()


def test_bombs_in_archives_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    zeros = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000,), }", bytes(80_000_000))
    path = npz(tmp_path / "evaluations.npz", timesteps=zeros, results=zeros)
    assert path.stat().st_size < 1_000_000
    assert "unpacks to" in refused(path)
    promise = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (10**15,), }")
    assert refused(npz(tmp_path / "evaluations.npz", timesteps=promise, results=promise))
    promise = npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**15},), }}")
    assert "bytes for shape" in refused(npz(tmp_path / "evaluations.npz", timesteps=promise, results=promise))


def test_archives_above_their_size_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.npz"
    with path.open("wb") as stream:
        stream.write(b"PK\x03\x04")
        stream.truncate(baselines.MAX_ARCHIVE + 1)
    assert "above" in refused(path)


def test_documents_above_their_size_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    with path.open("wb") as stream:
        stream.write(b'{"log_history": [')
        stream.truncate(files.MAX_DOCUMENT + 1)
    assert "have to be read whole" in refused(path)


def test_endless_lines_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n1," + "9" * (files.MAX_LINE + 1))
    assert "line 2: longer than" in refused(path)
    path.write_text('step,loss\n1,"' + "x\n" * 200_000)
    assert "left open" in refused(path)


def test_too_many_numbers_or_columns_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.csv"
    monkeypatch.setattr(table, "MAX_VALUES", 1000)
    path.write_text("step,loss\n" + "1,2\n" * 1000)
    assert "more than 1,000 numbers" in refused(path)
    monkeypatch.setattr(table, "MAX_COLUMNS", 50)
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps({f"a{row}": row}) for row in range(60)))
    assert "more than 50 columns" in refused(path)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "[" + "9" * 10_000 + "]",
        '[{"loss": ' + "9" * 5000 + "}]",
        "[NaN",
        '{"loss": [[[1]]]}',
    ],
    ids=["deep", "deep objects", "giant", "giant loss", "cut", "nested lists"],
)
def test_odd_json_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(text)
    refused(path)


def test_deep_objects_are_not_followed_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    deep = '{"a":' * 400 + "1" + "}" * 400
    path.write_text(f'{{"step": 1, "loss": 2, "x": {deep}}}\n{{"step": 2, "loss": 1}}\n')
    assert read_log(path).values.tolist() == [2, 1]


def test_damaged_event_files_say_where(tmp_path: Path) -> None:
    path = tensorboard(tmp_path)
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    assert "checksum" in refused(path)
    path.write_bytes(record(b"\x2a\x05\x0a\xff\xff\xff\xff"))
    assert "record 0: not an event" in refused(path)


def test_an_event_file_that_is_still_written_is_read(tmp_path: Path) -> None:
    path = tensorboard(tmp_path)
    whole = read_log(path)
    path.write_bytes(path.read_bytes()[:-7])
    log = read_log(path)
    assert log.values.tolist() == whole.values.tolist()[:-1]
    assert "breaks off" in log.notes[0]


def test_a_json_log_that_is_still_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1, "loss": 2}\n{"step": 2, "loss": 1}\n{"step": 3, "lo')
    assert read_log(path).values.tolist() == [2, 1]
    path.write_text('{"step": 1, "loss": 2}\n{"step": 2, "lo\n{"step": 3, "loss": 1}\n')
    assert "line 2: not JSON" in refused(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "missing.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not a regular file" in refused(tmp_path / "pipe.csv")
    (tmp_path / "empty.csv").touch()
    assert "empty" in refused(tmp_path / "empty.csv")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    assert "cannot be read" in refused(tmp_path / "loop.csv")
    (tmp_path / "nothing").mkdir()
    assert "no log in this folder" in refused(tmp_path / "nothing")
    assert refused(Path("nul\0.csv"))


@pytest.mark.parametrize(
    "head", [b"\x1f\x8b\x08", b"\x89HDF\r\n", b"PAR1", b"\x93NUMPY\x01\x00", b":W&B\x00"]
)
def test_other_kinds_of_files_are_named(head: bytes, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(head + bytes(100))
    assert "expected a training log" in refused(tmp_path / "log")
