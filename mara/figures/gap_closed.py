"""Share of the gap to the clairvoyant optimum closed, from LARA and from the strongest baseline."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import (
    INK,
    Drawn,
    colour,
    display_name,
    dot_rows,
    name_rows,
    need,
    panels,
    percent,
    percent_axis,
    run,
    span,
)

IN_TABLE_ONLY = ("stress", "fairness")
"""Suites whose shares stand in the table alone, lest the figure be too long to read."""
FLOORS = {"reference": "from LARA", "strongest": "from the strongest baseline"}


def draw(gap: pd.DataFrame) -> Drawn:
    """Dots with intervals for each setting; left counted from LARA, right from the strongest baseline."""
    gap = need(gap[~gap["suite"].isin(IN_TABLE_ONLY)], "any setting")
    places = list(dict.fromkeys(gap[["suite", "workload", "load"]].itertuples(index=False, name=None)))
    methods = list(dict.fromkeys(gap["method"]))
    figure, axes = panels(1, 2, 1.3 + len(places) * (0.12 + 0.13 * len(methods)), sharey=True)
    step = 0.76 / max(len(methods), 1)
    for axis, (kind, title) in zip(axes[0], FLOORS.items(), strict=True):
        for i, method in enumerate(methods):
            rows = gap[(gap["floor_kind"] == kind) & (gap["method"] == method)]
            rows = rows.set_index(["suite", "workload", "load"]).reindex(pd.MultiIndex.from_tuples(places))
            dot_rows(
                axis,
                rows,
                ("share_closed", "share_low", "share_high"),
                [colour(method)] * len(places),
                offset=(i - (len(methods) - 1) / 2) * step,
                label=display_name(method),
            )
        axis.axvline(0.0, color=INK, linewidth=0.8)
        axis.set_title(title)
        axis.set_xlabel("share of the gap closed / %")
        percent_axis(axis)
    name_rows(axes[0, 0], [_place(*place) for place in places])
    axes[0, 1].tick_params(axis="y", length=0)
    axes[0, 1].grid(axis="y", visible=False)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower right", ncols=min(4, len(labels)))
    return Drawn(figure, _title(gap), _caption(gap), _alt(gap))


def _place(suite: str, workload: str, load: float) -> str:
    return f"{display_name(workload)}, {load:g}×" + (" (held out)" if suite == "held_out_family" else "")


def _mara(gap: pd.DataFrame) -> pd.DataFrame:
    return gap[(gap["method"] == "mara") & (gap["floor_kind"] == "reference")]


def _title(gap: pd.DataFrame) -> str:
    rows = _mara(gap)
    if rows.empty:
        return "Share of the gap to the clairvoyant optimum"
    low, high = percent(rows["share_closed"].min(), 0), percent(rows["share_closed"].max(), 0)
    amount = low if low == high else f"{low} to {high}"
    return f"MARA closes {amount} of the gap from LARA to the clairvoyant optimum"


def _caption(gap: pd.DataFrame) -> str:
    strongest = ", ".join(
        display_name(m) for m in dict.fromkeys(gap[gap["floor_kind"] == "strongest"]["floor"])
    )
    return (
        "0 % is the floor, 100 % the optimum with every demand known in advance; the floor is LARA on the "
        f"left and, on the right, the baseline that does best in the setting ({strongest}). Lines are 95 % "
        f"intervals over curve groups and training seeds; n = {span(gap['n_episodes'])} episodes on which "
        f"the optimum is computed, {span(gap['n_groups'])} groups. Shares for the stress and fairness suites "
        "stand in gap.csv."
    )


def _alt(gap: pd.DataFrame) -> str:
    rows = _mara(gap)
    parts = [
        f"{_place(*row[:3])} {percent(float(row[3]), 0)}"
        for row in rows[["suite", "workload", "load", "share_closed"]].itertuples(index=False, name=None)
    ]
    return "Dot plot of the share of the gap closed by MARA from LARA: " + ", ".join(parts)


if __name__ == "__main__":
    run(draw, __doc__)
