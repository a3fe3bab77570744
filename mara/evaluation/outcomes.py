"""All methods' scored tasks in one setting, arranged so that any of them can be compared in pairs.

Input is one frame per method and training seed with a row per task (columns in ``COLUMNS``). Methods are
compared on the episodes that both of them ran: the exact bound is expensive and may cover fewer.

Shapes: T scored tasks, U units (curve groups or episodes), S training seeds, K methods, B resamples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mara.config.evaluation import EvaluationSettings
from mara.errors import InputError
from mara.evaluation.statistics import Floats, Resampled, Sums, resample_weights, resampled_ratios

COLUMNS = (
    "episode",
    "template",
    "group",
    "family",
    "arrival",
    "deadline",
    "scored",
    "completed",
    "finish",
    "first_served",
    "units",
)

Unit = Literal["group", "episode"]
Runs = Mapping[str, Mapping[int, pd.DataFrame]]


class Setting(NamedTuple):
    """Where episodes come from: the suite, the workload and the load as a multiple of the training load."""

    suite: str
    workload: str
    load: float

    def __str__(self) -> str:
        return f"{self.suite}/{self.workload}/load{self.load:g}"


@dataclass(frozen=True)
class Scored:
    """The scored tasks of one run: episode and group codes, whether completed; each (T,)."""

    episode: NDArray[np.int64]
    group: NDArray[np.int64]
    completed: NDArray[np.bool_]


def scored_rows(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """The rows that count, those that arrived inside the scored span.

    Raises:
        InputError: a column is missing, or no task is scored.
    """
    missing = [column for column in COLUMNS if column not in frame.columns]
    if missing:
        raise InputError(f"{where}: column {missing[0]!r} is missing; outcomes need {', '.join(COLUMNS)}")
    rows = frame[frame["scored"].to_numpy(dtype=bool)]
    if rows.empty:
        raise InputError(f"{where}: no task arrived inside the scored span; lengthen it or raise the rate")
    return rows


class PairedOutcomes:
    """The runs of one setting: totals of each run, and resampled rates with the same draws for all."""

    def __init__(self, setting: Setting, runs: Runs, settings: EvaluationSettings) -> None:
        """Index ``runs``, a mapping from method to training seed to per-task frame.

        Raises:
            InputError: a method has no run, or two runs of the same episodes saw different tasks.
        """
        self.setting = setting
        self.settings = settings
        self.methods = tuple(runs)
        self.seeds = {method: tuple(sorted(frames)) for method, frames in runs.items()}
        self._scored: dict[str, dict[int, Scored]] = {}
        self._group_code: dict[str, int] = {}
        self._weights: dict[int, Floats] = {}
        self._counted: dict[tuple[str, int, Unit, frozenset[int]], tuple[Floats, Floats]] = {}
        arrivals: dict[int, int] = {}
        for method, frames in runs.items():
            if not frames:
                raise InputError(f"{setting}: method {method!r} has no run; give at least one training seed")
            self._scored[method] = {}
            for seed in self.seeds[method]:
                where = f"{setting}/{method}/seed{seed}"
                rows = scored_rows(frames[seed], where)
                self._check_same_tasks(rows, arrivals, where)
                self._scored[method][seed] = self._index(rows)
        self._episodes = {
            method: frozenset.intersection(*(frozenset(s.episode.tolist()) for s in by_seed.values()))
            for method, by_seed in self._scored.items()
        }

    def _index(self, rows: pd.DataFrame) -> Scored:
        codes, names = pd.factorize(rows["group"])
        lookup = np.array([self._group_code.setdefault(str(n), len(self._group_code)) for n in names])
        return Scored(
            rows["episode"].to_numpy(dtype=np.int64), lookup[codes], rows["completed"].to_numpy(dtype=bool)
        )

    @staticmethod
    def _check_same_tasks(rows: pd.DataFrame, arrivals: dict[int, int], where: str) -> None:
        """Compare a fingerprint of every episode's tasks with that of the runs read before."""
        tasks = rows[["episode", "template", "arrival", "deadline"]].to_numpy(dtype=np.int64)
        tasks = tasks[np.lexsort((tasks[:, 1], tasks[:, 2], tasks[:, 0]))]
        episodes, starts = np.unique(tasks[:, 0], return_index=True)
        for episode, block in zip(episodes.tolist(), np.split(tasks, starts[1:]), strict=True):
            fingerprint = hash(block.tobytes())
            if arrivals.setdefault(episode, fingerprint) != fingerprint:
                raise InputError(
                    f"{where}: episode {episode} has other tasks than the other methods' episode {episode}; "
                    "run every method on the same trace"
                )

    def episodes(self, method: str) -> frozenset[int]:
        """The episodes that every run of ``method`` covers."""
        return self._episodes[method]

    def totals(self, method: str, seeds: Sequence[int] | None = None) -> tuple[int, int]:
        """Tasks completed and arrived, summed over ``seeds`` (all by default), on all their episodes."""
        runs = [self._scored[method][seed] for seed in (self.seeds[method] if seeds is None else seeds)]
        return sum(int(r.completed.sum()) for r in runs), sum(r.completed.size for r in runs)

    def groups(self, method: str) -> int:
        """Number of distinct curve groups among the scored tasks."""
        return np.unique(np.concatenate([s.group for s in self._scored[method].values()])).size

    def resample(
        self,
        methods: Sequence[str],
        unit: Unit = "group",
        seeds: Mapping[str, Sequence[int]] | None = None,
    ) -> Resampled:
        """Resampled completion rates of ``methods`` on the episodes that all of them ran.

        ``seeds`` restricts a method to some of its training seeds. The same units are drawn in every call.

        Raises:
            InputError: the methods have no episode in common.
        """
        common = frozenset.intersection(*(self.episodes(method) for method in methods))
        if not common:
            names = ", ".join(methods)
            raise InputError(f"{self.setting}: {names} share no episode; evaluate them on one trace")
        chosen = {method: (seeds or {}).get(method, self.seeds[method]) for method in methods}
        blocks = {method: [self._sums(method, s, unit, common) for s in chosen[method]] for method in methods}
        present = np.flatnonzero(sum(t for pairs in blocks.values() for _, t in pairs))
        sums = [
            Sums(
                np.stack([h[present] for h, _ in blocks[method]], axis=1),
                np.stack([t[present] for _, t in blocks[method]], axis=1),
            )
            for method in methods
        ]
        if present.size not in self._weights:
            rng = np.random.default_rng(self.settings.seed)
            self._weights[present.size] = resample_weights(present.size, self.settings.resamples, rng)
        return resampled_ratios(
            sums, self._weights[present.size], np.random.default_rng([self.settings.seed, 1])
        )

    def _sums(self, method: str, seed: int, unit: Unit, common: frozenset[int]) -> tuple[Floats, Floats]:
        """Completed and arrived tasks by unit, (U,) each, on the episodes ``common``."""
        key = (method, seed, unit, common)
        if key not in self._counted:
            run, kept = self._scored[method][seed], np.array(sorted(common), dtype=np.int64)
            place = np.minimum(np.searchsorted(kept, run.episode), kept.size - 1)
            inside = kept[place] == run.episode
            code, size = (run.group, len(self._group_code)) if unit == "group" else (place, kept.size)
            arrived = np.bincount(code[inside], minlength=size).astype(np.float64)
            completed = np.bincount(code[inside & run.completed], minlength=size).astype(np.float64)
            self._counted[key] = completed, arrived
        return self._counted[key]
