"""Examples to fit predictors on: prefixes with targets, and how many further units it took.

Two kinds. *Tasks* ask what the workload will ask: targets and windows taken from another run of the group,
any number of units up to the demand. *Fractions* ask for a fraction of the best loss so far at a random
prefix, and carry no window. Tasks are mostly reached and fractions mostly not, and only the window tells
them apart: a predictor that does not see the window is fitted on fractions alone, one that does on both.

Shape legend: B examples, N points a curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mara.config.workload import TaskSettings
from mara.curves.corpus import Corpus, concatenate
from mara.curves.smoothing import demand, smooth
from mara.curves.synthetic import draw_curves
from mara.predictors.forecast import Query
from mara.workload.tasks import make_pool

LEAST_LEFT = 20
"""An example leaves at least so many units of the curve unseen."""
HARDEST_FRACTION = 0.15
"""Targets of the fraction kind lie between this and 1 times the best loss so far, log-uniform."""


@dataclass(frozen=True)
class Examples:
    """B questions with their answers.

    query: the questions.
    remaining: (B,) units from the prefix to the target; inf where the recorded curve does not get there.
    left: (B,) units of the curve after the prefix, up to which ``remaining`` is known.
    group: (B,) of the curve.
    """

    query: Query
    remaining: NDArray[np.float64]
    left: NDArray[np.int64]
    group: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.remaining)

    def rows(self, chosen: NDArray) -> Examples:
        """The examples at indices or a mask."""
        rows = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return Examples(self.query.rows(rows), self.remaining[rows], self.left[rows], self.group[rows])

    @classmethod
    def concatenate(cls, parts: Sequence[Examples]) -> Examples:
        """The examples of several sets, in order."""
        return cls(
            Query.concatenate([part.query for part in parts]),
            np.concatenate([part.remaining for part in parts]),
            np.concatenate([part.left for part in parts]),
            np.concatenate([part.group for part in parts]),
        )


def training_curves(corpus: Corpus, synthetic: int, rng: np.random.Generator) -> Corpus:
    """The predictors' part of the training split, and ``synthetic`` curves from the frozen prior."""
    recorded = corpus.of(split="train", part="predictor")
    return concatenate([recorded, draw_curves(synthetic, rng)]) if synthetic else recorded


def draw_examples(
    corpus: Corpus, count: int, tasks: bool, rng: np.random.Generator, longest: int | None = None
) -> Examples:
    """``count`` examples: fractions, or half of them tasks (from groups with at least two runs).

    Prefixes have at most ``longest`` points where it is given, and always leave ``LEAST_LEFT``.
    """
    latest = corpus.loss.shape[1] - LEAST_LEFT
    if longest is not None:
        latest = min(latest, longest)
    _, code, size = np.unique(corpus.group, return_inverse=True, return_counts=True)
    paired = corpus.select(size[code] > 1)
    task_count = count // 2 if tasks and len(paired) else 0
    parts = [_fractions(corpus, count - task_count, latest, rng)]
    if task_count:
        parts.append(_tasks(paired, task_count, latest, rng))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    loss, schedule, length, target, window, reached, group = columns
    units = length - 1
    points = loss.shape[1]
    return Examples(
        query=Query.of(loss, length, target, schedule, window),
        remaining=np.where(reached < points, reached - units.astype(np.float64), np.inf),
        left=points - length,
        group=group,
    )


def _tasks(corpus: Corpus, count: int, latest: int, rng: np.random.Generator) -> tuple[NDArray, ...]:
    """Columns of ``draw_examples`` for workload tasks, at prefixes of at most ``latest`` points.

    The length comes first, log-uniform, and then any task that is still running there: so the demands seen at
    a length are those of the workload, not too many short ones.
    """
    pool = make_pool(corpus, TaskSettings(templates=count), rng)
    longest = np.minimum(np.minimum(pool.demand, corpus.diverged_at[pool.curve]), latest)
    longest = np.maximum(longest, 1)
    length = np.floor(np.exp(rng.uniform(0, np.log(longest.max() + 1.0), size=count))).astype(np.int64)
    by_length = np.argsort(-longest, kind="stable")
    running = np.searchsorted(-longest[by_length], -length, side="right")
    task = by_length[rng.integers(running)]
    curve = pool.curve[task]
    return (
        corpus.loss[curve],
        corpus.schedule[curve],
        length,
        pool.target[task].astype(np.float64),
        pool.window[task].astype(np.float64),
        pool.demand[task].astype(np.float64),
        corpus.group[curve],
    )


def _fractions(corpus: Corpus, count: int, latest: int, rng: np.random.Generator) -> tuple[NDArray, ...]:
    """Columns of ``draw_examples`` for fractions of the best loss so far, at prefixes of at most ``latest`` points."""
    curve = rng.integers(len(corpus), size=count)
    length = np.rint(np.exp(rng.uniform(0, np.log(latest), size=count))).astype(np.int64)
    length = np.minimum(length, np.maximum(corpus.diverged_at[curve], 1))
    loss = corpus.loss[curve]
    best = Query.of(loss, length, np.ones(count)).best_smoothed()
    target = best * np.exp(rng.uniform(np.log(HARDEST_FRACTION), 0, size=count))
    reached = demand(smooth(loss).astype(np.float64), target).astype(np.float64)
    group = corpus.group[curve]
    return loss, corpus.schedule[curve], length, target, np.full(count, np.nan), reached, group
