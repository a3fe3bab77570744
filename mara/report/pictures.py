"""Figures inside the page: SVG made to follow the page's colours, with ids that cannot clash."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from mara.errors import InputError

INK, GRID = "#1b2127", "#dde1e6"
"""The two colours that ``mara.figures.style`` reserves for replacement."""

ORDER = (
    "completion_training",
    "prediction_error",
    "completion_load",
    "held_out",
    "gap_closed",
    "attribution",
    "ablation",
    "history",
    "stress",
    "fairness",
    "error_by_prefix",
    "calibration",
    "forecast_fans",
    "gantt",
    "training_flow",
    "training_mat",
    "training_shaping",
    "sample_curves",
    "runtime",
    "dag",
)


@dataclass(frozen=True)
class Picture:
    """A figure ready for the page: its name, title, caption and inline SVG."""

    name: str
    title: str
    caption: str
    svg: str


def read_pictures(folder: Path) -> list[Picture]:
    """All figures of a folder, the known ones in the order of reading, then others by name.

    Raises:
        InputError: a figure lacks its words, or they are not as figures write them.
    """
    names = {path.stem for path in folder.glob("*.svg")}
    ordered = [name for name in ORDER if name in names] + sorted(names - set(ORDER))
    return [_read(folder, name) for name in ordered]


def _read(folder: Path, name: str) -> Picture:
    words_path = folder / f"{name}.json"
    try:
        words = json.loads(words_path.read_text(encoding="utf-8"))
        title, caption, alt = (str(words[key]) for key in ("title", "caption", "alt"))
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{words_path}: not the title, caption and alt of a figure; draw {name} again"
        ) from None
    return Picture(name, title, caption, inline_svg((folder / f"{name}.svg").read_text("utf-8"), name, alt))


def inline_svg(svg: str, name: str, alt: str) -> str:
    """An SVG document as an element of a page.

    Prologue and metadata go, ids get the figure's name in front, ink and grid become the page's colours,
    and the size is left to the page.
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    body = re.sub(r'href="#', f'href="#{name}-', body)
    body = body.replace(INK, "currentColor").replace(GRID, "var(--grid)")
    head, rest = body.split(">", 1)
    head = re.sub(r'\s(width|height|version)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{escape(alt, quote=True)}">{rest}'
