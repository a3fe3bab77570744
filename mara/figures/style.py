"""The look that all figures share, and how a figure becomes files.

A figure module has ``draw(table, ...) -> Drawn`` and ends with ``run(draw, __doc__)``. Each parameter of
``draw`` is a table and becomes an option of the command line: ``python -m mara.figures.completion_load
--completion completion.csv --output folder/completion_load`` writes ``.svg``, ``.png`` and ``.json`` (title,
caption and text for readers who do not see the picture) under that stem.

Colours are those of Okabe and Ito, told apart by colour-blind readers; a method keeps its colour in every
figure. Ink and grid have fixed values of their own so that a page can replace them in the SVG.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from mara.command_line import LineParser
from mara.errors import InputError, exit_on_input_error
from mara.files import atomic_path

INK = "#1b2127"
FAINT = "#8a939d"
GRID = "#dde1e6"
WIDTH = 5.2
"""Inches; at this width type of 9 points can still be read on a phone that shows the figure whole."""

POOLED = "all"
PUBLISHED = {"mara": 0.6346, "lara": 0.5492}
"""Completion at the training load as published, drawn as reference lines."""

_VERMILION, _BLUE, _SKY, _GREEN, _ORANGE, _PINK = (
    "#d55e00",
    "#0072b2",
    "#56b4e9",
    "#009e73",
    "#e69f00",
    "#cc79a7",
)
COLOURS = {
    "mara": _VERMILION,
    "flow": _VERMILION,
    "flow_deadline": _VERMILION,
    "lara": _BLUE,
    "wls": _BLUE,
    "lara_tuned": _SKY,
    "wls_tuned": _BLUE,
    "wls_best": _SKY,
    "wls_calibrated": _SKY,
    "index": _GREEN,
    "gittins": _GREEN,
    "mat": _VERMILION,
    "boosting": _GREEN,
    "direct": INK,
    "lara_slope": _PINK,
    "slope_loglog": _PINK,
    "slope_semilog": _PINK,
    "slope_calibrated": _PINK,
    "edf": _ORANGE,
    "kalman": _ORANGE,
    "clairvoyant": INK,
    "oracle": INK,
    "supervised": _BLUE,
    "vision": _GREEN,
    "rl": _ORANGE,
    "synthetic": _PINK,
}
MARKERS = {
    "mara": "o",
    "lara": "s",
    "lara_tuned": "D",
    "lara_slope": "v",
    "index": "^",
    "edf": "P",
    "clairvoyant": "*",
}
FAMILY_ORDER = ("supervised", "vision", "rl", "synthetic")
NAMES = {
    "mara": "MARA",
    "lara": "LARA",
    "laira": "LaiRA",
    "wls": "WLS",
    "wls_tuned": "WLS, tuned",
    "wls_best": "WLS, best of six",
    "wls_calibrated": "WLS, calibrated",
    "slope_loglog": "log-log slope",
    "slope_semilog": "semilog slope",
    "slope_calibrated": "slope, calibrated",
    "flow": "flow matching",
    "flow_deadline": "flow + deadline",
    "flow_history": "flow + history",
    "flow_distilled": "flow, distilled",
    "direct": "direct head",
    "neighbours": "nearest curves",
    "edf": "EDF",
    "fifo": "FIFO",
    "srpt": "SRPT",
    "mat": "MAT",
    "rl": "RL",
    "moore_hodgson": "Moore–Hodgson",
    "least_laxity": "least laxity",
    "none": "no predictor",
}


@dataclass(frozen=True)
class Drawn:
    """A finished figure with the words that go with it.

    title: what is to be seen, in one sentence. caption: how to read it, n and interval. alt: what a
    reader who does not see the picture should know.
    """

    figure: Figure
    title: str
    caption: str
    alt: str


def colour(name: str) -> str:
    """The colour of a method, predictor, allocator or family; grey for those without one of their own."""
    return COLOURS.get(name, FAINT)


def display_name(name: str) -> str:
    """How a name from the tables is written for readers."""
    if name in NAMES:
        return NAMES[name]
    for prefix in ("mara_", "lara_", "flow_"):
        if name.startswith(prefix):
            return f"{display_name(prefix[:-1])} {name.removeprefix(prefix).replace('_', ' ')}"
    if name.endswith("_deadline"):
        return f"{display_name(name.removesuffix('_deadline'))} + deadline"
    return name.replace("_", " ")


def in_family_order(present: Iterable[str]) -> list[str]:
    """The families of a table, each once: the study's in their order, then those of the reader's own logs."""
    found = list(dict.fromkeys(map(str, present)))
    return sorted(found, key=lambda name: FAMILY_ORDER.index(name) if name in FAMILY_ORDER else 9)


def percent(value: float, digits: int = 1) -> str:
    """A fraction as a percentage, 0.634 -> "63.4 %"."""
    return f"{100 * value:.{digits}f} %"


def points(value: float) -> str:
    """A difference of fractions in percentage points with its sign, 0.085 -> "+8.5"."""
    return f"{100 * value:+.1f}".replace("-", "−")


def span(values: Iterable[float]) -> str:
    """The one value or the range of whole numbers, for captions."""
    whole = sorted({int(v) for v in values})
    return f"{whole[0]:,}" if whole[0] == whole[-1] else f"{whole[0]:,} to {whole[-1]:,}"


def panels(rows: int, columns: int, height: float, **options: Any) -> tuple[Figure, np.ndarray]:
    """A figure of the common width with (rows, columns) axes, ``height`` inches high in all."""
    apply_style()
    figure, axes = plt.subplots(
        rows, columns, figsize=(WIDTH, height), squeeze=False, layout="constrained", **options
    )
    return figure, axes


def apply_style() -> None:
    """Set Matplotlib's parameters; the same input then gives the same bytes."""
    plt.rcdefaults()
    plt.rcParams.update(
        {
            "font.family": "DejaVu Sans",
            "font.size": 9.0,
            "axes.titlesize": 9.5,
            "axes.titlelocation": "left",
            "axes.labelsize": 9.0,
            "axes.edgecolor": FAINT,
            "axes.labelcolor": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": GRID,
            "grid.linewidth": 0.7,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
            "legend.frameon": False,
            "legend.fontsize": 8.5,
            "lines.linewidth": 1.6,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "svg.hashsalt": "mara",
            "svg.fonttype": "path",
        }
    )


