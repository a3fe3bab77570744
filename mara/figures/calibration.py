"""Whether forecast probabilities mean what they say: reliability and the PIT histogram, by family."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import INK, Drawn, colour, display_name, in_family_order, need, panels, run, span

PREFERRED = ("flow", "direct", "wls_calibrated", "slope_calibrated")
"""Predictors shown, where they are in the table; otherwise its first four."""


def draw(calibration: pd.DataFrame) -> Drawn:
    """A row a family: observed against nominal probability (left), density of the PIT (right)."""
    need(calibration, "any predictor")
    families = in_family_order(calibration["family"])
    predictors = _shown(calibration)
    calibration = calibration[calibration["predictor"].isin(predictors)]
    dashes = ("-", "--", ":", "-.")
    figure, axes = panels(len(families), 2, 0.9 + 1.8 * len(families), sharex=True)
    for row, family in zip(axes, families, strict=True):
        row[0].plot([0, 1], [0, 1], color=INK, linewidth=0.8)
        row[1].axhline(1.0, color=INK, linewidth=0.8)
        for i, predictor in enumerate(predictors):
            part = calibration[(calibration["family"] == family) & (calibration["predictor"] == predictor)]
            part = part.sort_values("x", kind="stable")
            look = {
                "color": colour(predictor),
                "linestyle": dashes[i % len(dashes)],
                "label": display_name(predictor),
            }
            reliability, pit = part[part["kind"] == "reliability"], part[part["kind"] == "pit"]
            row[0].plot(reliability["x"], reliability["value"], marker=".", **look)
            if len(pit):
                edges = [*pit["x"], 1.0]
                row[1].stairs(pit["value"], edges, baseline=None, linewidth=1.6, **look)
        row[0].set_ylabel(f"{display_name(family)}\nobserved share")
        row[1].set_ylabel("density")
        row[1].set_ylim(bottom=0)
    axes[0, 0].set_title("reliability")
    axes[0, 1].set_title("integral transform")
    axes[-1, 0].set_xlabel("forecast probability")
    axes[-1, 1].set_xlabel("forecast F(true demand)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=min(3, len(labels)))
    return Drawn(figure, _title(calibration), _caption(calibration), _alt(calibration))


def _shown(calibration: pd.DataFrame) -> list[str]:
    present = list(dict.fromkeys(calibration["predictor"]))
    return [p for p in PREFERRED if p in present] or present[: len(PREFERRED)]


def _worst(calibration: pd.DataFrame) -> pd.Series:
    """Largest distance between observed and nominal for each predictor over families."""
    rows = calibration[calibration["kind"] == "reliability"]
    return (rows["value"] - rows["x"]).abs().groupby(rows["predictor"], sort=False).max()


def _title(calibration: pd.DataFrame) -> str:
    worst = _worst(calibration)
    name = "flow" if "flow" in worst.index else str(worst.index[0])
    return f"Forecast probabilities of {display_name(name)} are off by at most {worst[name]:.2f}"


def _caption(calibration: pd.DataFrame) -> str:
    return (
        "Left: how often the demand was within the forecast quantile, against the quantile's level; the "
        "diagonal is perfect, a flat curve over-confident. Right: density of the forecast's distribution "
        "function at the true demand; level is perfect, a U over-confident, a slope biased. n = "
        f"{span(calibration['n'])} cases a family and predictor."
    )


def _alt(calibration: pd.DataFrame) -> str:
    parts = [f"{display_name(str(name))} {value:.2f}" for name, value in _worst(calibration).items()]
    return "Reliability curves and PIT histograms. Largest distance from the diagonal: " + ", ".join(parts)


if __name__ == "__main__":
    run(draw, __doc__)
