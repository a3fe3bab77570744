"""What a run's configuration and earlier runs of its group are worth in completed tasks, by family."""

from __future__ import annotations

import pandas as pd

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
    percent_axis,
    points,
    run,
    span,
)

ROWS = {
    ("index_history_0", "index"): "configuration",
    ("index_history_1", "index"): "and 1 earlier run",
    ("index_history", "index"): "and 3 earlier runs",
    ("mara_history", "mara"): "MARA: all of these",
}
"""(method, baseline) -> what the method's forecasts know and the baseline's do not."""


def draw(history: pd.DataFrame) -> Drawn:
    """Paired differences with intervals; a panel for each family."""
    pairs = pd.Series(list(zip(history["method"], history["baseline"], strict=True)), index=history.index)
    rows = need(history[pairs.isin(list(ROWS))], "index_history or mara_history")
    workloads = in_family_order(rows["workload"])
    parts = [_shown(rows[rows["workload"] == workload]) for workload in workloads]
    height = 1.1 + 0.3 * max(map(len, parts))
    figure, axes = panels(1, len(parts), height, sharex=True, sharey=True)
    for axis, workload, part in zip(axes[0], workloads, parts, strict=True):
        colours = [colour(str(name)) for name in part["baseline"]]
        dot_rows(axis, part, ("difference", "diff_low", "diff_high"), colours)
        axis.axvline(0.0, color=FAINT, linewidth=1.0)
        percent_axis(axis, sign=True)
        axis.set_title(display_name(workload))
        name_rows(axis, [str(name) for name in part["label"]])
    axes[0, len(parts) // 2].set_xlabel("change in tasks completed / points")
    return Drawn(figure, _title(workloads, parts), _caption(rows), _alt(workloads, parts))


def _shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The drawn rows of one family in the order of ``ROWS``."""
    indexed = rows.set_index(["method", "baseline"])
    known = [pair for pair in ROWS if pair in indexed.index]
    return indexed.loc[known].reset_index().assign(label=[ROWS[pair] for pair in known])


def _title(workloads: list[str], parts: list[pd.DataFrame]) -> str:
    most = ", ".join(
        f"{points(float(part[part['baseline'] == 'index']['difference'].iloc[-1]))} on {display_name(workload)}"
        for workload, part in zip(workloads, parts, strict=True)
        if (part["baseline"] == "index").any()
    )
    return f"Earlier runs change completion by {most} points" if most else "Earlier runs"


def _caption(rows: pd.DataFrame) -> str:
    return (
        "Change in completion at the training load, on the same episodes, when forecasts know the run's "
        "configuration, and up to 1 or 3 earlier runs of its group besides (never the one that set the target): "
        "for the index, with the same weights in each of its rows that know more, and for MARA, trained anew. "
        "Forecasts that know more are made when a task's units have grown by a tenth, and carried on in between. "
        "Lines are 95 % intervals over curve groups; "
        f"n = {span(rows['n_episodes'])} episodes a family, {span(rows['n_groups'])} groups."
    )


def _alt(workloads: list[str], parts: list[pd.DataFrame]) -> str:
    said = []
    for workload, part in zip(workloads, parts, strict=True):
        values = [f"{row['label']} {points(float(row['difference']))}" for row in part.to_dict("records")]
        said.append(f"{display_name(workload)}: " + ", ".join(values))
    return "Dots with intervals, points of completion. " + "; ".join(said)


if __name__ == "__main__":
    run(draw, __doc__)
