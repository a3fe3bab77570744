"""The compiler of everything in the slot loop: Numba, with a cache that notices edits in callees.

Numba keys a cached function by its own file alone; an edit in a function that it calls from another
file would go unseen. Here the cache folder is named after the sources of the module *and of all
modules of this package that it imports*, so that an edit anywhere below compiles anew, and an edit
elsewhere does not.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE_ROOT = Path(__file__).resolve().parents[2]
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True}


def jit(function: Function) -> Function:
    """Compile a function whose arguments are arrays, scalars and named tuples of them; cache it on disk."""
    return _cached(function, reference_counts=True)


def jit_lean(function: Function) -> Function:
    """Compile, like :func:`jit`, a function that neither makes nor returns arrays.

    It does without Numba's atomic reference counts, which otherwise take nine tenths of the slot loop.
    """
    return _cached(function, reference_counts=False)


def jit_inlined(function: Function) -> Function:
    """Compile a function that receives a compiled function or returns arrays, as a part of each caller.

    Only inlined is such a callee's address known when its caller is compiled, without which Numba does
    not cache the caller; and only inlined do returned arrays follow the caller's rule of counting.
    """
    return numba.njit(inline="always", **OPTIONS)(function)


def _cached(function: Function, reference_counts: bool) -> Function:
    """Compile with the cache folder that belongs to the sources of the function's module."""
    source = Path(sys.modules[function.__module__].__file__ or "")
    config: Any = numba.config
    options = OPTIONS | {"_nrt": reference_counts}
    before = config.CACHE_DIR
    config.CACHE_DIR = str(_cache_root() / _stamp(source))
    try:
        return numba.njit(cache=True, **options)(function)
    finally:
        config.CACHE_DIR = before


@cache
def _cache_root() -> Path:
    """Return a writable folder for compiled code, the user's cache folder where there is one."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    root = Path(home) / "mara" / "compiled"
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError:
        root = Path(tempfile.gettempdir()) / f"mara-compiled-{os.getuid()}"
    return root


@cache
def _stamp(source: Path) -> str:
    """Hash a module's source with those of all modules of the package that it imports, however deep."""
    closure: set[Path] = set()
    todo = [source]
    while todo:
        path = todo.pop()
        if path not in closure:
            closure.add(path)
            todo.extend(_imported(path))
    digest = hashlib.sha256()
    for path in sorted(closure):
        digest.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def _imported(source: Path) -> tuple[Path, ...]:
    """List the files of this package that a module imports by absolute name."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
    package = PACKAGE_ROOT / "mara"
    files = (PACKAGE_ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in names)
    return tuple(file for file in files if package in file.parents and file.is_file())
