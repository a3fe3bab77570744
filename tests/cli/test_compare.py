"""``mara compare``: what moved between two results folders, and whether the intervals say so."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from mara.cli.main import dispatch
from mara.errors import InputError


def results(folder: Path, rate: float, holds: str) -> Path:
    (folder / "tables").mkdir(parents=True)
    key = {"suite": "in_distribution", "workload": "supervised", "load": 1.0}
    rows = [
        {**key, "method": method, "train_seed": "all", "completion_rate": value, "ci_low": value - 0.01,
         "ci_high": value + 0.01, "difference_to_lara": value - 0.5, "diff_low": value - 0.51,
         "diff_high": value - 0.49}
        for method, value in (("edf", 0.45), ("mara", rate))
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(folder / "tables" / "completion.csv", index=False)
    claim = {"claim": "C2", "measured": rate - 0.5, "ci_low": 0.0, "ci_high": 0.2, "holds": holds}
    pd.DataFrame([claim]).to_csv(folder / "tables" / "claims.csv", index=False)
    return folder


def test_changes_are_listed_with_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = results(tmp_path / "a", 0.60, "yes"), results(tmp_path / "b", 0.65, "no")
    dispatch(["compare", str(first), str(second)])
    text = capsys.readouterr().out
    assert "2 of 5 intervals do not overlap" in text
    assert "0.6000 -> 0.6500 (+0.0500 [+0.0359, +0.0641])" in text
    assert "Verdict on C2 turned from yes to no." in text
    dispatch(["compare", str(first), str(second), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert (document["compared"], document["apart"]) == (5, 2)
    assert document["turned"] == [{"claim": "C2", "first": "yes", "second": "no"}]
    assert {change["overlap"] for change in document["changes"]} == {True, False}


def test_equal_runs_are_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(["compare", str(results(tmp_path / "a", 0.6, "yes")), str(results(tmp_path / "b", 0.6, "yes"))])
    text = capsys.readouterr().out
    assert "All 5 intervals that both have overlap." in text
    assert "No verdict turned." in text


def test_what_is_no_results_folder_is_said(tmp_path: Path) -> None:
    whole = results(tmp_path / "a", 0.6, "yes")
    for other in (tmp_path, tmp_path / "none", whole / "tables" / "claims.csv"):
        with pytest.raises(InputError, match="no folder tables/"):
            dispatch(["compare", str(whole), str(other)])
    (tmp_path / "c" / "tables").mkdir(parents=True)
    with pytest.raises(InputError, match="no table has a row with an interval in both"):
        dispatch(["compare", str(whole), str(tmp_path / "c")])
    (tmp_path / "c" / "tables" / "completion.csv").write_bytes(b"\x00\xff\x00,1\n" * 9)
    with pytest.raises(InputError, match=r"completion\.csv: not a table"):
        dispatch(["compare", str(whole), str(tmp_path / "c")])
    text = (whole / "tables" / "completion.csv").read_text()
    (tmp_path / "c" / "tables" / "completion.csv").write_text(text.replace("0.45", "much", 1))
    with pytest.raises(InputError, match=r"c/tables/completion\.csv: row .* could not convert"):
        dispatch(["compare", str(whole), str(tmp_path / "c")])


def change(folder: Path, table: str, **columns: object) -> None:
    path = folder / "tables" / f"{table}.csv"
    pd.read_csv(path).assign(**columns).to_csv(path, index=False)


def test_the_same_folder_and_bad_words_are_refused(tmp_path: Path) -> None:
    whole = str(results(tmp_path / "a", 0.6, "yes"))
    for words, message in (
        ([whole, whole], "given twice"),
        ([whole, f"{whole}/../a"], "given twice"),
        ([whole], "required: second"),
        ([whole, "b", "--limit", "-1"], "--limit -1: expected 0 or more"),
        ([whole, "b", "--limit", "1e3"], "--limit: expected a whole number"),
    ):
        with pytest.raises(InputError, match=message):
            dispatch(["compare", *words])


def test_tables_of_other_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What one of the two lacks is said or refused; no table is read as what it is not."""
    whole = results(tmp_path / "a", 0.6, "yes")
    other = results(tmp_path / "b", 0.6, "yes")
    words = ["compare", str(whole), str(other)]
    table = other / "tables" / "completion.csv"
    text = table.read_text()

    change(other, "claims", holds=None)
    dispatch(words)
    assert "Verdict on C2 turned from yes to nan." in capsys.readouterr().out
    pd.read_csv(other / "tables" / "claims.csv").drop(columns="holds").to_csv(
        other / "tables" / "claims.csv", index=False
    )
    dispatch(words)
    assert "Verdict on C2 turned from yes to unknown." in capsys.readouterr().out
    (other / "tables" / "claims.csv").write_text("")
    dispatch(words)
    assert f"claims: the whole table: only in {whole}" in capsys.readouterr().out

    for content in ("", text.splitlines()[0] + "\n", text.replace("all", "1")):
        table.write_text(content)
        with pytest.raises(InputError, match="no table has a row with an interval in both"):
            dispatch(words)
    table.write_text(text.replace("ci_low", "low"))
    dispatch(words)  # the lead is still there
    assert "All 2 intervals" in capsys.readouterr().out
    table.write_text(text.replace("method", "way"))
    with pytest.raises(InputError, match="column 'method' is missing"):
        dispatch(words)
    table.write_text(text.replace(",edf,", ",edf,1,2,3,"))
    with pytest.raises(InputError, match=r"completion\.csv: not a table"):
        dispatch(words)
    table.write_text(text.replace(",", ";"))
    with pytest.raises(InputError, match="is missing"):
        dispatch(words)
    table.unlink()
    table.mkdir()
    with pytest.raises(InputError, match=r"completion\.csv: not a table"):
        dispatch(words)


def test_numbers_that_are_none_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, other = results(tmp_path / "a", 0.6, "yes"), results(tmp_path / "b", 0.6, "yes")
    change(other, "completion", completion_rate=float("nan"), ci_low=float("nan"))
    dispatch(["compare", str(whole), str(other), "--json"])
    assert json.loads(capsys.readouterr().out)["compared"] == 3
    change(other, "completion", load=1)  # not 1.0
    change(other, "completion", completion_rate=float("inf"))
    dispatch(["compare", str(whole), str(other), "--json"])
    assert json.loads(capsys.readouterr().out)["compared"] == 3
    change(other, "completion", completion_rate=0.6, ci_low=0.7, ci_high=0.5)
    with pytest.raises(InputError, match=r"b/tables/completion\.csv: row .*: ci_low lies above ci_high"):
        dispatch(["compare", str(whole), str(other)])
    change(other, "completion", ci_low=0.4, ci_high=float("nan"))
    dispatch(["compare", str(whole), str(other), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert (document["compared"], document["apart"]) == (5, 0)
