"""Verdicts and losses as readers see them, on the page and in Markdown alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from mara.report.tables import locate


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


def claim(row: Mapping[Any, Any], tables: dict[str, pd.DataFrame], drawn: set[str]) -> dict[str, Any]:
    """A row of ``claims.csv`` with its numbers as text; ``drawn`` are the names of the figures at hand."""
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


def loss(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row of ``losses.csv`` with its numbers as text."""
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
