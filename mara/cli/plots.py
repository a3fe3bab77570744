"""A run and its forecast as a picture: in characters for the terminal, with Matplotlib for a file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from mara.errors import printable
from mara.files import atomic_path
from mara.live.forecast import Remaining

WIDTH, HEIGHT = 72, 14


def text_plot(remaining: Remaining, unicode: bool) -> str:
    """Draw the metric against its axis: points, the target's line, and on it the 80 % interval.

    Losses have a log axis if they stay above 0. Without ``unicode`` only ASCII characters are used.
    """
    point, line, bar, middle = ("•", "┄", "━", "◆") if unicode else ("*", "-", "=", "#")
    log, target = remaining.question.log, remaining.question.target
    values = np.append(log.values, target)
    scaled = np.log(values) if not log.rising and np.all(values > 0) else values
    low, high = float(scaled.min()), float(scaled.max())
    first, newest = float(log.position[0]), float(log.position[-1])
    ends = [min(end, remaining.horizon) for end in remaining.interval]
    last = max(newest + (0.0 if remaining.reached else ends[1]), first + remaining.units.size)

    def column(position: float) -> int:
        return min(round((position - first) / (last - first) * (WIDTH - 1)), WIDTH - 1)

    def line_of(value: float) -> int:
        return round((high - value) / (high - low) * (HEIGHT - 1)) if high > low else HEIGHT - 1

    canvas = [[" "] * WIDTH for _ in range(HEIGHT)]
    canvas[line_of(scaled[-1])] = [line] * WIDTH
    for position, value in zip(log.position, scaled[:-1], strict=True):
        canvas[line_of(value)][column(position)] = point
    if not remaining.reached and not log.diverged:
        for place in range(column(newest + ends[0]), column(newest + ends[1]) + 1):
            canvas[line_of(scaled[-1])][place] = bar
        if math.isfinite(remaining.median):
            canvas[line_of(scaled[-1])][column(newest + remaining.median)] = middle
    labels = [""] * HEIGHT
    labels[line_of(scaled[-1])] = f"{target:.4g}"
    labels[0] = labels[0] or f"{max(values) if high > low else values[0]:.4g}"
    labels[-1] = labels[-1] or f"{min(values):.4g}"
    margin = max(map(len, labels))
    rows = [f"{label:>{margin}} {''.join(row).rstrip()}" for label, row in zip(labels, canvas, strict=True)]
    left, right = f"{first:.6g}", printable(f"{log.axis_column or 'row'} {last:.6g}")
    rows.append(" " * (margin + 1) + left + right.rjust(WIDTH - len(left)))
    return "\n".join(rows)


def save_plot(remaining: Remaining, path: Path) -> None:
    """Draw the run with its target and interval, and below it the chance to be done, into a file."""
    from matplotlib import pyplot

    from mara.figures import style  # chooses a backend without a window

    log, target = remaining.question.log, remaining.question.target
    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(6.4, 5.6), height_ratios=(2, 1))
    above.plot(log.position, log.values, ".-", color=style.INK, markersize=3, linewidth=1, label=log.metric)
    above.axhline(
        target, color=style.COLOURS["mara"], linewidth=1, linestyle="--", label=f"target {target:g}"
    )
    newest = log.position[-1]
    ahead = newest + np.arange(len(remaining.cdf)) * remaining.units.size
    if not remaining.reached:
        ends = [newest + min(end, remaining.horizon) for end in remaining.interval]
        above.plot(
            ends, [target, target], color=style.COLOURS["mara"], linewidth=5, alpha=0.4, label="80 % interval"
        )
    if not log.rising and min(log.values.min(), target) > 0:
        above.set_yscale("log")
    above.set_ylabel(log.metric)
    above.legend(frameon=False)
    below.plot(ahead, remaining.cdf, color=style.COLOURS["mara"])
    if remaining.question.deadline is not None:
        below.axvline(
            newest + remaining.question.deadline, color=style.FAINT, linestyle=":", label="deadline"
        )
        below.legend(frameon=False)
    below.set_ylim(0, 1)
    below.set_ylabel("chance to be done")
    below.set_xlabel(log.axis_column or "row")
    figure.tight_layout()
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lower()[1:], dpi=150)
    pyplot.close(figure)
