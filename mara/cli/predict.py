"""``mara predict``: how much more training one run needs, from its log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mara.cli.arguments import PICTURES, check_output, command_parser, print_json
from mara.cli.logs import add_log_options, length, read, short
from mara.errors import printable
from mara.live.forecast import Remaining, forecast_remaining

DESCRIPTION = """\
Forecast how much more training a run needs until its metric, as a mean over the last five units, is at the
target. All lengths are on the log's own axis. A unit of the forecast is one logged point, or as many as make
about 100 units of the log."""
EXAMPLE = """\
mara predict runs/resnet/metrics.csv --target 0.3 --deadline-steps 5000 --plot resnet.png
mara predict runs/ppo/evaluations.npz --target 475 --best 500"""


def main(words: list[str]) -> None:
    """Read, forecast, print.

    Raises:
        InputError: for what the reader or the forecast refuses.
    """
    parser = command_parser("predict", DESCRIPTION, EXAMPLE)
    parser.add_argument("log", type=Path, help="a log, or a run's folder")
    parser.add_argument("--target", type=float, required=True, help="wanted value of the metric")
    parser.add_argument(
        "--deadline-steps", type=float, metavar="N", help="what is left of the axis until the deadline"
    )
    add_log_options(parser)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture: .png, .svg or .pdf")
    parser.add_argument("--quiet", action="store_true", help="no plot in the terminal")
    arguments = parser.parse_args(words)
    if arguments.plot is not None:
        check_output("--plot", arguments.plot, PICTURES)
    log = read(arguments, arguments.log)
    remaining = forecast_remaining(log, arguments.target, arguments.best, arguments.deadline_steps)
    if arguments.plot is not None:
        from mara.cli.plots import save_plot

        save_plot(remaining, arguments.plot)
    if arguments.json:
        print_json(as_document(remaining))
        return
    print(as_text(remaining))
    if not arguments.quiet:
        from mara.cli.plots import text_plot

        unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        print("\n" + text_plot(remaining, unicode))


def as_text(remaining: Remaining) -> str:
    """The answer in sentences."""
    question, log = remaining.question, remaining.question.log
    axis = log.axis_column or "rows"
    plural = "points" if len(log) > 1 else "point"
    lines = [
        f"{log.name}: {log.metric} by {axis}, {len(log)} {plural}, newest {short(log.values[-1])} at "
        f"{short(log.position[-1])} (read as {log.format})"
    ]
    low, high = (length(end, remaining.horizon) for end in remaining.interval)
    if remaining.reached:
        lines.append(f"target {question.target:g}: reached already")
    elif log.diverged:
        lines.append(f"target {question.target:g}: the run has diverged; it will not reach it")
    else:
        middle = length(remaining.median, remaining.horizon)
        interval = "" if low == middle == high else f", 80 % interval {low} to {high}"
        lines.append(f"target {question.target:g}: needs {middle} more ({axis}){interval}")
        lines.append(f"chance to reach it within {short(remaining.horizon)} more: {remaining.cdf[-1]:.0%}")
    if question.deadline is not None and not remaining.reached:
        chance = remaining.chance_within(question.deadline)
        least = "at least " if question.deadline > remaining.horizon else ""
        lines.append(f"chance to make the deadline in {short(question.deadline)}: {least}{chance:.0%}")
    notes = [f"a unit of the forecast is {short(remaining.units.size)} of the axis"]
    if remaining.units.interpolated:
        notes.append(f"{remaining.units.interpolated} units in which nothing was logged are interpolated")
    notes += [remaining.shortfall.rule] if remaining.shortfall.rule else []
    return "\n".join(map(printable, [*lines, *(f"note: {note}" for note in (*notes, *log.notes))]))


def as_document(remaining: Remaining) -> dict[str, Any]:
    """The answer for machines; lengths beyond the horizon are null."""
    question, log = remaining.question, remaining.question.log
    low, high = remaining.interval
    return {
        "log": str(log.path),
        "name": log.name,
        "format": log.format,
        "metric": log.metric,
        "axis": log.axis_column or log.axis,
        "points": len(log),
        "newest": {"position": float(log.position[-1]), "value": float(log.values[-1])},
        "target": question.target,
        "reached": remaining.reached,
        "diverged": log.diverged,
        "remaining": {"median": remaining.median, "low80": low, "high80": high},
        "horizon": remaining.horizon,
        "chance_within_horizon": float(remaining.cdf[-1]),
        "deadline": question.deadline,
        "chance_of_deadline": remaining.chance_of_deadline,
        "unit": remaining.units.size,
        "predictor": remaining.predictor,
        "shortfall": {"best": remaining.shortfall.best, "rule": remaining.shortfall.rule},
        "notes": list(log.notes),
    }
