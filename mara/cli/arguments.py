"""What the commands' parsers share: an example in the help, and one line for a wrong word."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any, NoReturn

from mara.errors import InputError


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are :class:`InputError` lines, without the usage above them."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong and where the help is."""
        raise InputError(f"{self.prog}: {message}; see {self.prog} --help")


def command_parser(name: str, description: str, example: str) -> CommandParser:
    """Return the parser of ``mara <name>`` with ``--json``; ``example`` is shown at the end of its help."""
    parser = CommandParser(
        prog=f"mara {name}",
        description=description,
        epilog="example:\n" + "\n".join(f"  {line}" for line in example.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document, for machines")
    return parser


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
