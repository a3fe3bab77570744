from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mara.curves.corpus import POINTS, Corpus, load_corpus, read_curves, write_curves
from mara.errors import InputError


def make_corpus(count: int = 6) -> Corpus:
    names = [f"set/net/{row:02d}-0" for row in range(count)]
    loss = np.linspace(2, 1, POINTS, dtype=np.float32) * np.ones((count, 1), dtype=np.float32)
    loss[1, 50:] = np.nan
    return Corpus(
        id=np.array(names),
        family=np.array(["supervised"] * count),
        dataset=np.array(["set"] * count),
        group=np.array(["set/net"] * count),
        split=np.array(["train"] * count),
        seed=np.arange(count),
        config=[{"learning_rate": 0.1}] * count,
        loss=loss,
        train_loss=loss.copy(),
        schedule=np.full((count, POINTS), 0.1, dtype=np.float32),
        diverged_at=np.array([POINTS, 50, *[POINTS] * (count - 2)], dtype=np.int32),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_curves(make_corpus(), tmp_path / "supervised.parquet")
    return tmp_path / "supervised.parquet"


def change(path: Path, column: str, edit: Callable[[list], list]) -> None:
    table = pq.read_table(path)
    values = edit(table.column(column).to_pylist())
    kind = table.schema.field(column).type
    if pa.types.is_fixed_size_list(kind):
        kind = pa.list_(pa.float32())
    index = table.column_names.index(column)
    pq.write_table(table.set_column(index, column, pa.array(values, kind)), path)


def put(row: int, value: object) -> Callable[[list], list]:
    return lambda cells: [value if number == row else cell for number, cell in enumerate(cells)]


def put_point(row: int, point: int, value: float) -> Callable[[list], list]:
    return lambda cells: [
        put(point, value)(cell) if number == row else cell for number, cell in enumerate(cells)
    ]


def test_what_is_written_is_read(path: Path) -> None:
    written, read = make_corpus(), load_corpus(path.parent)
    np.testing.assert_array_equal(read.loss, written.loss)
    np.testing.assert_array_equal(read.diverged_at, written.diverged_at)
    np.testing.assert_array_equal(read.id, written.id)
    assert read.config == written.config


@pytest.mark.parametrize(
    ("column", "edit", "told"),
    [
        ("validation_loss", put_point(2, 7, float("nan")), ["row 2", "validation_loss", "point 7"]),
        ("train_loss", put_point(3, 0, float("inf")), ["row 3", "train_loss", "point 0"]),
        ("validation_loss", put_point(2, 9, -1.0), ["row 2", "validation_loss", "point 9"]),
        ("validation_loss", put_point(1, 60, 0.5), ["row 1", "validation_loss", "point 60", "NaN"]),
        ("diverged_at", put(4, 100), ["row 4", "point 100"]),
        ("diverged_at", put(4, 0), ["row 4", "diverged_at"]),
        ("schedule", put_point(5, 3, float("nan")), ["row 5", "schedule", "point 3"]),
        ("validation_loss", put(2, [1.0] * 150), ["row 2", "validation_loss", "150"]),
        ("schedule", put(2, [1.0] * 201), ["row 2", "schedule", "201"]),
        ("id", put(3, "set/net/01-0"), ["row 3", "column id", "duplicate of row 1"]),
        ("split", put(3, "test"), ["row 3", "split", "set/net"]),
        ("split", put(0, "exam"), ["row 0", "split", "exam"]),
        ("family", put(2, "rl"), ["row 2", "split", "held out"]),
        ("family", put(2, "audio"), ["row 2", "family", "audio"]),
        ("config", put(1, "{broken"), ["row 1", "config", "JSON"]),
        ("config", put(1, "[1]"), ["row 1", "config", "object"]),
        ("group", put(4, None), ["row 4", "group", "empty"]),
        ("validation_loss", put(4, None), ["row 4", "validation_loss", "empty"]),
    ],
)
def test_a_bad_cell_gets_one_line_with_file_row_and_column(
    path: Path, column: str, edit: Callable[[list], list], told: list[str]
) -> None:
    change(path, column, edit)
    with pytest.raises(InputError) as raised:
        load_corpus(path.parent)
    message = str(raised.value)
    assert "\n" not in message
    for words in [str(path), *told]:
        assert words in message


@pytest.mark.parametrize("column", ["id", "validation_loss", "schedule", "seed"])
def test_a_missing_column_is_named(path: Path, column: str) -> None:
    pq.write_table(pq.read_table(path).drop_columns([column]), path)
    with pytest.raises(InputError, match=f"supervised.parquet: column {column} is missing"):
        read_curves(path)


@pytest.mark.parametrize("column", ["id", "seed", "train_loss"])
def test_a_column_of_another_type_is_named(path: Path, column: str) -> None:
    table = pq.read_table(path)
    index = table.column_names.index(column)
    wrong = table.set_column(index, column, pa.array([True] * table.num_rows))
    pq.write_table(wrong, path)
    with pytest.raises(InputError, match=f"column {column} holds bool; expected"):
        read_curves(path)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.99])
def test_a_truncated_file_is_named(path: Path, kept: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(InputError, match=r"supervised\.parquet: not a whole Parquet file") as raised:
        read_curves(path)
    assert "\n" not in str(raised.value)


def test_a_folder_without_curves_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no corpus here"):
        load_corpus(tmp_path)


def test_files_are_checked_against_each_other(path: Path) -> None:
    write_curves(make_corpus(), path.with_name("vision.parquet"))
    with pytest.raises(
        InputError, match=r"vision\.parquet: row 0 .*duplicate of a row in supervised\.parquet"
    ):
        load_corpus(path.parent)
