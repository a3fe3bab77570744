"""Reading the weights that the tuning stage wrote."""

from __future__ import annotations

import json
from pathlib import Path

from mara.config.allocators import MatchingWeights
from mara.errors import InputError


def read_index(path: Path) -> MatchingWeights:
    """Read the tuned weights of an index; where it was tuned without matching, the speed's power is the default.

    Raises:
        InputError: when the file is not one that the tuning of an index wrote.
    """
    try:
        return MatchingWeights.model_validate(json.loads(path.read_text(encoding="utf-8"))["weights"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: not the weights of a tuned index ({reason}); tune it anew") from None
