"""What the flow expects of single curves: fans of forecast losses against what came, and the WLS fit."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from mara.figures.style import FAINT, INK, Drawn, colour, display_name, log_axis, need, panels, run

COLUMNS = 2


def draw(fans: pd.DataFrame) -> Drawn:
    """A panel a case: observed prefix, truth, 50 % and 90 % bands and median of the flow, WLS, target."""
    cases = list(dict.fromkeys(need(fans, "any case")["case"]))
    rows = -(-len(cases) // COLUMNS)
    figure, axes = panels(rows, COLUMNS, 0.9 + 2.0 * rows, sharex=True)
    for axis, case in zip(axes.ravel(), cases, strict=False):
        part = fans[fans["case"] == case]
        _fan(axis, {str(kind): lines.sort_values("unit") for kind, lines in part.groupby("kind")})
        axis.set_title(display_name(str(part["family"].iloc[0])))
        log_axis(axis)
    for axis in axes.ravel()[len(cases) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("validation loss")
    for axis in axes[-1]:
        axis.set_xlabel("units trained")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    families = ", ".join(display_name(str(f)) for f in dict.fromkeys(fans["family"]))
    return Drawn(
        figure,
        "Forecast fans of the flow against what the curves then did",
        "Seen so far (black), what came (grey), and the forecast made at the end of the black part: the "
        "flow's 50 % and 90 % bands and its median, and the WLS power law. Dashed: the target; its "
        f"crossing is the demand. n = {len(cases)} test curves ({families}), picked by rule and not by "
        "result.",
        f"Line charts of {len(cases)} learning curves with forecast bands",
    )


def _fan(axis: Axes, lines: dict[str, pd.DataFrame]) -> None:
    for low, high, alpha, label in (("q05", "q95", 0.16, "flow, 90 %"), ("q25", "q75", 0.32, "flow, 50 %")):
        if low in lines and high in lines:
            axis.fill_between(
                lines[low]["unit"],
                lines[low]["loss"],
                lines[high]["loss"],
                color=colour("flow"),
                alpha=alpha,
                linewidth=0,
                label=label,
            )
    styles = {
        "truth": (FAINT, "-", 1.2, "what came"),
        "history": (INK, "-", 1.4, "seen so far"),
        "wls": (colour("wls"), "-", 1.4, "WLS"),
        "q50": (colour("flow"), "-", 1.6, "flow, median"),
        "target": (INK, (0, (4, 3)), 0.9, "target"),
    }
    for kind, (shade, dash, width, label) in styles.items():
        if kind in lines:
            unit, loss = lines[kind]["unit"], lines[kind]["loss"]
            axis.plot(unit, loss, color=shade, linestyle=dash, linewidth=width, label=label)


if __name__ == "__main__":
    run(draw, __doc__)
