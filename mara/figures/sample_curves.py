"""Learning curves as recorded, some of each family, and some of the synthetic prior."""

from __future__ import annotations

import pandas as pd

from mara.figures.style import Drawn, colour, display_name, in_family_order, log_axis, need, panels, run


def draw(curves: pd.DataFrame) -> Drawn:
    """A panel a family, a line a curve, logarithmic loss."""
    need(curves, "any curve")
    families = in_family_order(curves["family"])
    columns = min(2, len(families))
    rows = -(-len(families) // columns)
    figure, axes = panels(rows, columns, 0.6 + 2.0 * rows, sharex=True)
    for axis, family in zip(axes.ravel(), families, strict=False):
        part = curves[curves["family"] == family]
        for _, line in part.groupby("curve", sort=False):
            axis.plot(line["unit"], line["loss"], color=colour(family), linewidth=0.9, alpha=0.7)
        log_axis(axis)
        axis.set_title(f"{display_name(family)} ({part['curve'].nunique()} curves)")
    for axis in axes.ravel()[len(families) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("validation loss")
    for axis in axes[-1]:
        axis.set_xlabel("units trained")
    return Drawn(
        figure,
        "Learning curves come in many shapes",
        "Validation loss against units of training for curves drawn at random from each family; synthetic "
        f"curves come from the prior that is used in training only. n = {curves['curve'].nunique()} curves.",
        f"Line charts of learning curves: {', '.join(display_name(f) for f in families)}",
    )


if __name__ == "__main__":
    run(draw, __doc__)
