"""Whole files or none: results appear under their final name only when complete."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNREADABLE = (OSError, KeyError, TypeError, ValueError, RuntimeError, EOFError, pickle.UnpicklingError)
"""What reading a damaged or foreign file of weights raises."""


def why_unreadable(error: BaseException) -> str:
    """Return the reason of one of ``UNREADABLE`` in a few words.

    Of pickles PyTorch says how to read them all the same; no user should be told that.
    """
    if isinstance(error, pickle.UnpicklingError):
        return "it is no file of weights alone"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` (file or directory); rename it into place on success.

    Missing parent folders are made. On an exception what was written is removed and ``path`` keeps
    its earlier content.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part{target.suffix}")
    try:
        yield temporary
        if temporary.is_dir() and target.exists():
            shutil.rmtree(target)
        os.replace(temporary, target)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink(missing_ok=True)