def percent_axis(axes: Axes, which: str = "x", sign: bool = False) -> None:
    """Label an axis of fractions in percent (or in signed points)."""
    axis = axes.xaxis if which == "x" else axes.yaxis

    def label(value: float, _: object) -> str:
        rounded = round(100 * value, 6) or 0.0
        return (f"{rounded:+.3g}" if sign and rounded else f"{rounded:.3g}").replace("-", "−")

    axis.set_major_formatter(FuncFormatter(label))


FEW_DECADES = 300.0
"""Ratio of an axis's ends up to which there is room for three labels a decade."""


def log_axis(axes: Axes, which: str = "y") -> None:
    """A logarithmic axis for what is drawn, labelled with plain numbers: at 1, 2 and 5, over many decades at 1."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    subs = (1.0, 2.0, 5.0) if high < low * FEW_DECADES else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs, numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Names down the left side, the first on top, no grid between them."""
    axes.set_yticks(range(len(names)), labels=list(names))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def dot_rows(
    axes: Axes,
    rows: pd.DataFrame,
    columns: tuple[str, str, str],
    colours: Sequence[str],
    offset: float = 0.0,
    hollow: bool = False,
    label: str | None = None,
) -> None:
    """A dot with its interval for each row of a table, the first on top; columns: value, low, high."""
    value, low, high = (rows[c].to_numpy(dtype=float) for c in columns)
    y = np.arange(len(rows)) + offset
    axes.hlines(y, low, high, colors=list(colours), linewidth=1.6)
    faces = "none" if hollow else list(colours)
    axes.scatter(
        value, y, s=26, marker="o", edgecolors=list(colours), facecolors=faces, zorder=3, label=label
    )


