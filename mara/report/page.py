"""The report: one self-contained HTML file with verdicts first, and the same in short as Markdown.

The page is made from files alone: the tables, the figures with their captions, the configuration and a
description of where the results come from. It holds no script and asks for nothing from the network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined

from mara.errors import InputError
from mara.files import atomic_path
from mara.report.pictures import Picture, read_pictures
from mara.report.tables import locate, read_tables, sheet

TABLE_ORDER = ("claims", "completion", "comparisons", "losses", "prediction", "prediction_differences")
PAGE_TABLES_LEFT_OUT = (
    "fans",
    "gantt_events",
    "gantt_tasks",
    "sample_curves",
    "training_flow",
    "training_mat",
)
"""Tables of drawn points; the figures show them."""


def write_report(
    tables: Path, figures: Path, provenance: Path, config: Path, html: Path, markdown: Path
) -> None:
    """Write the page and the Markdown summary.

    Args:
        tables: folder of result tables (CSV); ``claims.csv`` and ``losses.csv`` are needed.
        figures: folder of figures as ``mara.figures.style.save`` writes them.
        provenance: JSON with git state, versions, seeds and what else the results were made from.
        config: the configuration as text.
        html: the page to write. markdown: the summary to write.

    Raises:
        InputError: a needed file is missing or not readable.
    """
    data, pictures = read_tables(tables), read_pictures(figures)
    origin = _read_provenance(provenance)
    if not config.is_file():
        raise InputError(f"{config}: no such file; give the configuration that the results were made with")
    page = render(data, pictures, origin, config.read_text(encoding="utf-8"))
    with atomic_path(html) as path:
        path.write_text(page, encoding="utf-8")
    with atomic_path(markdown) as path:
        path.write_text(summary(data, pictures, origin), encoding="utf-8")


def render(
    tables: dict[str, pd.DataFrame], pictures: list[Picture], provenance: Mapping[str, Any], config: str
) -> str:
    """The page as text."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(
        resources.files("mara.report").joinpath("report.html").read_text("utf-8")
    )
    drawn = {picture.name for picture in pictures}
    names = [n for n in TABLE_ORDER if n in tables]
    names += [n for n in tables if n not in TABLE_ORDER and n not in PAGE_TABLES_LEFT_OUT]
    return template.render(
        headline=headline(tables["claims"]),
        claims=[_claim(row, tables, drawn) for row in tables["claims"].to_dict("records")],
        losses=[_loss(row) for row in tables["losses"].to_dict("records")],
        compared=len(tables["comparisons"]) if "comparisons" in tables else None,
        pictures=pictures,
        sheets=[sheet(name, tables[name]) for name in names],
        provenance=list(flatten(provenance)),
        config=config,
    )


def headline(claims: pd.DataFrame) -> str:
    """How many claims hold, in a sentence."""
    held = claims[claims["holds"] == "true"]["claim"].tolist()
    which = f" ({', '.join(held)})" if held else ""
    return f"{len(held)} of {len(claims)} published claims hold{which}"


def amount(value: float, unit: str, sign: bool = True) -> str:
    """A measured value for readers: completion in points, errors as they are."""
    if value != value:
        return "unknown"
    scaled, digits = (100 * value, 2) if unit == "completion" else (value, 4)
    scaled = round(scaled, digits) + 0.0  # no minus before a zero
    return (f"{scaled:+.{digits}f}" if sign else f"{scaled:.{digits}f}").replace("-", "−")


def _claim(row: Mapping[Any, Any], tables: dict[str, pd.DataFrame], drawn: set[str]) -> dict[str, Any]:
    unit = str(row["unit"])
    try:
        published = amount(float(row["published"]), unit)
    except ValueError:
        published = str(row["published"])
    else:
        published += " points" if unit == "completion" else " nMAE"
    return {
        "id": row["claim"],
        "title": row["title"],
        "published": published,
        "measured": amount(row["measured"], unit),
        "low": amount(row["ci_low"], unit),
        "high": amount(row["ci_high"], unit),
        "unit": "points" if unit == "completion" else "nMAE",
        "holds": row["holds"] == "true",
        "n": row["n"],
        "rule": row["rule"],
        "note": row["note"],
        "where": locate(str(row["where"]), tables),
        "figure": row["figure"] if row["figure"] in drawn else "",
    }


def _loss(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        "setting": f"{row['suite']}, {row['workload']}, load {row['load']:g}".replace("_", " "),
        "baseline": str(row["baseline"]).replace("_", " "),
        "difference": amount(row["difference"], "completion"),
        "low": amount(row["diff_low"], "completion"),
        "high": amount(row["diff_high"], "completion"),
        "resolved": str(row["resolved"]).lower() == "true",
    }


def flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as (dotted name, value) pairs."""
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from flatten(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", ", ".join(map(str, inner)) if isinstance(inner, list) else str(inner)


def _read_provenance(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{path}: not readable as JSON; give the description of the run") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: an object is needed at the top, with names and values")
    return value


def summary(tables: dict[str, pd.DataFrame], pictures: list[Picture], provenance: Mapping[str, Any]) -> str:
    """The first page as Markdown, to be pasted elsewhere."""
    lines = [f"# {headline(tables['claims'])}", ""]
    lines += ["| claim | published | measured | 95 % interval | n | holds |", "|---|---|---|---|---|---|"]
    for row in tables["claims"].to_dict("records"):
        claim = _claim(row, tables, set())
        cells = (
            f"{claim['id']} {claim['title']}",
            claim["published"],
            f"{claim['measured']} {claim['unit']}",
            f"{claim['low']} to {claim['high']}",
            claim["n"],
            "yes" if claim["holds"] else "**no**",
        )
        lines.append("| " + " | ".join(str(c).replace("|", "/") for c in cells) + " |")
    losses = [_loss(row) for row in tables["losses"].to_dict("records")]
    lines += ["", "## Where MARA completes less than a baseline", ""]
    if not losses:
        lines.append("Nowhere among the settings compared.")
    for loss in losses:
        sure = "" if loss["resolved"] else ", within chance"
        lines.append(
            f"- {loss['setting']}: {loss['difference']} points against {loss['baseline']} "
            f"({loss['low']} to {loss['high']}{sure})"
        )
    lines += ["", "## Figures", ""]
    lines += [f"- `{p.name}`: {p.title}. {p.caption}" for p in pictures]
    lines += ["", "## Made from", ""]
    lines += [f"- {name}: {value}" for name, value in flatten(provenance)]
    return "\n".join(lines) + "\n"
