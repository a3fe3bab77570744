"""Heat map of the stress suite: completion of each method in each setting and its difference to LARA."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

from mara.figures.style import (
    COLOURS,
    INK,
    Drawn,
    display_name,
    need,
    panels,
    percent_axis,
    points,
    pooled,
    run,
    span,
)

DIVERGING = LinearSegmentedColormap.from_list("lara_mara", [COLOURS["lara"], "#f4f4f2", COLOURS["mara"]])
ORDER = (
    "mara",
    "index",
    "index_matching",
    "gittins",
    "lara_slope",
    "lara_tuned",
    "lara_deadline",
    "lara",
    "laira",
    "edf",
    "srpt",
)


STANDARD = "no stress"
STRONGEST = 0.15
"""Differences beyond this have the strongest colour, lest one extreme setting pale all others."""


def draw(stress: pd.DataFrame, completion: pd.DataFrame) -> Drawn:
    """Rows are settings, columns methods; number = completion, colour = difference to LARA.

    The first row is the training load itself, for comparison, from ``completion``.
    """
    rows = need(pooled(stress), "any setting")
    rows = rows.assign(setting=[_setting(w, v) for w, v in zip(rows["workload"], rows["load"], strict=True)])
    calm = pooled(completion)
    calm = calm[(calm["suite"] == "in_distribution") & (calm["load"] == 1.0)]
    calm = calm[calm["method"].isin(rows["method"])]
    cells = pd.concat([calm.assign(setting=STANDARD), rows], ignore_index=True)
    settings = list(dict.fromkeys(cells["setting"]))
    present = set(rows["method"])
    methods = [m for m in ORDER if m in present]
    rate = cells.pivot_table(index="setting", columns="method", values="completion_rate", sort=False)
    lead = cells.pivot_table(index="setting", columns="method", values="difference_to_lara", sort=False)
    rate, lead = (table.reindex(index=settings, columns=methods) for table in (rate, lead))
    figure, axes = panels(1, 1, 1.9 + 0.27 * len(settings))
    axis = axes[0, 0]
    shift, completed = lead.to_numpy(dtype=float), rate.to_numpy(dtype=float)
    limit = min(STRONGEST, max(0.01, float(np.nanmax(np.abs(shift)))))
    norm = TwoSlopeNorm(0.0, -limit, limit)
    image = axis.pcolormesh(
        lead.to_numpy(dtype=float), cmap=DIVERGING, norm=norm, edgecolor="white", linewidth=1.0
    )
    for (i, j), value in np.ndenumerate(completed):
        if np.isfinite(value):
            best = value >= np.nanmax(completed[i]) - 1e-12
            strong = abs(shift[i, j]) > 0.6 * limit
            axis.text(
                j + 0.5,
                i + 0.5,
                f"{100 * value:.1f}",
                ha="center",
                va="center",
                fontsize=8,
                fontweight="bold" if best else "normal",
                color="white" if strong else "#15191e",
            )
    axis.set_xticks(
        np.arange(len(methods)) + 0.5, labels=[display_name(m) for m in methods], rotation=40, ha="right"
    )
    axis.set_yticks(np.arange(len(settings)) + 0.5, labels=settings)
    axis.tick_params(length=0)
    axis.grid(visible=False)
    axis.invert_yaxis()
    for side in axis.spines.values():
        side.set_visible(False)
    bar = figure.colorbar(image, ax=axis, location="bottom", aspect=40, pad=0.02, extend="both")
    bar.set_label("difference to LARA / points", color=INK)
    bar.outline.set_visible(False)
    percent_axis(bar.ax, sign=True)
    shown = rows[rows["method"].isin(methods)]
    return Drawn(figure, _title(rows), _caption(shown), _alt(rows))


def _setting(workload: str, load: float) -> str:
    return display_name(workload) + ("" if load == 1.0 else f", {load:g}×")


def _title(rows: pd.DataFrame) -> str:
    mara = rows[rows["method"] == "mara"]
    ahead = int((mara["diff_low"] > 0).sum())
    return f"Under stress MARA completes more than LARA, beyond chance, in {ahead} of {len(mara)} settings"


def _caption(rows: pd.DataFrame) -> str:
    return (
        "Completion in percent; bold is the best of the methods shown, colour the paired difference to "
        "LARA. The learned policy is not trained anew for a setting; weights of the other methods are tuned "
        "anew where the configuration says so (retuned). 95 % intervals stand in stress.csv; n = "
        f"{span(rows['n_episodes'])} episodes a setting, {span(rows['n_groups'])} groups.{_better(rows)}"
    )


def _better(rows: pd.DataFrame) -> str:
    """Where another method completes more than MARA, in words; empty where none does."""
    found = []
    for setting, part in rows.groupby("setting", sort=False):
        rate = part.set_index("method")["completion_rate"]
        best = str(rate.idxmax())
        if "mara" in rate and best != "mara" and rate[best] > rate["mara"]:
            found.append(f"{setting} ({display_name(best)} {points(float(rate[best] - rate['mara']))})")
    return f" Another method completes more than MARA, in points, under: {', '.join(found)}." if found else ""


def _alt(rows: pd.DataFrame) -> str:
    parts = [
        f"{row['setting']} {points(float(row['difference_to_lara']))}"
        for row in rows[rows["method"] == "mara"].to_dict("records")
    ]
    return "Heat map. MARA minus LARA in points: " + ", ".join(parts)


if __name__ == "__main__":
    run(draw, __doc__)
