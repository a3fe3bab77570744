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
    with pytest.raises(InputError, match="no table in common"):
        dispatch(["compare", str(whole), str(tmp_path / "c")])
    (tmp_path / "c" / "tables" / "completion.csv").write_bytes(b"\x00\xff\x00,1\n" * 9)
    with pytest.raises(InputError, match=r"completion\.csv: not a table"):
        dispatch(["compare", str(whole), str(tmp_path / "c")])
    text = (whole / "tables" / "completion.csv").read_text()
    (tmp_path / "c" / "tables" / "completion.csv").write_text(text.replace("0.45", "much", 1))
    with pytest.raises(InputError, match="could not convert"):
        dispatch(["compare", str(whole), str(tmp_path / "c")])
