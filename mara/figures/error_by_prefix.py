"""Error of the flow and of simple baselines against the length of the prefix that they have seen."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import Drawn, colour, display_name, in_family_order, need, panels, run

SHOWN = ("wls", "slope_loglog", "kalman", "boosting", "direct", "flow", "flow_history")


def draw(prefixes: pd.DataFrame) -> Drawn:
    """A panel a family, a line a predictor with its interval as a band: nCRPS over the prefix's length."""
    shown = prefixes[prefixes["predictor"].isin(SHOWN)]
    need(shown, f"any of {', '.join(SHOWN)}")
    names = [name for name in SHOWN if name in set(shown["predictor"])]
    families = in_family_order(shown["family"])
    figure, axes = panels(1, len(families), 3.0, sharey=True)
    for axis, family in zip(axes[0], families, strict=True):
        for name in names:
            line = shown[(shown["family"] == family) & (shown["predictor"] == name)].sort_values("prefix")
            axis.plot(line["prefix"], line["ncrps"], color=colour(name), marker="o", label=display_name(name))
            axis.fill_between(
                line["prefix"], line["ncrps_low"], line["ncrps_high"], color=colour(name), alpha=0.12, lw=0
            )
        axis.set_title(display_name(family))
        axis.set_xlabel("points seen")
        axis.set_xticks(sorted(shown["prefix"].unique()))
    axes[0, 0].set_ylim(bottom=0.0)
    axes[0, 0].set_ylabel("nCRPS")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=min(4, len(names))
    )
    cases = shown.drop_duplicates(["family", "prefix"])["n_cases"]
    return Drawn(
        figure,
        "Forecast error by how much of the curve has been seen",
        "Continuous ranked probability score over the units left, by the points of the curve that the "
        f"predictor has seen; bands are 95 % intervals over curve groups. n = {cases.min()} to {cases.max()} "
        "cases a point.",
        f"Line charts of the error of {', '.join(display_name(name) for name in names)} by prefix length",
    )


if __name__ == "__main__":
    run(draw, __doc__)
