"""Stamps that tell Snakemake which stages an edit of the package concerns.

Snakemake sees changes of input files, parameters and rule code, but not of imported modules. So a rule names
as an input the stamp of its stage's module: a file with a hash of the meaning of that module and of every
module that it imports inside the package, transitively. The file is written only when a hash changes:
comments, docstrings, formatting, checkouts and touched files stay quiet. Package data (curves, templates)
have stamps of their bytes.

Beside the stamps lies a notebook of what was found in each source text, so that the next call of Snakemake
parses only the modules that were edited since.
"""

from __future__ import annotations

import ast
import hashlib
import json
import platform
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mara.files import atomic_path

PACKAGE = Path(__file__).resolve().parent
NOTEBOOK = "sources.json"


class Source(NamedTuple):
    """What counts about a module's text."""

    meaning: str
    """Hash of what the code does."""
    imports: tuple[str, ...]
    """Names that importing it may import from the package: modules, and what is taken from them."""


@cache
def module_path(module: str) -> Path | None:
    """Return the source file of ``module`` (dotted, ``mara.…``), or None if there is no such module."""
    stem = PACKAGE.joinpath(*module.split(".")[1:])
    for path in (stem.with_suffix(".py"), stem / "__init__.py"):
        if path.is_file():
            return path
    return None


def _runs_on_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements that importing a module executes: neither functions' bodies nor type-checking blocks."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        yield child
        yield from _runs_on_import(child)


class _WithoutDocstrings(ast.NodeTransformer):
    """Drops bare strings: docstrings of modules, classes, functions and attributes."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        """Drop a statement that is only a string."""
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node

    def visit(self, node: ast.AST) -> Any:
        """Visit statements only: no other node holds a docstring."""
        return super().visit(node) if isinstance(node, _HOLDS_STATEMENTS) else node


_HOLDS_STATEMENTS = (ast.mod, ast.stmt, ast.excepthandler, ast.match_case)


def read_source(text: str) -> Source:
    """Return what Python source does and imports; comments, docstrings and formatting do not count.

    Imports inside functions are not followed: whoever calls for one of several by name (a registry) names
    it as an entry of its own, so that an edit of one predictor does not concern the others.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError:  # the stages that import it say so in their logs
        return Source(hashlib.sha256(text.encode()).hexdigest(), ())
    found: set[str] = set()
    for node in _runs_on_import(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    imports = tuple(sorted(name for name in found if name.split(".")[0] == "mara"))
    meaning = ast.dump(_WithoutDocstrings().visit(tree))
    return Source(hashlib.sha256(meaning.encode()).hexdigest(), imports)


def source_hash(text: str) -> str:
    """Return a hash of what Python source does: comments, docstrings and formatting do not count."""
    return read_source(text).meaning


@cache
def _source(module: str) -> Source:
    path = module_path(module)
    if path is None:
        raise ValueError(f"no module {module} in the package")
    return read_source(path.read_text(encoding="utf-8"))


def _is_empty_package(module: str) -> bool:
    return str(module_path(module)).endswith("__init__.py")


def imported_modules(entries: Iterable[str], source_of: Callable[[str], Source] = _source) -> list[str]:
    """Return ``entries`` and all modules of the package that they import, transitively, sorted.

    The packages that hold a module are imported with it, but their ``__init__.py`` files are empty, so
    they are left out.
    """
    pending, seen = list(entries), set()
    while pending:
        module = pending.pop()
        if module not in seen:
            seen.add(module)
            pending.extend(name for name in source_of(module).imports if module_path(name))
    return sorted(name for name in seen if not _is_empty_package(name))


class Stamps:
    """The stamps in one folder, brought up to date as they are asked for.

    Args:
        folder: where they are kept, with the notebook of sources read before.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._paths: dict[tuple[str, ...], str] = {}
        self._sources: dict[str, Source] = {}
        notebook = folder / NOTEBOOK
        edition = [platform.python_version(), hashlib.sha256(Path(__file__).read_bytes()).hexdigest()]
        noted = _read_notebook(notebook, edition)
        notes = {}
        for path in sorted(PACKAGE.rglob("*.py")):
            data = path.read_bytes()
            key = hashlib.sha256(data).hexdigest()
            notes[key] = noted.get(key) or read_source(data.decode("utf-8"))
            self._sources[".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)] = notes[key]
        if notes != noted:
            with atomic_path(notebook) as temporary:
                temporary.write_text(json.dumps([edition, notes]), encoding="utf-8")

    def modules(self, *entries: str) -> str:
        """Bring the stamp of modules (dotted, ``mara.…``) and of all they import up to date; return its path.

        The stamp is named after the entries and lists the hash of every module.

        Raises:
            ValueError: if there is no such module.
        """
        if entries not in self._paths:
            name = "+".join(entry.removeprefix("mara.") for entry in entries)
            modules = imported_modules(entries, self._source)
            lines = [f"{self._source(module).meaning} {module}\n" for module in modules]
            self._paths[entries] = self._write(f"{name}.txt", lines)
        return self._paths[entries]

    def data(self, pattern: str) -> str:
        """Bring the stamp of the package data files matching ``pattern`` up to date; return its path."""
        paths = sorted(PACKAGE.glob(pattern))
        lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()} {p.relative_to(PACKAGE)}\n" for p in paths]
        return self._write(f"{pattern.replace('/', '.').replace('*', 'all')}.txt", lines)

    def _source(self, module: str) -> Source:
        found = self._sources.get(module) or self._sources.get(f"{module}.__init__")
        if found is None:
            raise ValueError(f"no module {module} in the package")
        return found

    def _write(self, name: str, lines: list[str]) -> str:
        stamp, content = self.folder / name, "".join(lines)
        if not stamp.is_file() or stamp.read_text(encoding="utf-8") != content:
            with atomic_path(stamp) as temporary:
                temporary.write_text(content, encoding="utf-8")
        return str(stamp)


def _read_notebook(path: Path, edition: list[str]) -> dict[str, Source]:
    """Return what is noted, by hash of the source's bytes; nothing if another edition of this module noted it."""
    try:
        noted_by, notes = json.loads(path.read_text(encoding="utf-8"))
        if noted_by == edition:
            return {key: Source(meaning, tuple(imports)) for key, (meaning, imports) in notes.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        pass  # none yet, or damaged: it is written anew
    return {}
