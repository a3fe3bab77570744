"""Completion of every method at the training load, beside the bound and the published values."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import (
    PUBLISHED,
    Drawn,
    bar_panels,
    colour,
    display_name,
    need,
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
    parts = [(str(name).replace("_", " "), part) for name, part in rows.groupby("workload", sort=False)]
    figure, axes = bar_panels(parts)
    for axis, (_, part) in zip(axes, parts, strict=True):
        for method, rate in PUBLISHED.items():
            axis.axvline(rate, color=colour(method), linestyle=(0, (2, 2)), linewidth=1.2)
            axis.annotate(
                "published",
                (rate, len(part) - 0.45),
                xytext=(-3, 0) if method == "lara" else (3, 0),
                textcoords="offset points",
                ha="right" if method == "lara" else "left",
                va="bottom",
                fontsize=7.5,
            )
    first = parts[0][1].set_index("method")
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
        "completes 54.92 % of the tasks on calibration episodes. Dotted: published for "
        "LARA (left) and MARA; solid line: "
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
