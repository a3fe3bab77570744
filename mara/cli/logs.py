"""What the commands that read logs share: their options, and shortened numbers."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from mara.curves.readers.log import Log
from mara.curves.readers.read import READERS, read_log


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Add how a log is to be read."""
    parser.add_argument(
        "--metric", help="column, or the end of its name (default: the likeliest, validation loss first)"
    )
    parser.add_argument("--axis", help="step, epoch, time, row or a column (default: the finest there is)")
    parser.add_argument("--format", choices=READERS, help="default: found out from the content")
    parser.add_argument(
        "--best", type=float, help="best value that the metric can have, e.g. 500 for a return"
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--maximise", dest="rising", action="store_true", default=None, help="more is better")
    way.add_argument("--minimise", dest="rising", action="store_false", help="less is better")


def read(arguments: argparse.Namespace, path: Path) -> Log:
    """Read a log as the options say."""
    return read_log(path, arguments.format, arguments.metric, arguments.axis, arguments.rising)


def length(value: float, horizon: float) -> str:
    """A length on an axis, or that it lies beyond the horizon."""
    return short(value) if math.isfinite(value) else f"more than {short(horizon)}"


def short(value: float) -> str:
    """A number to four digits, whole numbers in full."""
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.4g}"
