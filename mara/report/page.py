"""The report: one self-contained HTML file with verdicts first, and the same in short as Markdown.

The page is made from files alone: the tables, the figures with their captions, the configuration and a
description of where the results come from. It holds no script and asks for nothing from the network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined

from mara.errors import InputError
from mara.files import atomic_path
from mara.report.markdown import summary
from mara.report.pictures import Picture, read_pictures
from mara.report.tables import read_tables, sheet
from mara.report.verdicts import claim, flatten, headline, loss

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
        claims=[claim(row, tables, drawn) for row in tables["claims"].to_dict("records")],
        losses=[loss(row) for row in tables["losses"].to_dict("records")],
        compared=len(tables["comparisons"]) if "comparisons" in tables else None,
        pictures=pictures,
        sheets=[sheet(name, tables[name]) for name in names],
        provenance=list(flatten(provenance)),
        config=config,
    )


def _read_provenance(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{path}: not readable as JSON; give the description of the run") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: an object is needed at the top, with names and values")
    return value
