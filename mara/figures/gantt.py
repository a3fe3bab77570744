"""One episode under several methods: which task every node trains, and which tasks are missed."""

from __future__ import annotations

import colorsys

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from mara.figures.style import FAINT, Drawn, colour, display_name, need, panels, run

MISSED = "#c2183c"
MOST_SLOTS = 150
"""Longer episodes are cut to their middle, so that single tasks can be seen."""
SPARE = ("#7b5ea7", "#4d8f6f", "#a86b32", "#3d6fa8", "#a8507a")


def draw(events: pd.DataFrame, tasks: pd.DataFrame) -> Drawn:
    """A panel a method; bars in the method's colour lead to completion, grey ones did not pay off."""
    methods = list(dict.fromkeys(need(events, "any busy node")["method"]))
    nodes = int(events["node"].max()) + 1
    figure, axes = panels(len(methods), 1, 1.0 + len(methods) * (0.7 + 0.2 * nodes), sharex=True)
    for axis, method in zip(axes[:, 0], methods, strict=True):
        own = tasks[tasks["method"] == method].set_index("task")
        _bars(axis, events[events["method"] == method], own, _hue(method, methods))
        _misses(axis, own, nodes)
        axis.set_yticks([*range(nodes), nodes], labels=[*(str(i + 1) for i in range(nodes)), "missed"])
        axis.set_ylim(nodes + 0.7, -0.6)
        axis.tick_params(axis="y", length=0)
        axis.grid(axis="y", visible=False)
        axis.set_ylabel("node")
        done = int(own["completed"].astype(bool).sum())
        axis.set_title(f"{display_name(method)}: {done} of {len(own)} tasks completed")
    axes[-1, 0].set_xlabel("time / slots")
    first, last = _window(events)
    axes[-1, 0].set_xlim(first, last)
    handles = [Patch(color=_hue(m, methods), label=f"completed ({display_name(m)})") for m in methods]
    handles.append(Patch(color=FAINT, alpha=0.55, label="trained, then missed"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8)
    return Drawn(
        figure, _title(tasks, methods), _caption(tasks, nodes, _window(events)), _alt(tasks, methods)
    )


def _window(events: pd.DataFrame) -> tuple[int, int]:
    """The slots shown: all, or those in the middle of a longer episode."""
    first, last = int(events["slot"].min()), int(events["slot"].max()) + 1
    spare = max(0, last - first - MOST_SLOTS) // 2
    return first + spare, last - spare


def _bars(axis: Axes, events: pd.DataFrame, tasks: pd.DataFrame, hue: str) -> None:
    """Merge the consecutive slots that a node spends on one task into one bar each."""
    completed = tasks["completed"].astype(bool)
    for node, part in events.sort_values(["node", "slot"]).groupby("node"):
        slot, task = part["slot"].to_numpy(), part["task"].to_numpy()
        starts = np.flatnonzero(np.r_[True, (np.diff(slot) != 1) | (np.diff(task) != 0)])
        ends = np.r_[starts[1:], len(slot)] - 1
        spans = [(slot[a], slot[b] - slot[a] + 1) for a, b in zip(starts, ends, strict=True)]
        shades = [_shade(hue, int(task[a])) if completed[task[a]] else FAINT for a in starts]
        axis.broken_barh(
            spans, (int(str(node)) - 0.4, 0.8), facecolors=shades, edgecolor="white", linewidth=0.4, alpha=0.9
        )


def _hue(method: str, methods: list[str]) -> str:
    """The method's colour; a spare one for methods that have none, since grey means missed here."""
    own = colour(method)
    without = [m for m in methods if colour(m) == FAINT]
    return SPARE[without.index(method) % len(SPARE)] if own == FAINT else own


def _shade(colour: str, task: int) -> tuple[float, float, float]:
    """The colour, lighter or darker by task, so that neighbours can be told apart."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*to_rgb(colour))
    return colorsys.hls_to_rgb(hue, min(0.8, lightness + (0.0, 0.16, 0.08, 0.24)[task % 4]), saturation)


def _misses(axis: Axes, tasks: pd.DataFrame, nodes: int) -> None:
    missed = tasks[~tasks["completed"].astype(bool)]
    axis.scatter(
        missed["deadline"], np.full(len(missed), nodes), marker="x", s=20, color=MISSED, linewidths=1.1
    )
    axis.axhline(nodes - 0.5, color=FAINT, linewidth=0.6)


def _done(tasks: pd.DataFrame, method: str) -> tuple[int, int]:
    completed = tasks[tasks["method"] == method]["completed"].astype(bool)
    return int(completed.sum()), len(completed)


def _title(tasks: pd.DataFrame, methods: list[str]) -> str:
    parts = [f"{display_name(m)} completes {_done(tasks, m)[0]}" for m in methods]
    return f"One episode, the same tasks: {', '.join(parts)} of {_done(tasks, methods[0])[1]}"


def _caption(tasks: pd.DataFrame, nodes: int, window: tuple[int, int]) -> str:
    return (
        f"What each of {nodes} nodes trains in every slot; shades tell neighbouring tasks apart. Crosses "
        "mark the deadlines of tasks that were missed, among them those that no allocator could have "
        f"completed. Slots {window[0]} to {window[1]} are shown, tasks are counted over all of the episode. "
        f"n = 1 episode, {tasks['task'].nunique()} tasks; an illustration, not evidence."
    )


def _alt(tasks: pd.DataFrame, methods: list[str]) -> str:
    parts = [f"{display_name(m)} {_done(tasks, m)[0]} of {_done(tasks, m)[1]} completed" for m in methods]
    return "Gantt charts of nodes over time: " + "; ".join(parts)


if __name__ == "__main__":
    run(draw, __doc__)
