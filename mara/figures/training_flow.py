"""Training curves of the flow: loss on the curves it is fitted to and on those kept back."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import Drawn, display_name, log_axis, need, panels, run

SHADES = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("-", "--", ":", "-.")


def draw(training: pd.DataFrame) -> Drawn:
    """Lines over the training step: a colour a run, a dash a metric."""
    need(training, "any step")
    runs, metrics = (list(dict.fromkeys(training[name].astype(str))) for name in ("run", "metric"))
    figure, axes = panels(1, 1, 3.2)
    axis = axes[0, 0]
    for i, name in enumerate(runs):
        for j, metric in enumerate(metrics):
            part = training[(training["run"].astype(str) == name) & (training["metric"] == metric)]
            if len(part):
                axis.plot(
                    part["step"],
                    part["value"],
                    color=SHADES[i % len(SHADES)],
                    linestyle=DASHES[j % len(DASHES)],
                    label=f"{display_name(name)}, {metric.replace('_', ' ')}",
                )
    if (training["value"] > 0).all():
        log_axis(axis)
    axis.set_xlabel("gradient step")
    axis.set_ylabel("loss")
    figure.legend(loc="outside lower center", ncols=2)
    return Drawn(
        figure,
        "Training of the flow",
        "Flow-matching loss during training, on fitted curves and on curve groups kept back for validation. "
        f"n = {len(runs)} {'run' if len(runs) == 1 else 'runs'}; single runs, so no interval.",
        f"Line chart of training losses of {', '.join(display_name(r) for r in runs)}",
    )


if __name__ == "__main__":
    run(draw, __doc__)
