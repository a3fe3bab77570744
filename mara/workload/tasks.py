"""Task templates: a learning curve with a target and a window, set as a user would set them.

A user knows how another run of the same group went. The target is what that run (the reference) had
reached, best smoothed, at its unit d', times a noise; the window is slack * d', times a noise. Neither sees
the task's own curve, so neither leaks its demand; some tasks are unreachable or too late by nature. The
share that is feasible on an empty cluster is then stratified, and the natural shares are kept beside it.

Shapes: C curves of the corpus, N points a curve, J templates, K candidates drawn at a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mara.config.workload import TaskSettings
from mara.curves.corpus import Corpus
from mara.curves.smoothing import NEVER, demand, smooth
from mara.errors import InputError
from mara.files import atomic_path

_BATCH = 8192
_DRAWS = 400


@dataclass(frozen=True)
class TaskPool:
    """J task templates; episodes draw from them with replacement."""

    curve: np.ndarray
    """(J,) int32 row of the curve in the corpus the pool was made from; `rows_in` finds it in any other."""
    curve_id: np.ndarray
    """(J,) str id of the curve."""
    group: np.ndarray
    """(J,) str group of the curve."""
    family: np.ndarray
    """(J,) str family of the curve."""
    target: np.ndarray
    """(J,) float32 loss to reach (smoothed)."""
    window: np.ndarray
    """(J,) int32 slots from arrival to deadline."""
    demand: np.ndarray
    """(J,) int32 units after which the target is reached, NEVER where it is not."""
    reference_units: np.ndarray
    """(J,) int32 units after which the reference run had reached the (noise-free) target."""
    natural: dict[str, float]
    """Shares before stratification: feasible, too_late, unreachable; and of long demands among feasible."""
    reference_id: np.ndarray | None = None
    """(J,) str id of the run that set target and window; None where targets come from elsewhere."""

    def __len__(self) -> int:
        return len(self.curve)

    @property
    def feasible(self) -> np.ndarray:
        """(J,) bool: reachable within the window at speed 1 on an empty cluster."""
        return self.demand <= self.window

    def rows_in(self, corpus: Corpus) -> np.ndarray:
        """Rows (J,) int64 of the templates' curves in ``corpus``; InputError when one is missing."""
        row = {name: i for i, name in enumerate(corpus.id)}
        try:
            return np.array([row[name] for name in self.curve_id], dtype=np.int64)
        except KeyError as error:
            problem = f"task pool: curve {error} is not in the corpus; use the corpus it was made from"
            raise InputError(problem) from None

    def save(self, path: Path | str) -> None:
        """Write the pool as one Parquet file."""
        table = pa.table(self._columns()).replace_schema_metadata({"natural": json.dumps(self.natural)})
        with atomic_path(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a pool; InputError when the file is not one."""
        try:
            table = pq.read_table(path)
            natural = json.loads((table.schema.metadata or {})[b"natural"])
            names = [f.name for f in fields(cls) if f.name not in ("natural", "reference_id")]
            names += [name for name in ("reference_id",) if name in table.column_names]
            columns = {name: table[name].to_numpy(zero_copy_only=False) for name in names}
        except (OSError, KeyError, pa.ArrowException) as error:
            raise InputError(f"{path}: not a task pool ({error}); make it with the workload stage") from None
        for name in {"curve_id", "group", "family", "reference_id"} & set(columns):
            columns[name] = columns[name].astype(str)
        return cls(**columns, natural=natural)

    def select(self, keep: np.ndarray) -> TaskPool:
        """The templates at a mask or at indices, with the same natural shares."""
        return replace(self, **{name: column[keep] for name, column in self._columns().items()})

    def _columns(self) -> dict[str, np.ndarray]:
        """The columns that there are, by name."""
        columns = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "natural"}
        return {name: column for name, column in columns.items() if column is not None}


def join_pools(pools: Sequence[TaskPool], templates: int) -> TaskPool:
    """The first ``templates`` of every pool, one pool after another; natural shares are means over pools.

    ``curve`` still counts within each pool's own corpus: find curves by `rows_in`.
    """
    kept = [pool.select(np.arange(min(templates, len(pool)))) for pool in pools]
    parts = [pool._columns() for pool in kept]
    shared = [name for name in parts[0] if all(name in part for part in parts)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in shared}
    natural = {name: float(np.mean([pool.natural[name] for pool in kept])) for name in kept[0].natural}
    return TaskPool(**columns, natural=natural)


@dataclass(frozen=True)
class _Candidates:
    """K candidate tasks, all with a real improvement and at least the least demand."""

    curve: np.ndarray
    target: np.ndarray
    window: np.ndarray
    demand: np.ndarray
    reference_units: np.ndarray
    reference: np.ndarray

    def take(self, keep: np.ndarray) -> _Candidates:
        return _Candidates(*(getattr(self, f.name)[keep] for f in fields(self)))


class _Drawer:
    """Draws candidates: a group uniformly, a curve in it, a reference run in it."""

    def __init__(self, corpus: Corpus, settings: TaskSettings) -> None:
        self.settings = settings
        self.smoothed = smooth(corpus.loss)
        finite = np.where(np.isfinite(self.smoothed), self.smoothed, np.inf)
        self.best = np.minimum.accumulate(finite, axis=1)  # (C, N)
        unit = np.arange(finite.shape[1])
        new_best = np.diff(self.best, axis=1, prepend=np.inf) < 0
        self.reached = np.maximum.accumulate(np.where(new_best, unit, 0), axis=1)  # unit of the best so far
        _, code, size = np.unique(corpus.group, return_inverse=True, return_counts=True)
        least = 2 if settings.reference == "sibling" else 1
        self.members = np.argsort(code, kind="stable")
        start = np.concatenate([[0], np.cumsum(size)[:-1]])
        self.start, self.size = start[size >= least], size[size >= least]
        if not len(self.size):
            raise InputError("task pool: no group has two runs; targets come from another run of the group")

    def draw(self, rng: np.random.Generator) -> _Candidates:
        """Up to _BATCH candidates; those without a real improvement are left out."""
        s, count = self.settings, _BATCH
        group = rng.integers(len(self.size), size=count)
        start, size = self.start[group], self.size[group]
        place = rng.integers(size)
        other = (place + 1 + rng.integers(np.maximum(size - 1, 1))) % size
        curve, reference = self.members[start + place], self.members[start + other]
        if s.reference == "own":
            reference = curve
        low, high = s.reference_units
        drawn = np.rint(np.exp(rng.uniform(np.log(low), np.log(high), size=count))).astype(np.int64)
        unit = self.reached[reference, drawn]
        level = self.best[reference, unit]
        real = (unit >= low) & (level <= (1 - s.improvement) * self.smoothed[reference, 0])
        real &= level <= (1 - s.recent_improvement) * self.best[reference, unit // 2]
        target = (level * np.exp(s.target_noise * rng.standard_normal(count))).astype(np.float32)
        slack = np.exp(rng.uniform(np.log(s.slack[0]), np.log(s.slack[1]), size=count))
        window = np.rint(slack * unit * np.exp(s.window_noise * rng.standard_normal(count)))
        cap = np.floor(s.longest_window * (1 - s.window_jitter * rng.uniform(size=count)))
        window = np.clip(window, 1, np.maximum(cap, 1)).astype(np.int32)
        need = demand(self.smoothed[curve], target)
        whole = [column.astype(np.int32) for column in (need, unit, reference)]
        found = _Candidates(curve.astype(np.int32), target, window, *whole)
        return found.take(np.flatnonzero(real & (need >= s.least_demand)))


def make_pool(corpus: Corpus, settings: TaskSettings, rng: np.random.Generator) -> TaskPool:
    """Draw a pool of task templates from the curves of ``corpus``.

    Raises InputError when the corpus cannot give the asked shares (for example no long demands at all).
    """
    drawer = _Drawer(corpus, settings)
    quota = _quotas(settings)
    kept: list[_Candidates] = []
    have = np.zeros(len(quota), dtype=np.int64)
    seen = np.zeros(4, dtype=np.int64)  # feasible short, feasible long, too late, unreachable
    for _ in range(_DRAWS):
        found = drawer.draw(rng)
        kind = _kind(found, settings)
        seen += np.bincount(kind, minlength=4)
        stratum = _STRATA[len(quota)][kind]
        for q in range(len(quota)):
            chosen = np.flatnonzero(stratum == q)[: quota[q] - have[q]]
            have[q] += len(chosen)
            kept.append(found.take(chosen))
        if np.all(have == quota):
            break
    else:
        raise InputError(
            f"task pool: {len(corpus)} curves give only {have.tolist()} of {quota.tolist()} tasks a stratum "
            f"(shares found: {_shares(seen)}); ask for other shares or more curves"
        )
    columns = {f.name: np.concatenate([getattr(k, f.name) for k in kept]) for f in fields(_Candidates)}
    order = rng.permutation(settings.templates)
    columns = {name: column[order] for name, column in columns.items()}
    curve, reference = columns["curve"], columns.pop("reference")
    return TaskPool(
        curve_id=corpus.id[curve].astype(str),
        group=corpus.group[curve].astype(str),
        family=corpus.family[curve].astype(str),
        natural=_shares(seen),
        reference_id=corpus.id[reference].astype(str),
        **columns,
    )


def _kind(found: _Candidates, settings: TaskSettings) -> np.ndarray:
    """0 feasible and short, 1 feasible and long, 2 too late, 3 unreachable: (K,) int."""
    late = np.where(found.demand == NEVER, 3, 2)
    return np.where(found.demand <= found.window, (found.demand > settings.long_demand).astype(int), late)


# Stratum of each kind when there are one, two or three strata.
_STRATA = {1: np.array([0, 0, 0, 0]), 2: np.array([0, 0, 1, 1]), 3: np.array([0, 1, 2, 2])}


def _quotas(settings: TaskSettings) -> np.ndarray:
    """Templates per stratum: all; feasible, not; feasible short, feasible long, not."""
    if settings.feasible_share is None:
        return np.array([settings.templates])
    feasible = round(settings.templates * settings.feasible_share)
    if settings.long_share is None:
        return np.array([feasible, settings.templates - feasible])
    long = round(feasible * settings.long_share)
    return np.array([feasible - long, long, settings.templates - feasible])


def _shares(seen: np.ndarray) -> dict[str, float]:
    total, feasible = max(int(seen.sum()), 1), max(int(seen[0] + seen[1]), 1)
    return {
        "feasible": float(seen[0] + seen[1]) / total,
        "too_late": float(seen[2]) / total,
        "unreachable": float(seen[3]) / total,
        "long_among_feasible": float(seen[1]) / feasible,
    }
