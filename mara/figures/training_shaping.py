"""Learning from nothing with and without log-progress shaping: completion while PPO goes on."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import COLOURS, Drawn, display_name, need, panels, percent, percent_axis, run

NAMES = {"mara_scratch": "with shaping", "mara_scratch_no_shaping": "without shaping"}
SHADES = (COLOURS["mara"], COLOURS["lara"])
SMOOTHED = 5
"""Updates that a drawn point is the mean of: each plays other episodes, so single ones scatter."""


def draw(training: pd.DataFrame) -> Drawn:
    """A line a training seed, a colour a method; x in slots of experience, y the share of tasks completed."""
    rows = training[(training["phase"] == "ppo") & (training["method"] != "mara")]
    wide = need(rows, "phase=ppo of the two that learn from nothing").pivot_table(
        index=["method", "run", "step"], columns="metric", values="value"
    )
    figure, axes = panels(1, 1, 2.9)
    axis, last, seeds = axes[0, 0], {}, 0
    for method, shade in zip(dict.fromkeys(rows["method"]), SHADES, strict=False):
        name, ends = NAMES.get(method, display_name(method)), []
        for at, (_, part) in enumerate(wide.loc[method].groupby("run", sort=True)):
            mean = part["completion"].rolling(SMOOTHED, min_periods=1).mean()
            slots = part["slots"].cumsum() / 1000
            axis.plot(slots, mean, color=shade, label=None if at else name)
            ends.append(float(mean.iloc[-1]))
        last[name], seeds = sum(ends) / len(ends), max(seeds, len(ends))
    axis.set_xlabel("experience / 1,000 slots of an episode")
    axis.set_ylabel("tasks completed / %")
    percent_axis(axis, "y")
    axis.legend(loc="lower right")
    reached = ", ".join(f"{percent(rate)} {name}" for name, rate in last.items())
    return Drawn(
        figure,
        f"Learned from nothing: {reached}",
        "Completion on the training episodes that PPO plays with sampled actions, mean of the last "
        f"{SMOOTHED} updates; all tasks of an episode count. Same budget and seeds on both sides. n = {seeds} "
        f"training {'seed' if seeds == 1 else 'seeds'} each.",
        f"Line chart of completion against experience while learning from nothing; at the end {reached}.",
    )


if __name__ == "__main__":
    run(draw, __doc__)
