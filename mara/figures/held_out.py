"""Completion on families that no training has seen."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import (
    Drawn,
    display_name,
    method_bars,
    need,
    panels,
    percent,
    points,
    pooled,
    run,
    span,
)


def draw(completion: pd.DataFrame) -> Drawn:
    """Bars with intervals, best on top; a panel for each held-out workload."""
    rows = need(pooled(completion).query("suite == 'held_out_family'"), "suite held_out_family")
    places = list(rows.groupby(["workload", "load"], sort=False))
    most = max(len(part) for _, part in places)
    figure, axes = panels(len(places), 1, 0.7 + (0.45 + 0.23 * most) * len(places), sharex=True)
    for axis, ((workload, load), part) in zip(axes[:, 0], places, strict=True):
        part = part.sort_values("completion_rate", ascending=False, kind="stable")
        method_bars(axis, part)
        axis.set_title(display_name(str(workload)) + (f", {load:g}× the load" if load != 1.0 else ""))
        bound = part[part["method"] == "clairvoyant"]
        if len(bound):
            axis.axvline(float(bound["completion_rate"].iloc[0]), color="#1b2127", linewidth=1.0)
    axes[-1, 0].set_xlabel("tasks completed / % of those that arrived")
    mara = rows[rows["method"] == "mara"]
    return Drawn(figure, _title(mara), _caption(rows), _alt(rows))


def _title(mara: pd.DataFrame) -> str:
    parts = [
        f"{points(float(row['difference_to_lara']))} points on {display_name(str(row['workload']))}"
        for row in mara.to_dict("records")
    ]
    return (
        f"Held-out families: MARA against LARA {', '.join(parts)}"
        if parts
        else "Completion on held-out families"
    )


def _caption(rows: pd.DataFrame) -> str:
    return (
        "Completion on task families that neither the predictor nor the allocator has seen in training. "
        "The line marks the clairvoyant optimum. Lines on the bars are 95 % intervals over curve groups and "
        f"training seeds; n = {span(rows['n_episodes'])} episodes a family, {span(rows['n_groups'])} groups."
    )


def _alt(rows: pd.DataFrame) -> str:
    parts = []
    for workload, part in rows.groupby("workload", sort=False):
        rates = part.set_index("method")["completion_rate"].sort_values(ascending=False, kind="stable")
        parts.append(
            f"{display_name(str(workload))}: "
            + ", ".join(f"{display_name(str(m))} {percent(float(v))}" for m, v in rates.items())
        )
    return "Bar charts. " + "; ".join(parts)


if __name__ == "__main__":
    run(draw, __doc__)
