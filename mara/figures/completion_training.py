"""Completion of every method at the training load, beside the bound and the published values."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import (
    PUBLISHED,
    Drawn,
    colour,
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
    """Bars with intervals, best on top; a panel for each workload of the suite in_distribution."""
    rows = pooled(completion)
    rows = need(rows[(rows["suite"] == "in_distribution") & (rows["load"] == 1.0)], "suite in_distribution")
    workloads = list(dict.fromkeys(rows["workload"]))
    most = int(rows.groupby("workload").size().max())
    figure, axes = panels(len(workloads), 1, 0.9 + (0.5 + 0.23 * most) * len(workloads), sharex=True)
    for axis, workload in zip(axes[:, 0], workloads, strict=True):
        part = rows[rows["workload"] == workload].sort_values(
            "completion_rate", ascending=False, kind="stable"
        )
        method_bars(axis, part)
        for method, rate in PUBLISHED.items():
            axis.axvline(rate, color=colour(method), linestyle=(0, (2, 2)), linewidth=1.2)
            axis.annotate(
                f"{display_name(method)}, published",
                (rate, len(part) - 0.45),
                xytext=(-3, 0) if method == "lara" else (3, 0),
                textcoords="offset points",
                ha="right" if method == "lara" else "left",
                va="bottom",
                fontsize=7.5,
            )
        bound = part[part["method"] == "clairvoyant"]
        if len(bound):
            axis.axvline(float(bound["completion_rate"].iloc[0]), color=colour("clairvoyant"), linewidth=1.0)
        if len(workloads) > 1:
            axis.set_title(str(workload).replace("_", " "))
    axes[-1, 0].set_xlabel("tasks completed / % of those that arrived")
    first = rows[rows["workload"] == workloads[0]].set_index("method")
    return Drawn(figure, _title(first), _caption(rows), _alt(first))


def _title(rows: pd.DataFrame) -> str:
    if not {"mara", "lara"} <= set(rows.index):
        return "Completion at the training load"
    rates, lead = rows["completion_rate"], float(rows["difference_to_lara"]["mara"])
    return (
        f"MARA completes {percent(rates['mara'])} of the tasks at the training load, "
        f"{points(lead)} points against LARA"
    )


def _caption(rows: pd.DataFrame) -> str:
    return (
        "Share of the arrived tasks that reach their target by their deadline, at the rate at which LARA "
        "completes 54.92 % of the tasks on calibration episodes. Dotted: the published values; solid line: "
        f"the clairvoyant optimum (n = {span(rows['n_episodes'].nsmallest(1))} episodes where it is "
        "computed). Lines on the bars are 95 % intervals over curve groups and training seeds; n = "
        f"{span(rows['n_episodes'].nlargest(1))} episodes, {span(rows['n_groups'].nlargest(1))} groups, up "
        f"to {span(rows['n_seeds'].nlargest(1))} training seeds."
    )


def _alt(rows: pd.DataFrame) -> str:
    ordered = rows["completion_rate"].sort_values(ascending=False, kind="stable")
    return "Bar chart. " + ", ".join(
        f"{display_name(str(m))} {percent(float(v))}" for m, v in ordered.items()
    )


if __name__ == "__main__":
    run(draw, __doc__)
