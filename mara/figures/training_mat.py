"""Training curves of the multi-agent transformer, phase by phase, for every training seed."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import FAINT, Drawn, colour, display_name, need, panels, run

PHASE_NAMES = {"ppo": "PPO"}
MOST = 8
"""Panels at most; metrics that change the most often are kept."""


def draw(training: pd.DataFrame) -> Drawn:
    """A panel for each phase and metric of MARA; thin lines are training seeds, the thick one their mean."""
    training = need(training[training["method"] == "mara"], "method=mara")
    steps = training.groupby(["phase", "metric"], sort=False)["step"].nunique()
    kept = set(steps[steps > 1].sort_values(ascending=False, kind="stable").index[:MOST])
    shown = [key for key in steps.index if key in kept] or list(steps.index[:MOST])
    rows = -(-len(shown) // 2)
    figure, axes = panels(rows, 2, 0.7 + 1.45 * rows)
    for axis, (phase, metric) in zip(axes.ravel(), shown, strict=False):
        part = training[(training["metric"] == metric) & (training["phase"] == phase)]
        for _, seed in part.groupby("run", sort=False):
            axis.plot(seed["step"], seed["value"], color=FAINT, linewidth=0.8)
        mean = part.groupby("step")["value"].mean()
        axis.plot(mean.index, mean.to_numpy(), color=colour("mara"))
        axis.set_title(PHASE_NAMES.get(phase, display_name(phase)))
        axis.set_ylabel(display_name(metric))
        axis.set_xlabel("step")
    for axis in axes.ravel()[len(shown) :]:
        axis.set_visible(False)
    seeds = training["run"].nunique()
    return Drawn(
        figure,
        "Training of MAT, phase by phase",
        "Grey lines are single training seeds, the coloured line is their mean. Completion rates are "
        f"fractions on training episodes, never on test episodes. n = {seeds} training "
        f"{'seed' if seeds == 1 else 'seeds'}.",
        "Line charts over training: "
        + ", ".join(f"{display_name(metric)} in {PHASE_NAMES.get(phase, phase)}" for phase, metric in shown),
    )


if __name__ == "__main__":
    run(draw, __doc__)
