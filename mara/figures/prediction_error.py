"""Error of each predictor on each family: nMAE of the median and nCRPS of the distribution."""

from __future__ import annotations

import pandas as pd
from matplotlib.lines import Line2D

from mara.figures.style import (
    FAINT,
    Drawn,
    colour,
    display_name,
    dot_rows,
    in_family_order,
    name_rows,
    need,
    panels,
    run,
    span,
)


def draw(prediction: pd.DataFrame) -> Drawn:
    """Dots with intervals, predictors sorted by their mean nMAE, a panel a family."""
    need(prediction, "any predictor")
    order = prediction.groupby("predictor")["nmae"].mean().sort_values(kind="stable").index.tolist()
    families = in_family_order(prediction["family"])
    figure, axes = panels(1, len(families), 1.6 + 0.26 * len(order), sharey=True, sharex=True)
    for axis, family in zip(axes[0], families, strict=True):
        rows = prediction[prediction["family"] == family].drop_duplicates("predictor")
        split = str(rows["split"].iloc[0]).replace("_", " ")
        rows = rows.set_index("predictor").reindex(order).reset_index()
        colours = [colour(p) for p in order]
        dot_rows(axis, rows, ("nmae", "nmae_low", "nmae_high"), colours, offset=-0.14)
        dot_rows(axis, rows, ("ncrps", "ncrps_low", "ncrps_high"), colours, offset=0.16, hollow=True)
        axis.set_title(f"{display_name(family)}\n({split})")
        axis.set_xlabel("error / units left")
    axes[0, 0].set_xlim(0, 1.04 * float(prediction["nmae_high"].max()))
    name_rows(axes[0, 0], [display_name(p) for p in order])
    for axis in axes[0, 1:]:
        axis.tick_params(axis="y", length=0)
        axis.grid(axis="y", visible=False)
    handles = [
        Line2D([], [], marker="o", linestyle="", color=FAINT, label="nMAE of the median"),
        Line2D([], [], marker="o", linestyle="", color=FAINT, markerfacecolor="none", label="nCRPS"),
    ]
    figure.legend(handles=handles, loc="outside lower right", ncols=2)
    return Drawn(figure, _title(prediction, families), _caption(prediction), _alt(prediction, families))


def _pair(prediction: pd.DataFrame, family: str) -> tuple[float, float] | None:
    """nMAE of flow and of WLS on a family, where both were measured."""
    rows = (
        prediction[prediction["family"] == family].drop_duplicates("predictor").set_index("predictor")["nmae"]
    )
    return (float(rows["flow"]), float(rows["wls"])) if {"flow", "wls"} <= set(rows.index) else None


def _title(prediction: pd.DataFrame, families: list[str]) -> str:
    pairs = {family: _pair(prediction, family) for family in families}
    better = [family for family, pair in pairs.items() if pair is not None and pair[0] < pair[1]]
    if len(better) == len(families):
        return "Flow matching predicts the remaining demand with less error than WLS on every family"
    if not better:
        return "Flow matching predicts the remaining demand no better than WLS"
    names = " and ".join(display_name(f) for f in better)
    return f"Flow matching predicts the remaining demand with less error than WLS on {names} only"


def _caption(prediction: pd.DataFrame) -> str:
    return (
        "Error in the remaining demand as a share of the units left on the curve, smaller is better: "
        "absolute error of the median (filled) and continuous ranked probability score (hollow). "
        "Predictors are sorted by their mean error over the families. Lines are 95 % intervals over curve "
        f"groups; n = {span(prediction['n_cases'])} cases in {span(prediction['n_groups'])} groups a family."
    )


def _alt(prediction: pd.DataFrame, families: list[str]) -> str:
    parts = []
    for family in families:
        pair = _pair(prediction, family)
        if pair is not None:
            parts.append(f"{display_name(family)}: flow matching {pair[0]:.3f}, WLS {pair[1]:.3f}")
    return "Dot plot of prediction errors. nMAE " + "; ".join(parts)


if __name__ == "__main__":
    run(draw, __doc__)
