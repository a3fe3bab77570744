"""The recorded learning curves: their file format, its checks, and choosing among them.

Shapes: C curves, N = 200 points. Point n is the loss after n units; point 0 is the loss before training.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mara.errors import InputError
from mara.files import atomic_path

POINTS = 200
FAMILIES = ("supervised", "vision", "rl")
HELD_OUT_FAMILIES = ("vision", "rl")
SPLITS = ("train", "calibration", "validation", "test")
PARTS = ("predictor", "allocator")
DATA_DIRECTORY = Path(__file__).parent / "data"

TEXT_COLUMNS = ("id", "family", "dataset", "group", "config", "split")
INTEGER_COLUMNS = ("seed", "diverged_at")
CURVE_COLUMNS = ("train_loss", "validation_loss", "schedule")
SCHEMA = pa.schema(
    [(name, pa.string()) for name in TEXT_COLUMNS]
    + [("seed", pa.int64()), ("diverged_at", pa.int32())]
    + [(name, pa.list_(pa.float32(), POINTS)) for name in CURVE_COLUMNS]
)


@dataclass(frozen=True)
class Corpus:
    """C learning curves in file order."""

    id: NDArray[np.str_]
    """(C,) unique names."""
    family: NDArray[np.str_]
    """(C,) supervised, vision, rl, synthetic, or a name of one's own."""
    dataset: NDArray[np.str_]
    """(C,) data set or environment."""
    group: NDArray[np.str_]
    """(C,) data set x architecture."""
    split: NDArray[np.str_]
    """(C,) train, calibration, validation or test; the same within a group."""
    seed: NDArray[np.int64]
    """(C,) seed of the run."""
    config: list[dict[str, Any]]
    """C settings; runs of a group with equal settings are siblings."""
    loss: NDArray[np.float32]
    """(C, N) validation loss > 0, NaN from divergence on."""
    train_loss: NDArray[np.float32]
    """(C, N) training loss > 0, NaN from divergence on."""
    schedule: NDArray[np.float32]
    """(C, N) learning rate at each point, known before the run."""
    diverged_at: NDArray[np.int32]
    """(C,) first point without a finite loss, N where there is none."""

    def __len__(self) -> int:
        return len(self.id)

    def select(self, chosen: NDArray) -> Corpus:
        """The curves at a boolean mask (C,) or at indices, in that order."""
        rows = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        columns: dict[str, Any] = {
            field.name: getattr(self, field.name)[rows] for field in fields(self) if field.name != "config"
        }
        return Corpus(config=[self.config[row] for row in rows], **columns)

    def of(self, family: str | None = None, split: str | None = None, part: str | None = None) -> Corpus:
        """The curves of a family, a split and a part of the training split.

        Args:
            family: supervised, vision, rl, synthetic or another one that is here; None for all.
            split: train, calibration, validation or test; None for all.
            part: ``predictor`` (what predictors are fitted on) or ``allocator`` (what allocators are trained
                on, so that their forecasts are out of sample): about 75 % and 25 % of the training groups.

        Raises:
            ValueError: for a name that does not exist, or a part of another split than train.
        """
        families = (*FAMILIES, "synthetic", *dict.fromkeys(self.family.tolist()))
        for value, known in ((family, families), (split, SPLITS), (part, PARTS)):
            if value is not None and value not in known:
                raise ValueError(f"{value!r} is none of {', '.join(known)}")
        if part is not None and split not in (None, "train"):
            raise ValueError(f"split {split} has no parts, only train has")
        mask = np.ones(len(self), dtype=bool)
        if family is not None:
            mask &= self.family == family
        if split is not None or part is not None:
            mask &= self.split == (split or "train")
        if part is not None:
            mask &= np.array([part_of(group) == part for group in self.group], dtype=bool)
        return self.select(mask)


def part_of(group: str) -> str:
    """The part of the training split that a group belongs to, by a hash of its name."""
    place = int.from_bytes(hashlib.sha256(group.encode()).digest()[8:16]) / 2**64
    return "allocator" if place < 0.25 else "predictor"


def concatenate(parts: Sequence[Corpus]) -> Corpus:
    """One corpus of several, in order."""
    columns: dict[str, Any] = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(Corpus)
        if field.name != "config"
    }
    return Corpus(config=[config for part in parts for config in part.config], **columns)


def siblings(corpus: Corpus) -> list[NDArray[np.int64]]:
    """Rows of runs that differ in the seed only, one array for each set of two or more."""
    sets: dict[tuple[str, str], list[int]] = {}
    for row, (group, config) in enumerate(zip(corpus.group, corpus.config, strict=True)):
        sets.setdefault((str(group), json.dumps(config, sort_keys=True)), []).append(row)
    return [np.array(rows) for rows in sets.values() if len(rows) > 1]


