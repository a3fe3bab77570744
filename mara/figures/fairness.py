"""Who is served: completion by family, and the price of serving the worst-off family better."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from mara.figures.style import (
    FAINT,
    INK,
    Drawn,
    colour,
    display_name,
    name_rows,
    need,
    panels,
    percent_axis,
    points,
    pooled,
    run,
    span,
)

FAMILY_MARKERS = {"supervised": "o", "vision": "^", "rl": "s"}


def draw(groups: pd.DataFrame, fairness: pd.DataFrame) -> Drawn:
    """Above: completion of each family under each method. Below: completion against the worst family's.

    Of the settings in the table the one with the most families is shown, the first of equals.
    """
    rows = need(pooled(fairness), "any method")
    place = rows.sort_values("n_families", ascending=False, kind="stable").iloc[0]
    key = ["suite", "workload", "load"]
    here = (rows[key] == place[key]).all(axis=1)
    rows = rows[here].sort_values("completion_rate", ascending=False, kind="stable")
    families = groups[(groups["kind"] == "family") & (groups[key] == place[key]).all(axis=1)]
    methods = [m for m in rows["method"] if m in set(families["method"])]
    upper = 0.9 + 0.2 * len(methods)
    figure, axes = panels(2, 1, upper + 3.4, height_ratios=(upper, 2.9))
    _by_family(axes[0, 0], families, methods)
    _frontier(axes[1, 0], rows[rows["method"] != "clairvoyant"])
    return Drawn(figure, _title(rows), _caption(rows, families), _alt(rows))


def _by_family(axis: Axes, families: pd.DataFrame, methods: list[str]) -> None:
    for name, part in families.groupby("name", sort=False):
        part = part.set_index("method").reindex(methods)
        axis.scatter(
            part["completion_rate"],
            range(len(methods)),
            color=colour(str(name)),
            marker=FAMILY_MARKERS.get(str(name), "D"),
            s=24,
            zorder=3,
            label=display_name(str(name)),
        )
        axis.hlines(range(len(methods)), part["ci_low"], part["ci_high"], color=colour(str(name)), alpha=0.5)
    name_rows(axis, [display_name(m) for m in methods])
    axis.set_xlabel("tasks completed / %")
    axis.set_title("completion by family")
    axis.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=3,
        columnspacing=1.0,
        handletextpad=0.2,
        borderpad=0,
    )
    percent_axis(axis)


def _frontier(axis: Axes, rows: pd.DataFrame) -> None:
    constrained = rows["allocator"].astype(str).str.startswith("fair")
    unconstrained = (rows["method"] == "index") & bool(constrained.any())
    fair = rows[constrained | unconstrained]
    strength = [int(re.sub(r"\D", "", str(m)) or 0) for m in fair["method"]]
    fair = fair.iloc[np.argsort(strength, kind="stable")]
    axis.plot(fair["worst_family_rate"], fair["completion_rate"], color=FAINT, marker="D", markersize=4)
    for row in rows[constrained].to_dict("records"):
        _name(axis, row, re.sub(r"\D", "", str(row["method"])), (0, 6), "center")
    others = rows[~constrained].sort_values("completion_rate", kind="stable").to_dict("records")
    for k, row in enumerate(others):
        axis.hlines(
            row["completion_rate"],
            row["worst_family_low"],
            row["worst_family_high"],
            color=colour(row["method"]),
            alpha=0.5,
        )
        axis.scatter(
            row["worst_family_rate"], row["completion_rate"], color=colour(row["method"]), s=26, zorder=3
        )
        _name(axis, row, display_name(row["method"]), (-5, -11 if k % 2 else 5), "right")
    axis.set_xlabel("worst-served family completed / %")
    axis.set_ylabel("all tasks completed / %")
    axis.set_title("price of fairness: numbers are the strength of the constraint")
    axis.margins(y=0.12)
    percent_axis(axis)
    percent_axis(axis, "y")


def _name(axis: Axes, row: dict[Any, Any], text: str, shift: tuple[int, int], side: str) -> None:
    """Write a name beside the point of a method."""
    spot = (row["worst_family_rate"], row["completion_rate"])
    axis.annotate(
        text, spot, xytext=shift, textcoords="offset points", fontsize=7.5, ha=side, color=INK, zorder=4
    )


def _title(rows: pd.DataFrame) -> str:
    by = rows.set_index("method")
    if not {"mara", "lara"} <= set(by.index):
        return "Completion by family"
    change = points(float(by["worst_family_rate"]["mara"]) - float(by["worst_family_rate"]["lara"]))
    return f"Under MARA the worst-served family completes {change} points against LARA's worst"


def _caption(rows: pd.DataFrame, families: pd.DataFrame) -> str:
    return (
        "Above: completion of the tasks of each family when all families share the cluster. Below: completion "
        "of all tasks against that of the family served worst; up and to the right is better, and the joined "
        "grey points are the index and its fairness-constrained forms, from loose to strict. Lines are "
        f"95 % intervals over curve groups and training seeds; n = {span(rows['n_episodes'])} episodes, "
        f"{span(families['n_groups'])} groups a family."
    )


def _alt(rows: pd.DataFrame) -> str:
    parts = [
        f"{display_name(row['method'])} {100 * row['worst_family_rate']:.1f} "
        f"({display_name(row['worst_family'])})"
        for row in rows.to_dict("records")
    ]
    return "Completion of the worst-served family in percent: " + ", ".join(parts)


if __name__ == "__main__":
    run(draw, __doc__)
