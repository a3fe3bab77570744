"""Training curves of the learned predictors: loss on the curves fitted, and error on groups kept back."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import Drawn, colour, display_name, need, panels, run

METRICS = {"loss": "training loss", "calibration_ncrps": "nCRPS, kept back"}
"""What is drawn, with its label; a row of panels each."""


def draw(training: pd.DataFrame) -> Drawn:
    """A column a run, a row a metric, over the gradient step; every panel has a scale of its own."""
    drawn = need(training[training["metric"].isin(METRICS)], "any step of training")
    runs = list(dict.fromkeys(drawn["run"].astype(str)))
    metrics = [metric for metric in METRICS if (drawn["metric"] == metric).any()]
    figure, axes = panels(len(metrics), len(runs), 0.8 + 1.5 * len(metrics), sharex="col")
    for row, metric in zip(axes, metrics, strict=True):
        for axis, name in zip(row, runs, strict=True):
            line = drawn[(drawn["run"].astype(str) == name) & (drawn["metric"] == metric)]
            axis.plot(line["step"], line["value"], color=colour(name), marker="o", markersize=3)
            axis.locator_params(axis="y", nbins=4)
        row[0].set_ylabel(METRICS[metric])
    for axis, name in zip(axes[0], runs, strict=True):
        axis.set_title(display_name(name))
    for axis in axes[-1]:
        axis.set_xlabel("gradient step")
        axis.locator_params(axis="x", nbins=3)
    return Drawn(
        figure,
        "Training of the learned predictors",
        "Above: the loss on the curves that a predictor is fitted to, of a kind of its own for each. "
        f"Below: the forecasts' error on curve groups kept back. n = {len(runs)} runs, one a predictor, so no "
        "interval.",
        f"Line charts of training losses of {', '.join(display_name(r) for r in runs)}",
    )


if __name__ == "__main__":
    run(draw, __doc__)