def load_corpus(directory: Path | None = None) -> Corpus:
    """Read and check supervised.parquet, vision.parquet and rl.parquet, as many as the directory holds.

    Args:
        directory: where the files lie; None for the corpus that the package brings.

    Raises:
        InputError: in one line naming file, row and column, if anything is not as the data card says.
    """
    folder = DATA_DIRECTORY if directory is None else directory
    paths = [folder / f"{family}.parquet" for family in FAMILIES if (folder / f"{family}.parquet").exists()]
    if not paths:
        raise InputError(
            f"{folder}: no corpus here; expected supervised.parquet, vision.parquet or rl.parquet"
        )
    seen: dict[str, Path] = {}
    split_of: dict[str, tuple[str, Path]] = {}
    parts = []
    for path in paths:
        corpus = read_curves(path)
        for row, (name, group, split) in enumerate(zip(corpus.id, corpus.group, corpus.split, strict=True)):
            if name in seen:
                raise _problem(
                    path, row, name, "id", f"duplicate of a row in {seen[name].name}; ids must be unique"
                )
            seen[name] = path
            first, where = split_of.setdefault(group, (split, path))
            if first != split:
                raise _problem(
                    path,
                    row,
                    name,
                    "split",
                    f"group {group} is in {first} too ({where.name}); one split a group",
                )
        parts.append(corpus)
    return concatenate(parts)


def read_curves(path: Path, own_family: str | None = None) -> Corpus:
    """Read one file and check every row by itself.

    Args:
        path: the Parquet file.
        own_family: for curves that are not the package's: the family they get, all of them in the test
            split, whatever the file says.

    Raises:
        InputError: in one line naming file, row (from 0) and column.
    """
    try:
        table = pq.ParquetFile(path).read()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a Parquet file of curves") from None
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: not a whole Parquet file ({reason}); record or fetch it again") from None
    for name in SCHEMA.names:
        if name not in table.column_names:
            raise InputError(f"{path}: column {name} is missing; needed are {', '.join(SCHEMA.names)}")
        nulls = table.column(name).is_null().to_numpy()
        if nulls.any():
            raise InputError(f"{path}: row {nulls.argmax()}, column {name}: empty; every cell needs a value")
    text = {name: _text_column(table, name, path) for name in TEXT_COLUMNS}
    ids = text["id"]
    integers = {}
    for name in INTEGER_COLUMNS:
        if not pa.types.is_integer(table.schema.field(name).type):
            raise InputError(
                f"{path}: column {name} holds {table.schema.field(name).type}; expected whole numbers"
            )
        integers[name] = table.column(name).to_numpy()
    curves = {name: _curve_column(table, name, path, ids) for name in CURVE_COLUMNS}
    corpus = Corpus(
        **{name: text[name] for name in ("id", "family", "dataset", "group", "split")},
        seed=integers["seed"].astype(np.int64),
        config=[_config(cell, path, row, ids[row]) for row, cell in enumerate(text["config"])],
        loss=curves["validation_loss"],
        train_loss=curves["train_loss"],
        schedule=curves["schedule"],
        diverged_at=integers["diverged_at"].astype(np.int32),
    )
    if own_family is not None:
        names = np.full(len(corpus), own_family)
        corpus = replace(corpus, family=names, split=np.full(len(corpus), "test"))
    _check_names(corpus, path, (*FAMILIES, own_family) if own_family else FAMILIES)
    _check_values(corpus, path)
    return corpus


def write_curves(corpus: Corpus, path: Path) -> None:
    """Write curves as zstd Parquet in the format that :func:`read_curves` reads, whole or not at all."""
    columns: dict[str, pa.Array] = {
        name: pa.array([str(cell) for cell in getattr(corpus, name)], pa.string())
        for name in TEXT_COLUMNS
        if name != "config"
    }
    columns["config"] = pa.array(
        [json.dumps(config, sort_keys=True) for config in corpus.config], pa.string()
    )
    columns["seed"] = pa.array(corpus.seed, pa.int64())
    columns["diverged_at"] = pa.array(corpus.diverged_at, pa.int32())
    for name, values in (
        ("train_loss", corpus.train_loss),
        ("validation_loss", corpus.loss),
        ("schedule", corpus.schedule),
    ):
        flat = pa.array(np.ascontiguousarray(values, dtype=np.float32).ravel(), pa.float32())
        columns[name] = pa.FixedSizeListArray.from_arrays(flat, POINTS)
    table = pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)
    split_floats = ["train_loss.list.element", "validation_loss.list.element"]
    with atomic_path(path) as temporary:
        pq.write_table(
            table,
            temporary,
            compression="zstd",
            compression_level=19,
            use_dictionary=["family", "dataset", "group", "split"],
            use_byte_stream_split=split_floats,
        )


