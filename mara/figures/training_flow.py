"""Training curves of the learned predictors: loss on the curves fitted and on those kept back."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mara.figures.style import COLOURS, FAINT, Drawn, display_name, log_axis, need, panels, run

COLUMNS = 2
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": FAINT, "linestyle": "-", "linewidth": 0.9},
    {"color": COLOURS["flow"], "linestyle": "-"},
    {"color": COLOURS["lara"], "linestyle": "--"},
    {"color": COLOURS["index"], "linestyle": ":"},
)


def draw(training: pd.DataFrame) -> Drawn:
    """A panel a run, a line a metric, over the gradient step."""
    need(training, "any step")
    runs, metrics = (list(dict.fromkeys(training[name].astype(str))) for name in ("run", "metric"))
    rows = -(-len(runs) // COLUMNS)
    figure, axes = panels(rows, min(COLUMNS, len(runs)), 1.0 + 1.7 * rows, sharex=True)
    for axis, name in zip(axes.ravel(), runs, strict=False):
        part = training[training["run"].astype(str) == name]
        for metric, look in zip(metrics, LOOKS, strict=False):
            line = part[part["metric"] == metric]
            axis.plot(line["step"], line["value"], label=metric.replace("_", " "), **look)
        if (part["value"] > 0).all():
            log_axis(axis)
        axis.set_title(display_name(name))
    for axis in axes.ravel()[len(runs) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("loss")
    for axis in axes[-1]:
        axis.set_xlabel("gradient step")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return Drawn(
        figure,
        "Training of the learned predictors",
        "Loss of each predictor during training, on the curves it is fitted to and on curve groups kept "
        f"back; losses of different kinds cannot be compared. n = {len(runs)} runs, one a predictor, so no "
        "interval.",
        f"Line charts of training losses of {', '.join(display_name(r) for r in runs)}",
    )


if __name__ == "__main__":
    run(draw, __doc__)
