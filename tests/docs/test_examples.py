"""Every fenced example of the documentation does what the page says, in the page's order, in an empty folder.

Before a block, `<!-- file: NAME -->` writes it to a file and `<!-- not run: REASON -->` leaves it out. Blocks of
`mara` run inside this process, which saves a second of imports each.
"""

from __future__ import annotations

import contextlib
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from mara.cli.main import dispatch

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
RUN = ("bash", "python")
SHOWN = ("text", "csv", "yaml", "json", "")


class Block(NamedTuple):
    """One fenced block: its line, language, the comment before it, and its text."""

    line: int
    language: str
    comment: str
    text: str


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    comment, start, language, inside = "", 0, "", None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if inside is not None:
            if line.startswith("```"):
                found.append(Block(start, language, comment, "\n".join(inside) + "\n"))
                comment, inside = "", None
            else:
                inside.append(line)
        elif line.startswith("```"):
            start, language, inside = number, line.strip("`").strip(), []
        elif match := re.fullmatch(r"<!-- (file|not run): (.+) -->", line):
            comment = f"{match[1]}: {match[2]}"
        elif line.strip():
            comment = ""
    assert inside is None, f"{page}: a block is not closed"
    return found


def run_line(line: str, folder: Path) -> None:
    words = shlex.split(line, comments=True)
    if not words:
        return
    if words[0] == "mara":
        with contextlib.suppress(SystemExit):  # of --help; bad input raises InputError
            dispatch(words[1:])
        return
    if words[0] == "snakemake":
        words = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), *words[1:]]
    if words[0] == "python":
        words[0] = sys.executable
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_page_works_as_written(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("config", "examples", "mara"):
        (tmp_path / name).symlink_to(ROOT / name)
    for block in blocks(page):
        kind, _, what = block.comment.partition(": ")
        if kind == "file":
            path = tmp_path / what
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif kind == "not run":
            assert what
        elif block.language == "python":
            path = tmp_path / f"example_{block.line}.py"
            path.write_text(block.text, encoding="utf-8")
            runpy.run_path(str(path), run_name="__main__")
        elif block.language == "bash":
            for line in block.text.replace("\\\n", " ").splitlines():
                run_line(line, tmp_path)
        else:
            assert block.language in SHOWN, f"{page.name}:{block.line}: {block.language}"


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_blocks_are_found_with_their_comments(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n<!-- file: a.csv -->\n```csv\nx\n```\n\ntext\n\n```bash\nmara\n```\n")
    assert [(b.line, b.language, b.comment, b.text) for b in blocks(page)] == [
        (4, "csv", "file: a.csv", "x\n"),
        (10, "bash", "", "mara\n"),
    ]


def test_the_tutorial_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    runpy.run_path(str(ROOT / "examples/train_digits.py"))["main"](tmp_path / "runs")
    runpy.run_path(str(ROOT / "examples/own_jobs.py"))["main"](tmp_path / "runs", None)
    said = capsys.readouterr().out
    assert len(re.findall(r"^node [-\d]+: ", said, re.MULTILINE)) == 4
    assert re.search(r"edf: \d+ of 200 jobs in time", said)
    assert os.listdir(tmp_path) == ["runs"]
