"""Where the time and the memory went, rule by rule."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mara.figures.style import COLOURS, FAINT, Drawn, display_name, log_axis, name_rows, need, panels, run


def draw(runtime: pd.DataFrame) -> Drawn:
    """Left: wall-clock and CPU seconds a rule, longest on top. Right: largest resident memory."""
    by_rule = need(runtime, "any rule").groupby("rule", sort=False)
    rows = by_rule[["wall_s", "cpu_s"]].sum().assign(max_rss_mb=by_rule["max_rss_mb"].max())
    rows = rows.sort_values("wall_s", ascending=False, kind="stable")
    figure, axes = panels(1, 2, 1.1 + 0.22 * len(rows), sharey=True, width_ratios=(1.6, 1.0))
    y = np.arange(len(rows))
    left, right = axes[0]
    left.barh(
        y - 0.18, rows["wall_s"].clip(lower=0.01), height=0.34, color=COLOURS["lara"], label="wall clock"
    )
    left.barh(y + 0.18, rows["cpu_s"].clip(lower=0.01), height=0.34, color=FAINT, label="CPU")
    log_axis(left, "x")
    left.set_xlabel("time / s")
    name_rows(left, [display_name(str(rule)) for rule in rows.index])
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    right.barh(y, rows["max_rss_mb"], height=0.6, color=COLOURS["index"])
    right.set_xlabel("memory / MB")
    right.tick_params(axis="y", length=0)
    right.grid(axis="y", visible=False)
    total, largest = float(rows["wall_s"].sum()), float(rows["max_rss_mb"].max())
    return Drawn(
        figure,
        f"{total / 60:.0f} minutes of work in all, at most {largest / 1000:.1f} GB at once in one job",
        "Wall-clock and CPU time summed over the jobs of each rule (logarithmic), and the largest resident "
        f"memory of any of its jobs. n = {len(rows)} rules; one run, so no interval.",
        "Bar charts. Longest: "
        + ", ".join(f"{display_name(str(r))} {v:.0f} s" for r, v in rows["wall_s"].head(5).items()),
    )


if __name__ == "__main__":
    run(draw, __doc__)
