"""Where a long training keeps its checkpoint: outside declared outputs, under a key of what it depends on.

Snakemake deletes the outputs of a job that failed or was killed. A checkpoint under a key of settings, inputs
and code survives that, and is never picked up by a run that would have gone another way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from mara.code_stamps import imported_modules, module_path, source_hash


def _files(path: Path) -> list[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def checkpoint_path(
    folder: Path, modules: Iterable[str], settings: Iterable[str], inputs: Iterable[Path]
) -> Path:
    """Return the checkpoint's path in ``folder``.

    Args:
        folder: where checkpoints are kept.
        modules: the modules that do the training; what they import counts too.
        settings: everything given by value: settings, seeds, names.
        inputs: files, or folders of files, that are read.
    """
    digest = hashlib.sha256()
    for module in imported_modules(modules):
        path = module_path(module)
        assert path is not None
        digest.update(source_hash(path.read_text(encoding="utf-8")).encode())
    for text in settings:
        digest.update(hashlib.sha256(text.encode()).digest())
    for path in inputs:
        for file in _files(path):
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return folder / f"{digest.hexdigest()[:24]}.pt"
