"""Stamps that tell Snakemake which stages an edit of the package concerns.

Snakemake sees changes of input files, parameters and rule code, but not of imported modules. So a rule names
as an input the stamp of its stage's module: a file with a hash of the meaning of that module and of every
module that it imports inside the package, transitively. The file is written only when a hash changes:
comments, docstrings, formatting, checkouts and touched files stay quiet. Package data (curves, templates)
have stamps of their bytes.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from mara.files import atomic_path

PACKAGE = Path(__file__).resolve().parent


@cache
def module_path(module: str) -> Path | None:
    """Return the source file of ``module`` (dotted, ``mara.…``), or None if there is no such module."""
    stem = PACKAGE.joinpath(*module.split(".")[1:])
    for path in (stem.with_suffix(".py"), stem / "__init__.py"):
        if path.is_file():
            return path
    return None


def _runs_on_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what importing a module executes: neither functions' bodies nor type-checking blocks."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        yield child
        yield from _runs_on_import(child)


@cache
def direct_imports(module: str) -> frozenset[str]:
    """Return the package's modules that importing ``module`` imports.

    Imports inside functions are not followed: whoever calls for one of several by name (a registry) names
    it as an entry of its own, so that an edit of one predictor does not concern the others.
    """
    path = module_path(module)
    if path is None:
        raise ValueError(f"no module {module} in the package")
    found: set[str] = set()
    for node in _runs_on_import(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(name for name in found if name.split(".")[0] == "mara" and module_path(name))


def imported_modules(entries: Iterable[str]) -> list[str]:
    """Return ``entries`` and all modules of the package that they import, transitively, sorted.

    The packages that hold a module are imported with it, but their ``__init__.py`` files are empty, so
    they are left out.
    """
    pending, seen = list(entries), set()
    while pending:
        module = pending.pop()
        if module not in seen:
            seen.add(module)
            pending.extend(direct_imports(module))
    return sorted(name for name in seen if not str(module_path(name)).endswith("__init__.py"))


class _WithoutDocstrings(ast.NodeTransformer):
    """Drops bare strings: docstrings of modules, classes, functions and attributes."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        """Drop a statement that is only a string."""
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node


def source_hash(text: str) -> str:
    """Return a hash of what Python source does: comments, docstrings and formatting do not count."""
    tree = _WithoutDocstrings().visit(ast.parse(text))
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _write_if_changed(stamp: Path, content: str) -> None:
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != content:
        with atomic_path(stamp) as temporary:
            temporary.write_text(content, encoding="utf-8")


@cache
def _module_hash(module: str) -> str:
    path = module_path(module)
    assert path is not None
    return source_hash(path.read_text(encoding="utf-8"))


@cache
def stamp_modules(entries: tuple[str, ...], folder: Path) -> str:
    """Bring the stamp of ``entries`` and of all they import up to date; return its path.

    The stamp is named after the entries and lists the hash of every module.
    """
    stamp = folder / f"{'+'.join(entry.removeprefix('mara.') for entry in entries)}.txt"
    lines = [f"{_module_hash(module)} {module}\n" for module in imported_modules(entries)]
    _write_if_changed(stamp, "".join(lines))
    return str(stamp)


@cache
def stamp_data(pattern: str, folder: Path) -> str:
    """Bring the stamp of the package data files matching ``pattern`` up to date; return its path."""
    stamp = folder / f"{pattern.replace('/', '.').replace('*', 'all')}.txt"
    paths = sorted(PACKAGE.glob(pattern))
    lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()} {p.relative_to(PACKAGE)}\n" for p in paths]
    _write_if_changed(stamp, "".join(lines))
    return str(stamp)
