"""Files of tensors: weights and checkpoints, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mara.files import atomic_path


def save_tensors(path: Path | str, content: Mapping[str, Any]) -> None:
    """Write tensors and plain values to one file that ``torch.load(path, weights_only=True)`` reads.

    Equal content makes equal bytes: torch is given a file, since of a path it writes the name into the archive, here
    that of the temporary file.
    """
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        torch.save(dict(content), file)
