"""Stamps change with what code does, and cover everything that a stage imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mara.code_stamps import NOTEBOOK, PACKAGE, Stamps, imported_modules, source_hash
from mara.config.methods import DEADLINE, PREDICTORS

STAGES = sorted(f"mara.stages.{path.stem}" for path in (PACKAGE / "stages").glob("[!_]*.py"))
SOURCE = '''"""Doc."""
import math


def area(radius):  # of a disc
    """Area."""
    return math.pi * radius**2
'''


def loaded_modules(code: str) -> set[str]:
    """Modules of the package, other than the empty ``__init__`` ones, that running ``code`` loads."""
    script = code + "\nimport sys\nprint('\\n'.join(m for m in sys.modules if m.startswith('mara')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    packages = {
        str(p.parent.relative_to(PACKAGE.parent)).replace("/", ".") for p in PACKAGE.rglob("__init__.py")
    }
    return set(done.stdout.split()) - packages


@pytest.mark.parametrize(
    "edited",
    [
        SOURCE.replace("# of a disc", "# of a circle"),
        SOURCE.replace('"""Area."""', '"""Area of a disc of the given radius."""'),
        SOURCE.replace("math.pi * radius**2", "(math.pi\n            * radius ** 2)"),
        SOURCE.replace("\n\n\n", "\n\n\n\n"),
    ],
)
def test_comments_docstrings_and_formatting_are_quiet(edited: str) -> None:
    assert edited != SOURCE
    assert source_hash(edited) == source_hash(SOURCE)


@pytest.mark.parametrize(
    "edited",
    [
        SOURCE.replace("**2", "**3"),
        SOURCE.replace("area(", "disc("),
        SOURCE.replace("import math", "import cmath as math"),
    ],
)
def test_changes_of_meaning_are_seen(edited: str) -> None:
    assert source_hash(edited) != source_hash(SOURCE)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_loads_only_modules_that_its_stamps_cover(stage: str) -> None:
    assert loaded_modules(f"import {stage}") <= set(imported_modules([stage]))


@pytest.mark.parametrize("name", sorted(PREDICTORS))
def test_a_predictor_loads_only_modules_that_its_row_names(name: str) -> None:
    make = f"from mara.predictors.registry import PREDICTORS, make_predictor\nmake_predictor('{name}')\n"
    make += f"if '{name}{DEADLINE}' in PREDICTORS: make_predictor('{name}{DEADLINE}')"
    entries = ["mara.predictors.registry", *(f"mara.{module}" for module in PREDICTORS[name].modules)]
    assert loaded_modules(make) <= set(imported_modules(entries))


def test_package_initialisers_are_empty() -> None:
    assert [p for p in PACKAGE.rglob("__init__.py") if p.read_text().strip()] == []


def test_unchanged_stamps_are_not_written_again(tmp_path: Path) -> None:
    def stamp() -> list[Path]:
        stamps = Stamps(tmp_path)
        return [Path(stamps.modules("mara.files")), Path(stamps.data("py.typed")), tmp_path / NOTEBOOK]

    before = [path.stat().st_mtime_ns for path in stamp()]
    assert [path.stat().st_mtime_ns for path in stamp()] == before
    assert [path.name for path in stamp()] == ["files.txt", "py.typed.txt", NOTEBOOK]


def test_a_stamp_lists_every_module_that_counts(tmp_path: Path) -> None:
    stamp = Path(Stamps(tmp_path).modules("mara.stages.make_pool"))
    listed = {line.split()[1] for line in stamp.read_text().splitlines()}
    assert listed == set(imported_modules(["mara.stages.make_pool"]))


@pytest.mark.parametrize("damaged", ["", "[]", "{}", '[["3.11.7", ""], {"a": 1}]', "[[null, null], null]"])
def test_a_damaged_notebook_changes_nothing(tmp_path: Path, damaged: str) -> None:
    sound = Path(Stamps(tmp_path / "sound").modules("mara.stages.tune")).read_text()
    (tmp_path / NOTEBOOK).write_text(damaged)
    assert Path(Stamps(tmp_path).modules("mara.stages.tune")).read_text() == sound
    assert Path(Stamps(tmp_path).modules("mara.stages.tune")).read_text() == sound


def test_a_module_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no module mara\.stages\.brew"):
        Stamps(tmp_path).modules("mara.stages.brew")


def test_imports_are_followed_transitively_but_not_into_functions() -> None:
    modules = imported_modules(["mara.predictors.registry"])
    assert "mara.predictors.forecast" in modules
    assert "mara.curves.smoothing" in modules
    assert "mara.predictors.wls" not in modules