def method_bars(axes: Axes, rows: pd.DataFrame) -> None:
    """Completion with its interval as a bar for each method, the first row on top; value beside the name."""
    y = np.arange(len(rows))
    rate, low, high = (rows[c].to_numpy(dtype=float) for c in ("completion_rate", "ci_low", "ci_high"))
    axes.barh(y, rate, height=0.68, color=[colour(m) for m in rows["method"]], alpha=0.85)
    axes.hlines(y, low, high, color=INK, linewidth=1.3)
    name_rows(axes, [f"{display_name(m)}  {100 * v:.1f}" for m, v in zip(rows["method"], rate, strict=True)])
    axes.set_xlim(0, min(1.0, float(np.nanmax(np.append(high, rate))) * 1.04 + 0.01))
    percent_axis(axes)


def bar_panels(parts: Sequence[tuple[str, pd.DataFrame]]) -> tuple[Figure, list[Axes]]:
    """A panel of bars for each (title, rows), the best method on top, a line at the clairvoyant optimum.

    The title of a single panel is left out.
    """
    most = max(len(rows) for _, rows in parts)
    figure, axes = panels(len(parts), 1, 0.8 + (0.45 + 0.23 * most) * len(parts), sharex=True)
    for axis, (title, rows) in zip(axes[:, 0], parts, strict=True):
        method_bars(axis, rows.sort_values("completion_rate", ascending=False, kind="stable"))
        for rate in rows.loc[rows["method"] == "clairvoyant", "completion_rate"]:
            axis.axvline(float(rate), color=colour("clairvoyant"), linewidth=1.0)
        if len(parts) > 1:
            axis.set_title(title)
    axes[-1, 0].set_xlabel("tasks completed / % of those that arrived")
    return figure, list(axes[:, 0])


def set_title(figure: Figure, title: str) -> None:
    """The figure's own title: left, bold, wrapped to the width."""
    wrapped = "\n".join(textwrap.wrap(title, int(figure.get_figwidth() * 10.6)))
    figure.suptitle(wrapped, x=0.008, ha="left", fontsize=10.5, fontweight="bold")


def pooled(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that pool the training seeds."""
    return table[table["train_seed"].astype(str) == POOLED]


def need(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """The table itself, if it has a row.

    Raises:
        InputError: nothing to draw.
    """
    if table.empty:
        raise InputError(f"figure: no row for {what}; the table must have at least one")
    return table


def save(drawn: Drawn, stem: Path) -> None:
    """Write ``stem``.svg, .png and .json; equal figures give equal bytes."""
    set_title(drawn.figure, drawn.title)
    with atomic_path(stem.with_name(stem.name + ".svg")) as path:
        drawn.figure.savefig(path, format="svg", metadata={"Date": None})
    with atomic_path(stem.with_name(stem.name + ".png")) as path:
        drawn.figure.savefig(path, format="png", dpi=200, facecolor="white", metadata={"Software": None})
    words = {"title": drawn.title, "caption": drawn.caption, "alt": drawn.alt}
    with atomic_path(stem.with_name(stem.name + ".json")) as path:
        path.write_text(json.dumps(words, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    plt.close(drawn.figure)


def read_table(path: Path) -> Any:
    """A CSV file as a frame; any other file as its text.

    Raises:
        InputError: the file is missing or is not a table.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a table made by the workflow")
    if path.suffix != ".csv":
        return path.read_text(encoding="utf-8")
    try:
        return pd.read_csv(path, keep_default_na=False, na_values=["", "nan", "NaN"])
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable CSV table ({str(error).splitlines()[0]})") from None


def run(draw: Callable[..., Drawn], description: str | None) -> None:
    """The command line of a figure: one option for each table that ``draw`` takes, and ``--output``."""

    def main() -> None:
        names = list(inspect.signature(draw).parameters)
        parser = LineParser(description=description)
        for name in names:
            parser.add_argument(f"--{name}", type=Path, required=True)
        parser.add_argument("--output", type=Path, required=True, help="stem of the files to write")
        arguments = parser.parse_args()
        tables = {name: read_table(getattr(arguments, name)) for name in names}
        try:
            drawn = draw(**tables)
        except KeyError as error:
            files = ", ".join(str(getattr(arguments, name)) for name in names)
            raise InputError(f"{files}: column {error} is missing; the figure reads it") from None
        save(drawn, arguments.output)

    exit_on_input_error(main)