def _problem(path: Path, row: int, name: str, column: str, text: str) -> InputError:
    return InputError(f"{path}: row {row} ({name}), column {column}: {text}")


def _text_column(table: pa.Table, name: str, path: Path) -> NDArray[np.str_]:
    kind = table.schema.field(name).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise InputError(f"{path}: column {name} holds {kind}; expected text")
    return np.array(table.column(name).to_pylist(), dtype=np.str_)


def _curve_column(table: pa.Table, name: str, path: Path, ids: NDArray[np.str_]) -> NDArray[np.float32]:
    """The (C, N) values of a list column, whatever kind of list it is."""
    kind = table.schema.field(name).type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list or not pa.types.is_floating(kind.value_type):
        raise InputError(f"{path}: column {name} holds {kind}; expected lists of {POINTS} floats")
    column = table.column(name)
    lengths = np.array(pc.list_value_length(column).to_pylist(), dtype=np.int64)
    wrong = lengths != POINTS
    if wrong.any():
        row = int(wrong.argmax())
        raise _problem(path, row, ids[row], name, f"{lengths[row]} points; expected {POINTS}")
    flat = pc.list_flatten(column).combine_chunks()
    return flat.to_numpy(zero_copy_only=False).astype(np.float32).reshape(-1, POINTS)


def _config(cell: str, path: Path, row: int, name: str) -> dict[str, Any]:
    try:
        config = json.loads(cell)
    except json.JSONDecodeError as error:
        raise _problem(path, row, name, "config", f"not JSON ({error})") from None
    if not isinstance(config, dict):
        raise _problem(path, row, name, "config", "expected a JSON object of settings")
    return config


def _check_names(corpus: Corpus, path: Path, families: Sequence[str]) -> None:
    """Names known, ids unique, groups whole, held-out families held out."""
    seen: dict[str, int] = {}
    split_of: dict[str, str] = {}
    for row, name in enumerate(corpus.id):
        family, group, split = corpus.family[row], corpus.group[row], corpus.split[row]
        if name in seen:
            raise _problem(path, row, name, "id", f"duplicate of row {seen[name]}; ids must be unique")
        seen[name] = row
        if family not in families:
            raise _problem(
                path, row, name, "family", f"unknown family {family!r}; known are {', '.join(families)}"
            )
        if split not in SPLITS:
            raise _problem(
                path, row, name, "split", f"unknown split {split!r}; known are {', '.join(SPLITS)}"
            )
        if family in HELD_OUT_FAMILIES and split != "test":
            raise _problem(
                path, row, name, "split", f"{family} is held out, so its split must be test, not {split}"
            )
        if split_of.setdefault(group, split) != split:
            raise _problem(
                path, row, name, "split", f"group {group} is in {split_of[group]} too; one split a group"
            )


def _check_values(corpus: Corpus, path: Path) -> None:
    """Losses positive and finite up to the marked divergence and NaN from there on; learning rates known."""
    marked = (corpus.diverged_at >= 1) & (corpus.diverged_at <= POINTS)
    _refuse(
        marked, corpus, path, "diverged_at", lambda row: f"{corpus.diverged_at[row]}; expected 1 .. {POINTS}"
    )
    before = np.arange(POINTS) < corpus.diverged_at[:, None]
    for column, values in (("train_loss", corpus.train_loss), ("validation_loss", corpus.loss)):
        good = np.where(before, np.isfinite(values) & (values > 0), np.isnan(values))

        def describe(row: int, good: NDArray = good, values: NDArray = values) -> str:
            point = int((~good[row]).argmax())
            rule = "a finite loss > 0" if before[row, point] else "NaN from diverged_at on"
            return f"point {point} is {values[row, point]}; expected {rule}"

        _refuse(good, corpus, path, column, describe)
    known = np.isfinite(corpus.schedule) & (corpus.schedule >= 0)
    _refuse(
        known,
        corpus,
        path,
        "schedule",
        lambda row: f"point {(~known[row]).argmax()} is not a learning rate >= 0",
    )


def _refuse(good: NDArray, corpus: Corpus, path: Path, column: str, describe: Callable[[int], str]) -> None:
    """Raise for the first row of ``good`` (C,) or (C, N) that is not all true."""
    whole = good.reshape(len(corpus), -1).all(axis=1)
    if not whole.all():
        row = int(whole.argmin())
        raise _problem(path, row, corpus.id[row], column, describe(row))
