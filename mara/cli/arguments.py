"""What the commands share: an example in the help, where output may go, and JSON that every parser reads."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mara.command_line import LineParser
from mara.errors import InputError

PICTURES = (".png", ".svg", ".pdf")
"""Endings of pictures that can be drawn."""


def command_parser(name: str, description: str, example: str) -> LineParser:
    """Return the parser of ``mara <name>`` with ``--json``; ``example`` is shown at the end of its help."""
    parser = LineParser(
        prog=f"mara {name}",
        description=description,
        epilog="example:\n" + "\n".join(f"  {line}" for line in example.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document, for machines")
    return parser


def check_output(option: str, path: Path, endings: Sequence[str]) -> None:
    """Refuse, before any work is done, a file that can be seen to be none or not to be written.

    Raises:
        InputError: naming the option and what would be right.
    """
    if path.suffix.lower() not in endings:
        raise InputError(f"{option} {path}: expected a name that ends in {', '.join(endings)}")
    if path.is_dir():
        raise InputError(f"{option} {path}: a folder; expected the name of a file")
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir():
        raise InputError(f"{option} {path}: cannot be written ({above} is no folder)")
    if not os.access(above, os.W_OK):
        raise InputError(f"{option} {path}: cannot be written (no permission in {above})")


def print_json(document: Any) -> None:
    """Print JSON that every parser reads: numbers that are not finite become null."""
    print(json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
