"""What the stages' command lines share: settings as JSON, and the seed of a part's random generator."""

from __future__ import annotations

import hashlib
from typing import TypeVar

import numpy as np
from pydantic import ValidationError

from mara.command_line import LineParser
from mara.config.base import Section
from mara.config.problems import describe
from mara.errors import InputError

SectionT = TypeVar("SectionT", bound=Section)


def stage_parser(description: str | None) -> LineParser:
    """Return a parser with ``--settings``, the JSON of exactly those settings that the stage reads."""
    parser = LineParser(description=description)
    parser.add_argument("--settings", required=True, help="this stage's settings as JSON")
    return parser


def read_settings(model: type[SectionT], text: str) -> SectionT:
    """Parse the JSON of ``--settings``.

    Raises:
        InputError: if it does not fit ``model``.
    """
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise InputError("--settings: " + "; ".join(describe(error, model, []))) from None


def seed_for(seed: int, *purpose: str | int) -> int:
    """Return a 63-bit seed of its own for each purpose, so that no two parts share a random stream."""
    key = "/".join(map(str, (seed, *purpose))).encode()
    return int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 1


def generator_for(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return a NumPy generator seeded by :func:`seed_for`."""
    return np.random.default_rng(seed_for(seed, *purpose))
