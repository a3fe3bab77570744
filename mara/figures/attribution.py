"""Predictor x allocator: completion in every cell, and what each factor contributes to the lead."""

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
    percent_axis,
    points,
    pooled,
    run,
    span,
)

EFFECTS = {
    "total": "whole lead",
    "predictor": "predictor",
    "allocator": "allocator",
    "interaction": "interaction",
}
MARKERS = "osD^vP*X"


def draw(attribution: pd.DataFrame, effects: pd.DataFrame) -> Drawn:
    """Left: completion over predictors, a line an allocator. Right: effects that make MARA out of LARA."""
    cells = need(pooled(attribution), "any cell")
    effects = need(effects[effects["method"] == "mara"], "method mara in the effects")
    workload = str(effects["workload"].iloc[0])
    cells = cells[cells["workload"] == workload]
    order = cells.groupby("predictor")["completion_rate"].mean().sort_values(kind="stable").index.tolist()
    figure, axes = panels(1, 2, 3.4, width_ratios=(1.35, 1.0))
    left, right = axes[0]
    allocators = list(dict.fromkeys(cells["allocator"]))
    for i, allocator in enumerate(allocators):
        part = cells[cells["allocator"] == allocator].set_index("predictor")
        known = [p for p in order if p in part.index]
        part = part.loc[known]
        x = [order.index(p) + 0.06 * (i - (len(allocators) - 1) / 2) for p in known]
        rate = part["completion_rate"]
        left.errorbar(
            x,
            rate,
            yerr=[rate - part["ci_low"], part["ci_high"] - rate],
            color=colour(allocator),
            marker=MARKERS[i % len(MARKERS)],
            markersize=5,
            label=display_name(allocator),
        )
    left.set_xticks(range(len(order)), labels=[display_name(p) for p in order])
    if len(order) > 3:
        left.tick_params(axis="x", labelrotation=30)
    left.set_xlim(-0.4, len(order) - 0.6)
    left.grid(axis="x", visible=False)
    left.set_ylabel("tasks completed / %")
    left.set_title("completion by predictor")
    figure.legend(loc="outside lower left", ncols=4, title="allocator", title_fontsize=8.5, alignment="left")
    percent_axis(left, "y")
    shown = effects.set_index("effect").reindex([e for e in EFFECTS if e in set(effects["effect"])])
    dot_rows(right, shown, ("value", "low", "high"), [INK] * len(shown))
    name_rows(right, [EFFECTS[str(e)] for e in shown.index])
    right.axvline(0.0, color=INK, linewidth=0.8)
    right.set_xlabel("change / points")
    right.set_title("from LARA to MARA")
    percent_axis(right, sign=True)
    return Drawn(figure, _title(shown), _caption(cells, effects), _alt(shown))


def _title(shown: pd.DataFrame) -> str:
    value = shown["value"]
    return (
        f"Of MARA's {points(value['total'])} points over LARA, {points(value['predictor'])} are owed to the "
        f"predictor and {points(value['allocator'])} to the allocator"
    )


def _caption(cells: pd.DataFrame, effects: pd.DataFrame) -> str:
    row = effects.iloc[0]
    return (
        "Left: every allocator on every predictor, on the same episodes. Right: the lead split into the "
        "predictor's and the allocator's main effect, each averaged over the two settings of the other "
        "factor (the two add up to the lead), and the interaction, what both changes bring beyond the sum "
        "of each alone. Lines are 95 % intervals over curve groups and training seeds; n = "
        f"{span(cells['n_episodes'])} episodes, {row['n_groups']} groups."
    )


def _alt(shown: pd.DataFrame) -> str:
    parts = [f"{EFFECTS[str(name)]} {points(float(row['value']))}" for name, row in shown.iterrows()]
    return "Interaction plot and effects in points: " + ", ".join(parts)


if __name__ == "__main__":
    run(draw, __doc__)
