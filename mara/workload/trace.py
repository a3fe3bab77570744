"""Traces: which template arrives when, for many episodes.

Arrival times are a unit-rate Poisson process read on the clock of the cumulative rate, so the k-th arrival
of an episode is the same template at every rate and process, and a higher rate only presses the arrivals
together: comparisons over loads are paired too. Each episode has a generator of its own; asking for more
episodes leaves the first ones unchanged.

Shapes: E episodes, T tasks of all episodes together (flat), S arrival slots, J templates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mara.config.workload import ArrivalSettings
from mara.errors import InputError
from mara.files import atomic_path
from mara.workload.arrivals import arrival_slots, read_submissions, replay_slots
from mara.workload.tasks import TaskPool

_WINDOW_SPREAD = 0.05  # share of the pool (by window) that a replayed window is drawn from


@dataclass(frozen=True)
class Trace:
    """Tasks of E episodes in flat arrays, sorted by arrival inside an episode."""

    offset: np.ndarray
    """(E+1,) int64: tasks of episode e are offset[e] .. offset[e+1]-1."""
    template: np.ndarray
    """(T,) int32 row in the task pool."""
    arrival: np.ndarray
    """(T,) int32 first slot in which the task may be trained."""
    deadline: np.ndarray
    """(T,) int32: slots arrival .. deadline-1 may be used."""
    scored: np.ndarray
    """(T,) bool: counts in the completion rate."""
    meta: dict[str, Any]
    """rate, process and the spans of slots."""

    def __len__(self) -> int:
        return len(self.template)

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.offset) - 1

    @property
    def episode(self) -> np.ndarray:
        """(T,) int32 episode of each task."""
        return np.repeat(np.arange(self.episodes, dtype=np.int32), np.diff(self.offset))

    def select(self, episodes: np.ndarray) -> Trace:
        """The trace of some episodes (indices), in the given order."""
        rows = [np.arange(self.offset[e], self.offset[e + 1]) for e in episodes]
        row = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
        offset = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
        arrival, deadline = self.arrival[row], self.deadline[row]
        return Trace(offset, self.template[row], arrival, deadline, self.scored[row], self.meta)

    def save(self, path: Path | str) -> None:
        """Write the trace as one Parquet file."""
        table = pa.table(
            {
                "episode": self.episode,
                "template": self.template,
                "arrival": self.arrival,
                "deadline": self.deadline,
                "scored": self.scored,
            }
        )
        meta = {**self.meta, "episodes": self.episodes}
        table = table.replace_schema_metadata({"trace": json.dumps(meta)})
        with atomic_path(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a trace; InputError when the file is not one."""
        try:
            table = pq.read_table(path)
            meta = json.loads((table.schema.metadata or {})[b"trace"])
            columns = [table[n].to_numpy() for n in ("episode", "template", "arrival", "deadline", "scored")]
        except (OSError, KeyError, pa.ArrowException) as error:
            raise InputError(f"{path}: not a trace ({error}); make it with the workload stage") from None
        episode, template, arrival, deadline, scored = columns
        if np.any(np.diff(episode) < 0):
            row = int(np.argmax(np.diff(episode) < 0)) + 1
            raise InputError(f"{path}: row {row}, column episode: rows must be sorted by episode")
        count = np.bincount(episode, minlength=meta["episodes"])
        offset = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        del meta["episodes"]
        return cls(offset, template, arrival, deadline, scored, meta)


def draw_weights(
    pool: TaskPool, slack: tuple[float, float] | None = None, mix: Mapping[str, float] | None = None
) -> np.ndarray:
    """Weights (J,) with which templates are drawn.

    Args:
        pool: the templates.
        slack: only those whose window is that many times ``reference_units`` (the lower end excluded).
        mix: share of each family among the arrivals; families that are not named do not arrive.

    Raises:
        InputError: no template is left, or a family with a share has none.
    """
    weight = np.ones(len(pool))
    if slack is not None:
        ratio = pool.window / np.maximum(pool.reference_units, 1)
        weight *= (ratio > slack[0]) & (ratio <= slack[1])
    if mix is not None:
        share = np.zeros(len(pool))
        for family, wanted in mix.items():
            there = (pool.family == family) * weight
            if wanted > 0 and not there.any():
                raise InputError(f"trace: the mix asks for tasks of {family!r}; the pool has none")
            share += wanted * there / max(there.sum(), 1.0)
        weight = share
    if not weight.any():
        raise InputError("trace: no task template is left to draw from; widen the slack or the mix")
    return weight


def make_trace(
    pool: TaskPool,
    arrivals: ArrivalSettings,
    rate: float,
    episodes: int,
    rng: np.random.Generator,
    weight: np.ndarray | None = None,
) -> Trace:
    """Draw the tasks of ``episodes`` episodes.

    ``rate`` is the mean number of arrivals a slot. Templates are drawn with replacement, with the weights
    (J,) if given (see :func:`draw_weights`); a replayed file with deadlines draws among the templates of about
    the window the file asks for.
    """
    if not (np.isfinite(rate) and rate > 0):
        raise InputError(f"trace: the arrival rate must be positive, not {rate}")
    if len(pool) == 0:
        raise InputError("trace: the task pool is empty")
    submissions = read_submissions(arrivals.replay_file) if arrivals.replay_file is not None else None
    by_window = np.argsort(pool.window, kind="stable")
    if weight is not None:
        by_window = by_window[weight[by_window] > 0]
    share = np.ones(len(by_window)) if weight is None else weight[by_window]
    cumulative = np.concatenate([[0.0], np.cumsum(share) / share.sum()])
    cumulative[-1] = 1.0
    slots, templates = [], []
    for generator in rng.spawn(episodes):
        when, which = generator.spawn(2)
        windows = None
        if submissions is None:
            slot = arrival_slots(arrivals, rate, when)
        else:
            slot, windows = replay_slots(arrivals, rate, submissions, when)
        u = which.uniform(size=len(slot))
        if windows is not None:
            place = cumulative[np.searchsorted(pool.window[by_window], windows)]
            u = np.clip(place + _WINDOW_SPREAD * (u - 0.5), 0, np.nextafter(1, 0))
        slots.append(slot)
        templates.append(by_window[np.searchsorted(cumulative, u, side="right") - 1])
    offset = np.concatenate([[0], np.cumsum([len(s) for s in slots])]).astype(np.int64)
    arrival = np.concatenate([np.zeros(0, np.int32), *slots]).astype(np.int32)
    template = np.concatenate([np.zeros(0, np.int64), *templates]).astype(np.int32)
    scored = (arrival >= arrivals.warm_up) & (arrival < arrivals.warm_up + arrivals.scored)
    meta = {
        "rate": float(rate),
        "process": arrivals.process,
        "warm_up": arrivals.warm_up,
        "scored_slots": arrivals.scored,
        "cool_down": arrivals.cool_down,
    }
    return Trace(offset, template, arrival, arrival + pool.window[template], scored, meta)
