"""A training log as the rest of MARA sees it: one metric along one axis, tidied, and what was done to it.

Shapes: P points.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mara.curves.readers.naming import is_bounded
from mara.errors import InputError

Axis = Literal["step", "epoch", "time", "row"]
Floats = NDArray[np.float64]

MARGIN = 0.1
"""Where the best value of a metric is not known: this share of its range beyond the best seen or wanted."""


@dataclass(frozen=True)
class Log:
    """One metric of one run.

    name: of the run, from its file or folder. path: what was read. format: as what it was read.
    metric: the column. axis: what ``position`` counts; ``axis_column`` is its name in the file ("" for rows).
    position: (P,) float64, strictly increasing. values: (P,) float64 as logged, all finite.
    rising: whether the metric is to be maximised.
    diverged: whether the newest logged values are NaN or infinite; they are not among ``values``.
    seconds: (P,) float64 a clock of the run, where the log has one; only differences mean anything.
    notes: what was dropped or decided, in sentences.
    """

    name: str
    path: Path
    format: str
    metric: str
    axis: Axis
    axis_column: str
    position: Floats
    values: Floats
    rising: bool
    diverged: bool = False
    seconds: Floats | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Shortfall:
    """A metric as a loss: its distance to ``best``, which is 0 for a plain loss.

    values: (P,) float64 > 0. target: the wanted value as a distance, NaN where none was given.
    rule: how it was made, in a sentence; "" for a loss as it is.
    """

    values: Floats
    target: float
    best: float
    rule: str

    def metric(self, shortfall: float, rising: bool) -> float:
        """A distance back in the metric's own numbers."""
        return self.best - shortfall if rising else self.best + shortfall


def shortfall(log: Log, target: float | None = None, best: float | None = None) -> Shortfall:
    """Turn a log's metric into a loss above 0.

    A loss stays as it is. A metric to be maximised becomes ``best - metric``. Where ``best`` is not given it
    is 1 for rates (accuracy, mAP, ...) that stay within 0..1 and 100 for those within 0..100; for all others,
    and for losses that go below 0, it lies a tenth of the seen range beyond the best value seen or wanted.
    Points at or beyond ``best`` count as a millionth of the range away.

    Args:
        log: the run.
        target: wanted value of the metric, in its own numbers.
        best: the best value that the metric can have.

    Raises:
        InputError: for a target or best that is not finite, a target that is not short of the best, or a best
            that every value is beyond.
    """
    for name, number in (("target", target), ("best", best)):
        if number is not None and not np.isfinite(number):
            raise InputError(f"{log.path}: {name} {number}; expected a finite number")
    sign = 1.0 if log.rising else -1.0
    goal = sign * log.values
    seen = [float(goal.max()), *([] if target is None else [sign * target])]
    rule = ""
    if best is not None:
        top = sign * best
        if log.rising or best != 0:
            rule = f"{log.metric} counts as its distance to {best:g}, as given"
    elif log.rising and is_bounded(log.metric) and goal.min() >= 0 and max(seen) <= 1:
        top = 1.0
        rule = f"{log.metric} counts as its distance to 1"
    elif log.rising and is_bounded(log.metric) and goal.min() >= 0 and max(seen) <= 100:
        top = 100.0
        rule = f"{log.metric} counts as its distance to 100"
    elif not log.rising and log.values.min() >= 0:
        top = 0.0
    else:
        span = max(seen) - float(goal.min())
        top = max(seen) + MARGIN * (span if span > 0 else max(abs(max(seen)), 1.0))
        rule = (
            f"{log.metric} counts as its distance to {sign * top:.6g}, a tenth of its range beyond the best value "
            "seen or wanted; give the best possible value if it is known"
        )
    distance = top - goal
    if best is not None and distance.max() < 0:
        raise InputError(f"{log.path}: best {best:g}; every value of {log.metric} lies beyond it already")
    span = float(np.ptp(distance)) or abs(top) or 1.0
    best_value = sign * top + 0.0  # 0, not -0
    wanted = np.nan if target is None else top - sign * target
    if target is not None and not wanted > 0:
        side = "below" if log.rising else "above"
        raise InputError(
            f"{log.path}: target {target:g} for {log.metric}; it must lie {side} the best value {best_value:g}"
        )
    return Shortfall(np.maximum(distance, 1e-6 * span), float(wanted), best_value, rule)
