"""Completion on families that no training has seen."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import (
    Drawn,
    bar_panels,
    display_name,
    need,
    percent,
    points,
    pooled,
    run,
    span,
)


def draw(completion: pd.DataFrame) -> Drawn:
    """Bars with intervals, best on top; a panel for each held-out workload."""
    rows = need(pooled(completion).query("suite == 'held_out_family'"), "suite held_out_family")
    parts = [
        (display_name(str(workload)) + (f", {load:g}× the load" if load != 1.0 else ""), part)
        for (workload, load), part in rows.groupby(["workload", "load"], sort=False)
    ]
    figure, _ = bar_panels(parts)
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
