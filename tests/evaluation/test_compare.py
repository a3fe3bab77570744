"""Two folders of tables: what overlaps, what does not, which verdicts turned."""

import numpy as np
import pandas as pd
import pytest

from mara.errors import InputError
from mara.evaluation.compare import APART_BY_CHANCE, compare_results


def write(folder, rate=0.6, holds="true", methods=("lara", "mara")):
    (folder / "tables").mkdir(parents=True)
    rows = [
        {
            "suite": "in_distribution",
            "workload": "supervised",
            "load": 1.0,
            "method": method,
            "train_seed": seed,
            "completion_rate": rate,
            "ci_low": rate - 0.02,
            "ci_high": rate + 0.02,
            "difference_to_lara": rate - 0.55,
            "diff_low": rate - 0.57,
            "diff_high": rate - 0.53,
        }
        for method in methods
        for seed in ("all", "1")
    ]
    pd.DataFrame(rows).to_csv(folder / "tables" / "completion.csv", index=False)
    claim = {
        "claim": "C2",
        "measured": rate - 0.55,
        "ci_low": rate - 0.57,
        "ci_high": rate - 0.53,
        "holds": holds,
    }
    pd.DataFrame([claim]).to_csv(folder / "tables" / "claims.csv", index=False)
    return folder


def test_a_folder_agrees_with_itself(tmp_path):
    folder = write(tmp_path / "a")
    comparison = compare_results(folder, folder)
    assert (comparison.changes["difference"] == 0).all()
    assert comparison.text() == "All 5 intervals that both have overlap.\nNo verdict turned."


def test_a_shift_beyond_the_intervals_and_a_turned_verdict_are_reported(tmp_path):
    comparison = compare_results(write(tmp_path / "a"), write(tmp_path / "b", rate=0.65, holds="false"))
    assert len(comparison.apart) == 5
    row = comparison.changes.iloc[0]
    assert (row["difference"], row["low"], row["high"]) == pytest.approx(
        (0.05, 0.05 - 0.0283, 0.05 + 0.0283), abs=1e-4
    )
    assert (
        "5 of 5 intervals do not overlap (of independent ones that measure the same, about 0 would not):"
        in comparison.text()
    )
    assert "Verdict on C2 turned from true to false." in comparison.text()


def test_a_shift_within_the_intervals_is_no_change(tmp_path):
    comparison = compare_results(write(tmp_path / "a"), write(tmp_path / "b", rate=0.61))
    assert comparison.apart.empty
    assert (comparison.changes["low"] < 0).all()


def test_rows_of_one_folder_only_are_listed(tmp_path):
    comparison = compare_results(write(tmp_path / "a"), write(tmp_path / "b", methods=("lara", "edf")))
    assert set(comparison.unmatched["row"]) == {
        "in_distribution supervised 1.0 mara",
        "in_distribution supervised 1.0 edf",
    }
    assert "only in" in comparison.text()


def test_folders_without_tables_and_doubled_rows_are_refused(tmp_path):
    good = write(tmp_path / "a")
    with pytest.raises(InputError, match="no folder tables/"):
        compare_results(tmp_path / "none", good)
    (tmp_path / "empty" / "tables").mkdir(parents=True)
    with pytest.raises(InputError, match="no table has a row with an interval in both"):
        compare_results(good, tmp_path / "empty")
    with pytest.raises(InputError, match="twice"):
        compare_results(good, write(tmp_path / "c", methods=("lara", "lara")))


def test_the_share_apart_by_chance_is_that_of_pairs_of_independent_intervals():
    first, second = np.random.default_rng(0).standard_normal((2, 200_000))
    apart = np.abs(first - second) > 2 * 1.959964
    assert apart.mean() == pytest.approx(APART_BY_CHANCE, rel=0.1)
