"""Forecasts as a table: one row for every task template and number of units it may have received.

What a task's loss does depends only on the units it has received, so forecasts are made once, before any
simulation, and looked up from then on.

Shape legend: J templates, R rows, H horizon in units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mara.errors import InputError
from mara.files import atomic_path

ROWS_MAX = 200
"""Rows of a template that never reaches its target: one for every point of a curve."""

SCALE = 65535
"""Fixed-point steps on disk between probability 0 and 1."""


def row_offsets(demand: NDArray[np.integer]) -> NDArray[np.int64]:
    """First row of every template and, last, the number of rows: (J+1,) from the demands (J,)."""
    rows = np.clip(np.asarray(demand, dtype=np.int64), 1, ROWS_MAX)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(rows)])


@dataclass(frozen=True)
class ForecastTable:
    """The forecasts of one predictor for every template of a pool.

    predictor: its name.
    offset: (J+1,) int64; the rows of template j are offset[j] .. offset[j+1] - 1, one for each whole number
        of units 0, 1, 2, … received before its demand.
    cdf: (R, H+1) float32, ``cdf[r, b]`` = P(remaining <= b units).
    point: (R,) float32, point estimate of the remaining units, not capped; inf = never.
    """

    predictor: str
    offset: NDArray[np.int64]
    cdf: NDArray[np.float32]
    point: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.point)

    @property
    def horizon(self) -> int:
        """H, the last unit of the grid."""
        return self.cdf.shape[1] - 1

    def row(self, template: NDArray[np.integer], units: NDArray[np.floating]) -> NDArray[np.int64]:
        """Row of each template after the units trained, which are rounded down and held at the last row."""
        first = self.offset[template]
        last = self.offset[np.asarray(template) + 1] - 1
        return np.minimum(first + np.floor(units).astype(np.int64), last)

    def save(self, path: Path) -> None:
        """Write a directory: name.txt, offset.npy, cdf.npy (uint16 fixed point, 65535 = 1), point.npy."""
        with atomic_path(path) as part:
            part.mkdir()
            (part / "name.txt").write_text(self.predictor + "\n", encoding="utf-8")
            np.save(part / "offset.npy", self.offset)
            np.save(part / "cdf.npy", np.rint(self.cdf * np.float32(SCALE)).astype(np.uint16))
            np.save(part / "point.npy", self.point)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a table; an :class:`InputError` says which of its files is missing or does not fit."""
        path = Path(path)
        try:
            predictor = (path / "name.txt").read_text(encoding="utf-8").strip()
            offset, fixed, point = (np.load(path / f"{part}.npy") for part in ("offset", "cdf", "point"))
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{path}: not a forecast table ({error}); make it anew") from None
        if fixed.ndim != 2 or not len(fixed) == len(point) == offset[-1]:
            raise InputError(
                f"{path}: {len(fixed)} rows in cdf, {len(point)} in point, {offset[-1]} by offset: must agree"
            )
        return cls(predictor, offset, fixed.astype(np.float32) / np.float32(SCALE), point)


def join_tables(tables: Sequence[ForecastTable], templates: int) -> ForecastTable:
    """The rows of the first ``templates`` of every table, as :func:`mara.workload.tasks.join_pools` joins pools."""
    offsets, ends = [np.zeros(1, dtype=np.int64)], []
    for table in tables:
        kept = min(templates, len(table.offset) - 1)
        offsets.append(table.offset[1 : kept + 1] + offsets[-1][-1])
        ends.append(int(table.offset[kept]))
    pairs = list(zip(tables, ends, strict=True))
    cdf = np.concatenate([table.cdf[:end] for table, end in pairs])
    point = np.concatenate([table.point[:end] for table, end in pairs])
    return ForecastTable(tables[0].predictor, np.concatenate(offsets), cdf, point)
