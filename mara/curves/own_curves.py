"""Curves for the study from people's own logs.

Runs of a group (a folder of runs) share one unit: the median length of a run over 199, so that every curve
has 200 points, evenly spaced from its first logged point. Between logged points values are interpolated;
where several fall into a unit, their mean counts. A run that ends earlier counts as one that gives no more
losses from there on, as a diverged one does; what goes on longer is cut off. Metrics to be maximised become
their distance to the best value, which is one number a group (:func:`mara.curves.readers.log.shortfall`).

Shapes: C curves, N = 200 points, P logged points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mara.curves.corpus import POINTS, Corpus
from mara.curves.readers.log import Log, shortfall
from mara.errors import InputError

FEWEST_POINTS = 10
"""Logged points below which a run says too little to be a curve."""
EARLY = 0.95
"""A run shorter than this share of its group's unit times N counts as ended early."""
SMALLEST, LARGEST_RISE = 1e-6, 1e6
"""Losses are floored at the one; one that rises by the other counts as diverged: as in the corpus."""


def own_corpus(groups: Mapping[str, Sequence[Log]], family: str, best: float | None = None) -> Corpus:
    """Curves of a family, all in the test split; a log's name is its curve's id after family and group.

    Args:
        groups: runs by group.
        family: what to call them all.
        best: best value of the metric, where it is known.

    Raises:
        InputError: for no run at all, a run of fewer than ``FEWEST_POINTS`` points, runs of one group with
            different metrics, or two of one name.
    """
    rows: list[tuple[str, Log, NDArray[np.float64]]] = []
    for group, logs in groups.items():
        _check_group(group, logs)
        length = float(np.median([np.ptp(log.position) for log in logs]))
        pooled = replace(logs[0], values=np.concatenate([log.values for log in logs]))
        common = shortfall(pooled, best=best).best if logs else 0.0
        rows += [(group, log, even_curve(log, length / (POINTS - 1), common)) for log in logs]
    if not rows:
        raise InputError(f"{family}: no run to make a curve of")
    loss = np.stack([curve for _, _, curve in rows]).astype(np.float32)
    ended = np.isnan(loss)

    def text(values: Sequence[str]) -> NDArray[np.str_]:
        return np.array(values, dtype=np.str_)

    return Corpus(
        id=text([f"{family}/{group}/{log.name}" for group, log, _ in rows]),
        family=text([family] * len(rows)),
        dataset=text([family] * len(rows)),
        group=text([f"{family}/{group}" for group, _, _ in rows]),
        split=text(["test"] * len(rows)),
        seed=np.arange(len(rows), dtype=np.int64),
        config=[{"log": log.name, "metric": log.metric, "axis": log.axis} for _, log, _ in rows],
        loss=loss,
        train_loss=loss.copy(),
        schedule=np.ones_like(loss),
        diverged_at=np.where(ended.any(axis=1), ended.argmax(axis=1), POINTS).astype(np.int32),
    )


def even_curve(log: Log, unit: float, best: float) -> NDArray[np.float64]:
    """The metric's distance to ``best`` at the log's start and after every unit: (N,), NaN from its end on."""
    values = shortfall(log, best=best).values
    place = (log.position - log.position[0]) / unit
    grid = np.arange(POINTS)
    slot = np.minimum(np.rint(place), POINTS).astype(np.int64)
    count = np.bincount(slot, minlength=POINTS + 1)[:POINTS]
    total = np.bincount(slot, weights=values, minlength=POINTS + 1)[:POINTS]
    curve = np.interp(grid, place, values)
    curve[count > 1] = total[count > 1] / count[count > 1]
    curve = np.maximum(curve, SMALLEST)
    short = place[-1] < EARLY * (POINTS - 1)
    end = min(int(place[-1]) + 1, POINTS) if short or log.diverged else POINTS
    if log.diverged:
        end = min(end, POINTS - 1)
    grown = np.flatnonzero(curve > LARGEST_RISE * curve[0])
    end = min([end, *grown[:1].tolist()])
    curve[max(end, 1) :] = np.nan
    return curve


def _check_group(group: str, logs: Sequence[Log]) -> None:
    seen: set[str] = set()
    for log in logs:
        if len(log) < FEWEST_POINTS:
            raise InputError(f"{log.path}: {len(log)} points; a curve needs at least {FEWEST_POINTS}")
        if log.metric != logs[0].metric or log.rising != logs[0].rising:
            raise InputError(
                f"{log.path}: metric {log.metric!r}, but {logs[0].path} of the same group {group} has "
                f"{logs[0].metric!r}; name a metric that all have, or give each kind of run a folder of its own"
            )
        if log.name in seen:
            raise InputError(f"{log.path}: a second run named {log.name} in group {group}; rename one")
        seen.add(log.name)
