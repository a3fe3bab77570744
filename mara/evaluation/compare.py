"""What changed between two results folders, with intervals.

Every quantity that both folders' tables print with an interval is compared: the difference, its interval
as of two independent measurements (see :func:`~mara.evaluation.statistics.combine_difference`), and whether
the two intervals overlap. Verdicts that turned and rows that only one folder has are listed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from mara.errors import InputError
from mara.evaluation.completion import POOLED
from mara.evaluation.statistics import Interval, combine_difference, overlap

SETTING_KEY = ("suite", "workload", "load", "method")
RATE = ("completion_rate", "ci_low", "ci_high")
LEAD = ("difference_to_lara", "diff_low", "diff_high")
QUANTITIES: dict[str, tuple[tuple[str, ...], tuple[tuple[str, str, str], ...]]] = {
    "prediction": (
        ("predictor", "family", "split"),
        (("nmae", "nmae_low", "nmae_high"), ("ncrps", "ncrps_low", "ncrps_high")),
    ),
    "completion": (SETTING_KEY, (RATE, LEAD)),
    "attribution": (SETTING_KEY, (RATE, LEAD)),
    "ablation": (SETTING_KEY, (RATE, ("difference_to_mara", "mara_low", "mara_high"))),
    "stress": (SETTING_KEY, (RATE, LEAD)),
    "fairness": (SETTING_KEY, (("worst_family_rate", "worst_family_low", "worst_family_high"),)),
    "claims": (("claim",), (("measured", "ci_low", "ci_high"),)),
}
"""For each table: the columns that name a row, and each quantity with the ends of its interval."""
VERDICT = "holds"
"""Column of claims."""
KINDS = {"train_seed": str, VERDICT: str, "load": float}
"""Of columns whose values are compared as text, where 1 and 1.0 should be the same load."""

APART_BY_CHANCE = float(2 * stats.norm.sf(np.sqrt(2) * stats.norm.ppf(0.975)))
"""Share of pairs of independent, equally wide 95 % intervals of the same quantity that do not overlap: 0.6 %."""


@dataclass(frozen=True)
class Comparison:
    """How the second folder differs from the first.

    changes: one row a quantity: table, row, quantity, first, second, difference, low, high, overlap.
    turned: claims whose verdict differs: claim, first, second.
    unmatched: rows and whole tables found in one folder only: table, row, folder.
    """

    changes: pd.DataFrame
    turned: pd.DataFrame
    unmatched: pd.DataFrame

    @property
    def apart(self) -> pd.DataFrame:
        """The changes whose intervals do not overlap, largest first."""
        rows = self.changes[~self.changes["overlap"].astype(bool)]
        return rows.reindex(rows["difference"].abs().sort_values(ascending=False).index)

    def text(self, limit: int = 20) -> str:
        """A few lines for the terminal; at most ``limit`` rows of each kind."""
        total, apart = len(self.changes), self.apart
        if apart.empty:
            lines = [f"All {total} intervals that both have overlap."]
        else:
            by_chance = round(APART_BY_CHANCE * total)
            lines = [
                f"{len(apart)} of {total} intervals do not overlap (of independent ones that measure the same, "
                f"about {by_chance} would not):"
            ]
        for row in apart.head(limit).to_dict("records"):
            lines.append(
                f"  {row['table']}: {row['row']}: {row['quantity']} {row['first']:.4f} -> "
                f"{row['second']:.4f} ({row['difference']:+.4f} [{row['low']:+.4f}, {row['high']:+.4f}])"
            )
        if self.turned.empty:
            lines.append("No verdict turned.")
        for row in self.turned.to_dict("records"):
            lines.append(f"Verdict on {row['claim']} turned from {row['first']} to {row['second']}.")
        if len(self.unmatched):
            lines.append(f"{len(self.unmatched)} rows are in one of the two only:")
        for row in self.unmatched.head(limit).to_dict("records"):
            lines.append(f"  {row['table']}: {row['row']}: only in {row['folder']}")
        return "\n".join(lines)


def compare_results(first: Path, second: Path) -> Comparison:
    """Compare the tables of two results folders (``first/tables/*.csv`` with ``second/tables/*.csv``).

    Raises:
        InputError: a folder has no tables, or the two have no row in common that both print with an interval.
    """
    changes: list[dict[str, object]] = []
    unmatched: list[dict[str, object]] = []
    turned: list[dict[str, object]] = []
    for name, (key, quantities) in QUANTITIES.items():
        before, after = _read(first, name, key), _read(second, name, key)
        if before is None or after is None:
            unmatched.extend(
                {"table": name, "row": "the whole table", "folder": str(folder)}
                for folder, table in ((first, before), (second, after))
                if table is not None
            )
            continue
        for rows, others, folder in ((before, after, first), (after, before, second)):
            unmatched.extend(
                {"table": name, "row": row, "folder": str(folder)}
                for row in rows.index.difference(others.index)
            )
        for row in before.index.intersection(after.index, sort=False):
            sides = ((first / "tables", before.loc[row]), (second / "tables", after.loc[row]))
            changes.extend(_changes(name, row, sides, quantities))
            verdicts = [str(side.loc[row].get(VERDICT, "unknown")) for side in (before, after)]
            if name == "claims" and verdicts[0] != verdicts[1]:
                turned.append({"claim": row, "first": verdicts[0], "second": verdicts[1]})
    if not changes:
        raise InputError(
            f"{first} and {second}: no table has a row with an interval in both; give two results folders of "
            "the study"
        )
    return Comparison(
        _table(changes, "table row quantity first second difference low high overlap"),
        _table(turned, "claim first second"),
        _table(unmatched, "table row folder"),
    )


def _table(rows: Sequence[dict[str, object]], columns: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns.split())


def _read(folder: Path, name: str, key: tuple[str, ...]) -> pd.DataFrame | None:
    """The pooled rows of a table, indexed by a readable name; None where the folder lacks the table."""
    if not (folder / "tables").is_dir():
        raise InputError(f"{folder}: no folder tables/ in it; give a results folder")
    path = folder / "tables" / f"{name}.csv"
    if not path.exists():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
            table = pd.read_csv(path, dtype=KINDS, index_col=False, low_memory=False)
    except pd.errors.EmptyDataError:
        return None
    except (OSError, ValueError, pd.errors.ParserWarning) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: not a table ({reason}); give a folder that the study wrote") from None
    missing = [column for column in key if column not in table.columns]
    if missing:
        raise InputError(f"{path}: column {missing[0]!r} is missing; rows are told apart by {', '.join(key)}")
    if "train_seed" in table.columns:
        table = table[table["train_seed"] == POOLED]
    labels = table[list(key)].astype(str).agg(" ".join, axis=1) if len(table) else pd.Series(dtype=str)
    if labels.duplicated().any():
        raise InputError(f"{path}: row {labels[labels.duplicated()].iloc[0]!r} stands there twice; keep one")
    return table.set_index(labels.to_numpy())


def _changes(
    name: str,
    label: str,
    sides: Sequence[tuple[Path, pd.Series]],
    quantities: tuple[tuple[str, str, str], ...],
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for columns in quantities:
        if not all(column in row.index for _, row in sides for column in columns):
            continue
        first, second = (
            _interval(f"{folder / name}.csv: row {label!r}", row, columns) for folder, row in sides
        )
        if not (np.isfinite(first.estimate) and np.isfinite(second.estimate)):
            continue
        change = combine_difference(second, first)
        rows.append(
            {
                "table": name,
                "row": label,
                "quantity": columns[0],
                "first": first.estimate,
                "second": second.estimate,
                "difference": change.estimate,
                "low": change.low,
                "high": change.high,
                "overlap": overlap(first, second),
            }
        )
    return rows


def _interval(place: str, row: pd.Series, columns: tuple[str, str, str]) -> Interval:
    """A quantity of a row with its ends.

    Raises:
        InputError: naming the place, for a cell that is no number, or ends in the wrong order.
    """
    try:
        interval = Interval(*(float(row[column]) for column in columns))
    except ValueError as error:
        raise InputError(f"{place}: {error}; expected numbers in {', '.join(columns)}") from None
    if interval.low > interval.high:
        raise InputError(f"{place}: {columns[1]} lies above {columns[2]}; expected the lower end first")
    return interval
