"""Result tables inside the page: every row has an anchor, so that a claim can point at its row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from mara.errors import InputError

LONGEST = 400
"""Rows of a table that are printed; the rest stand in the file."""

POOLED = "all"


@dataclass(frozen=True)
class Sheet:
    """A table for the page: column names, rows of (anchor, cells), and how many rows were left out."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    omitted: int


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """All CSV files of a folder by name, as text apart from what is clearly a number.

    Raises:
        InputError: the folder has no ``claims.csv`` or no ``losses.csv``, or a file is not a table.
    """
    tables = {}
    for path in sorted(folder.glob("*.csv")):
        try:
            tables[path.stem] = pd.read_csv(
                path,
                dtype={"train_seed": str, "holds": str, "level": str, "published": str, "n": str},
                keep_default_na=False,
                na_values=["", "nan", "NaN"],
            )
        except pd.errors.EmptyDataError:
            tables[path.stem] = pd.DataFrame()
        except (ValueError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: not a readable CSV table ({str(error).splitlines()[0]})") from None
    for needed in ("claims", "losses"):
        if needed not in tables:
            raise InputError(f"{folder / needed}.csv: no such file; the report's first page needs it")
    return tables


def sheet(name: str, table: pd.DataFrame) -> Sheet:
    """A table with its cells as text."""
    shown = table.head(LONGEST)
    rows = tuple(
        (f"{name}-{i}", tuple(cell(value) for value in values))
        for i, values in enumerate(shown.itertuples(index=False, name=None))
    )
    return Sheet(name, tuple(map(str, table.columns)), rows, len(table) - len(shown))


def cell(value: object) -> str:
    """A value as printed: numbers with a fraction to four significant decimals, unknown as a dash."""
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    return str(value)


def locate(where: str, tables: dict[str, pd.DataFrame]) -> list[tuple[str, str]]:
    """The places that a claim names, as (text, anchor); the anchor is "" for what cannot be found.

    ``where`` reads "completion.csv: suite=unseen_load, load=2, method=mara"; several places are parted
    by "; ". Without conditions the anchor is the whole table's.
    """
    return [(place, _anchor(place, tables)) for place in where.split("; ")]


def _anchor(place: str, tables: dict[str, pd.DataFrame]) -> str:
    file, _, conditions = place.partition(": ")
    name = file.removesuffix(".csv")
    if name not in tables:
        return ""
    table = tables[name]
    match = pd.Series(True, index=table.index)
    if "train_seed" in table.columns:
        match &= table["train_seed"] == POOLED
    for condition in filter(None, conditions.split(", ")):
        column, _, wanted = condition.partition("=")
        if column not in table.columns:
            return f"table-{name}"
        match &= table[column].map(cell) == wanted
    found = [i for i, hit in enumerate(match) if hit]
    return f"{name}-{found[0]}" if conditions and found and found[0] < LONGEST else f"table-{name}"
