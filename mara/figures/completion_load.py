"""Completion against load, and MARA's lead over LARA at every load, without re-training."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import (
    FAINT,
    INK,
    MARKERS,
    Drawn,
    colour,
    display_name,
    need,
    panels,
    percent_axis,
    points,
    pooled,
    run,
    span,
)


def draw(completion: pd.DataFrame) -> Drawn:
    """Lines over the load (main methods in colour, the rest in grey) above the paired lead."""
    rows = pooled(completion)
    rows = need(rows[rows["suite"].isin(("in_distribution", "unseen_load"))], "suite unseen_load")
    loads = rows.groupby("workload")["load"].nunique()
    workload = str(loads.idxmax())
    rows = rows[rows["workload"] == workload].sort_values("load", kind="stable")
    figure, axes = panels(2, 1, 5.0, sharex=True, height_ratios=(2.4, 1.0))
    upper, lower = axes[:, 0]
    for method, part in rows.groupby("method", sort=False):
        load = part["load"].to_numpy(dtype=float)
        if method not in MARKERS:
            upper.plot(load, part["completion_rate"], color=FAINT, linewidth=0.8, alpha=0.6)
            continue
        upper.plot(
            load,
            part["completion_rate"],
            color=colour(str(method)),
            marker=MARKERS[str(method)],
            markersize=5,
            linestyle="--" if method == "clairvoyant" else "-",
            label=display_name(str(method)),
        )
        upper.fill_between(
            load, part["ci_low"], part["ci_high"], color=colour(str(method)), alpha=0.12, linewidth=0
        )
    others = sorted(set(rows["method"]) - set(MARKERS))
    upper.plot([], [], color=FAINT, linewidth=0.8, label="others")
    figure.legend(ncols=4, loc="outside lower center")
    upper.set_ylabel("tasks completed / %")
    upper.set_ylim(0, min(1.0, 1.05 * float(rows["ci_high"].max())))
    percent_axis(upper, "y")
    lead = rows[rows["method"] == "mara"]
    lower.axhline(0.0, color=INK, linewidth=0.8)
    lower.errorbar(
        lead["load"],
        lead["difference_to_lara"],
        yerr=[lead["difference_to_lara"] - lead["diff_low"], lead["diff_high"] - lead["difference_to_lara"]],
        color=colour("mara"),
        marker="o",
        capsize=0,
        markersize=5,
    )
    lower.set_ylabel("MARA − LARA\n/ points")
    lower.set_xlabel("arrival rate / training load")
    lower.set_ylim(
        min(0.0, float(lead["diff_low"].min())) - 0.005, max(0.0, float(lead["diff_high"].max())) + 0.01
    )
    percent_axis(lower, "y", sign=True)
    lower.set_xticks(sorted(set(rows["load"])))
    lower.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    return Drawn(figure, _title(lead), _caption(rows, workload, others), _alt(lead))


def _title(lead: pd.DataFrame) -> str:
    heavier = lead[lead["load"] > 1.0]
    if heavier.empty:
        return "Completion against load"
    if (heavier["diff_low"] > 0).all():
        return "MARA stays ahead of LARA at every heavier load, without re-training"
    kept = heavier[heavier["diff_low"] > 0]["load"]
    if kept.empty:
        return "MARA's lead over LARA is not resolved at any heavier load"
    return f"MARA stays ahead of LARA at {', '.join(f'{v:g}×' for v in kept)} the load only"


def _caption(rows: pd.DataFrame, workload: str, others: list[str]) -> str:
    grey = f" In grey: {', '.join(map(display_name, others))}." if others else ""
    return (
        f"Above: completion on the workload {workload.replace('_', ' ')} when tasks arrive faster than in "
        "training. Below: paired difference to LARA on the same episodes. Bands and bars are 95 % "
        f"intervals over curve groups and training seeds; n = {span(rows['n_episodes'])} episodes a load, "
        f"{span(rows['n_groups'])} groups.{grey}"
    )


def _alt(lead: pd.DataFrame) -> str:
    parts = [
        f"{row['load']:g} times {points(float(row['difference_to_lara']))}" for row in lead.to_dict("records")
    ]
    return "Line chart of completion against load. MARA minus LARA in points at " + ", ".join(parts)


if __name__ == "__main__":
    run(draw, __doc__)
