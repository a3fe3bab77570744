"""The run that the documentation speaks of: pages in step with its tables, nothing written by halves."""

import shutil
from pathlib import Path

import pytest

from mara.errors import InputError
from mara.evaluation.compare import compare_results
from mara.report.markdown import claims_table, results_page
from mara.report.reference import BEGIN, END, KEPT, PICTURES, publish, reference_page, with_claims
from mara.report.tables import read_tables

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def tables():
    return read_tables(REFERENCE / "tables")


def test_the_pages_are_written_from_the_tables(tables):
    assert (ROOT / "docs" / "results.md").read_text("utf-8") == reference_page(tables)
    readme = (ROOT / "README.md").read_text("utf-8")
    assert readme == with_claims(readme, tables, Path("README.md"))
    assert readme.count(claims_table(tables)) == 1


def test_the_page_prints_rates_and_differences_of_the_tables(tables):
    page = results_page(tables)
    completion = tables["completion"]
    mara = completion[(completion["method"] == "mara") & (completion["suite"] == "in_distribution")]
    row = mara[mara["train_seed"] == "all"].iloc[0]
    rate, low, high = (f"{100 * row[c]:.1f}" for c in ("completion_rate", "ci_low", "ci_high"))
    line = next(line for line in page.splitlines() if line.startswith("| `mara` |"))
    assert line.split(" | ")[1] == f"{rate} [{low}, {high}]"


def test_a_missing_table_leaves_out_its_section_only(tables):
    without = {name: table for name, table in tables.items() if name != "stress"}
    assert "## Stress" in results_page(tables)
    assert "## Stress" not in results_page(without)
    assert "## Fairness" in results_page(without)


def test_the_reference_compares_with_itself():
    found = compare_results(REFERENCE, REFERENCE)
    assert len(found.changes) > 100
    assert found.apart.empty
    assert found.unmatched.empty


@pytest.fixture
def run(tmp_path):
    """A results folder of the reference's tables, and an empty repository for it."""
    results, repository = tmp_path / "results", tmp_path / "repository"
    shutil.copytree(REFERENCE, results)
    (results / "figures").mkdir()
    for name in PICTURES:
        shutil.copy(ROOT / "docs" / "images" / f"{name}.png", results / "figures")
    repository.mkdir()
    (repository / "README.md").write_text(f"# A\n\n{BEGIN}\nold\n{END}\n\nend\n")
    return results, repository


def test_publishing_writes_tables_pictures_and_pages(run, tables):
    results, repository = run
    publish(results, repository)
    assert (repository / "README.md").read_text() == f"# A\n\n{BEGIN}\n{claims_table(tables)}\n{END}\n\nend\n"
    assert (repository / "docs/results.md").read_text() == reference_page(tables)
    kept = {path.stem for path in (repository / "docs/reference/tables").iterdir()}
    assert kept == set(KEPT)


def test_a_missing_table_or_mark_is_named_and_nothing_is_written(run):
    results, repository = run
    (results / "tables" / "gap.csv").unlink()
    with pytest.raises(InputError, match=r"gap\.csv: no such file"):
        publish(results, repository)
    shutil.copy(REFERENCE / "tables" / "gap.csv", results / "tables")
    (repository / "README.md").write_text("# A\n")
    with pytest.raises(InputError, match=r"README\.md: the lines .* are needed"):
        publish(results, repository)
    assert [path.name for path in repository.iterdir()] == ["README.md"]
