"""Forest plot of the ablations: what MARA loses or gains when one part is changed."""

from __future__ import annotations

import textwrap

import pandas as pd

from mara.figures.style import (
    FAINT,
    INK,
    Drawn,
    colour,
    dot_rows,
    name_rows,
    need,
    panels,
    percent_axis,
    points,
    run,
    span,
)


def draw(ablation: pd.DataFrame) -> Drawn:
    """A row an ablation, largest loss on top; in colour where the change survives Holm's correction."""
    rows = need(
        ablation[ablation["label"].notna() & (ablation["label"].astype(str) != "")], "any labelled ablation"
    )
    rows = rows.sort_values("difference_to_mara", kind="stable")
    figure, axes = panels(1, 1, 1.1 + 0.38 * len(rows))
    axis = axes[0, 0]
    shades = [colour("mara") if p < 0.05 else FAINT for p in rows["p_holm"]]
    dot_rows(axis, rows, ("difference_to_mara", "mara_low", "mara_high"), shades)
    axis.axvline(0.0, color=INK, linewidth=0.8)
    labels = zip(rows["label"], rows["difference_to_mara"], strict=True)
    name_rows(axis, [textwrap.fill(f"{label}  {points(float(value))}", 30) for label, value in labels])
    axis.set_xlabel("difference to the whole MARA / points")
    percent_axis(axis, sign=True)
    return Drawn(figure, _title(rows), _caption(rows), _alt(rows))


def _title(rows: pd.DataFrame) -> str:
    worst = rows.iloc[0]
    if worst["difference_to_mara"] >= 0 or not worst["p_holm"] < 0.05:
        return "No part of MARA is missed beyond chance"
    return f"MARA misses most: {worst['label']} ({points(float(worst['difference_to_mara']))} points)"


def _caption(rows: pd.DataFrame) -> str:
    return (
        "Paired difference in completion at the training load; to the left of zero the change costs "
        "completions. Lines are 95 % intervals over curve groups and training seeds; coloured where the "
        f"difference stays below p = 0.05 after Holm's correction over the {len(rows)} ablations. n = "
        f"{span(rows['n_episodes'])} episodes, {span(rows['n_groups'])} groups, {span(rows['n_seeds'])} "
        "training seeds."
    )


def _alt(rows: pd.DataFrame) -> str:
    parts = [f"{row['label']} {points(float(row['difference_to_mara']))}" for row in rows.to_dict("records")]
    return "Forest plot of ablations, points: " + ", ".join(parts)


if __name__ == "__main__":
    run(draw, __doc__)
