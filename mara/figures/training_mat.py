"""Training curves of the multi-agent transformer: imitation, then PPO, for every training seed."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import FAINT, Drawn, colour, display_name, need, panels, run

PHASE_NAMES = {"imitation": "imitation", "ppo": "PPO"}


def draw(training: pd.DataFrame) -> Drawn:
    """A row a metric, a column a phase; thin lines are training seeds, the thick one their mean."""
    need(training, "any step")
    phases = list(dict.fromkeys(training["phase"].astype(str)))
    metrics = list(dict.fromkeys(training["metric"].astype(str)))
    figure, axes = panels(len(metrics), len(phases), 0.6 + 1.25 * len(metrics), sharex="col", sharey="row")
    for row, metric in zip(axes, metrics, strict=True):
        for axis, phase in zip(row, phases, strict=True):
            part = training[(training["metric"] == metric) & (training["phase"] == phase)]
            for _, seed in part.groupby("run", sort=False):
                axis.plot(seed["step"], seed["value"], color=FAINT, linewidth=0.8)
            mean = part.groupby("step")["value"].mean()
            axis.plot(mean.index, mean.to_numpy(), color=colour("mara"))
        row[0].set_ylabel(display_name(metric).replace(" ", "\n"), fontsize=8.5)
    for axis, phase in zip(axes[0], phases, strict=True):
        axis.set_title(PHASE_NAMES.get(phase, phase))
    for axis in axes[-1]:
        axis.set_xlabel("update")
    seeds = training["run"].nunique()
    return Drawn(
        figure,
        "Training of MAT: imitation of the best index, then PPO",
        "Grey lines are single training seeds, the coloured line is their mean. Completion rates are "
        f"fractions on training episodes, never on test episodes. n = {seeds} training "
        f"{'seed' if seeds == 1 else 'seeds'}.",
        f"Line charts of {', '.join(display_name(m) for m in metrics)} over training",
    )


if __name__ == "__main__":
    run(draw, __doc__)
