"""Completion tables against plain recomputation from the per-task records."""

import numpy as np
import pandas as pd
import pytest

from mara.errors import InputError
from mara.evaluation.completion import (
    COMPLETION_COLUMNS,
    Parts,
    adjust_within_suites,
    comparison_rows,
    completion_rows,
    gap_rows,
    strongest,
)
from mara.evaluation.outcomes import PairedOutcomes, Setting

SETTING = Setting("in_distribution", "supervised", 1.0)
RATES = {"edf": 0.45, "lara": 0.55, "index": 0.62, "mara": 0.63, "clairvoyant": 0.72}
PARTS = {name: Parts("wls" if name == "lara" else "flow", name) for name in RATES}


@pytest.fixture(scope="module")
def runs(fabricate):
    return fabricate(RATES, seeds={"mara": 3}, bound_episodes=15)


@pytest.fixture(scope="module")
def outcomes(runs, settings):
    return PairedOutcomes(SETTING, runs, settings)


@pytest.fixture(scope="module")
def table(outcomes):
    return completion_rows(outcomes, PARTS)


def test_columns_are_the_contract_and_trained_methods_have_a_row_a_seed(table):
    assert tuple(table.columns) == COMPLETION_COLUMNS
    assert table[table["method"] == "mara"]["train_seed"].tolist() == ["all", "1", "2", "3"]
    assert table[table["method"] == "edf"]["train_seed"].tolist() == ["all"]


def test_rates_are_exactly_those_of_the_task_records(table, runs):
    for row in table.itertuples():
        frames = runs[row.method]
        chosen = frames.values() if row.train_seed == "all" else [frames[int(row.train_seed)]]
        scored = [frame[frame["scored"]] for frame in chosen]
        assert row.completed == sum(int(f["completed"].sum()) for f in scored)
        assert row.arrived == sum(len(f) for f in scored)
        assert row.completion_rate == row.completed / row.arrived


def test_differences_are_paired_on_common_episodes(table, runs):
    lara, bound = runs["lara"][1], runs["clairvoyant"][1]
    lara = lara[lara["scored"] & (lara["episode"] < 15)]
    bound = bound[bound["scored"]]
    row = table[table["method"] == "clairvoyant"].iloc[0]
    assert row["n_episodes"] == 15
    assert row["difference_to_lara"] == pytest.approx(bound["completed"].mean() - lara["completed"].mean())
    mara = pd.concat(runs["mara"].values())
    expected = (
        mara[mara["scored"]]["completed"].mean() - table.set_index("method").loc["lara", "completion_rate"]
    )
    assert table[table["method"] == "mara"].iloc[0]["difference_to_lara"] == pytest.approx(expected)


def test_reference_differs_from_itself_by_nothing(table):
    row = table[table["method"] == "lara"].iloc[0]
    assert (row["difference_to_lara"], row["diff_low"], row["diff_high"]) == (0.0, 0.0, 0.0)


def test_intervals_hold_their_estimates_and_stay_in_range(table):
    assert (table["ci_low"] <= table["completion_rate"]).all()
    assert (table["completion_rate"] <= table["ci_high"]).all()
    assert table[["ci_low", "ci_high"]].stack().between(0, 1).all()
    # curve groups carry an effect here, so resampling episodes alone is too sure of itself
    lara = table[table["method"] == "lara"].iloc[0]
    assert lara["ci_high"] - lara["ci_low"] > 1.5 * (lara["ci_high_episodes"] - lara["ci_low_episodes"])


def test_order_of_rows_and_methods_changes_nothing(table, runs, settings):
    rng = np.random.default_rng(3)
    shuffled = {
        method: {seed: frame.iloc[rng.permutation(len(frame))] for seed, frame in runs[method].items()}
        for method in reversed(runs)
    }
    again = completion_rows(PairedOutcomes(SETTING, shuffled, settings), PARTS)
    key = ["method", "train_seed"]
    counts = ["completed", "arrived", "completion_rate", "difference_to_lara"]
    pd.testing.assert_frame_equal(
        table.set_index(key)[counts].sort_index(), again.set_index(key)[counts].sort_index()
    )


def test_a_method_on_other_tasks_is_refused(runs, settings):
    other = runs["edf"][1].assign(template=lambda f: f["template"].where(f["episode"] != 7, 0))
    with pytest.raises(InputError, match="episode 7 has other tasks"):
        PairedOutcomes(SETTING, {**runs, "edf": {1: other}}, settings)


def test_missing_columns_reference_and_parts_are_named(runs, settings, outcomes):
    with pytest.raises(InputError, match="'finish' is missing"):
        PairedOutcomes(SETTING, {"lara": {1: runs["lara"][1].drop(columns="finish")}}, settings)
    with pytest.raises(InputError, match="no run of 'lara'"):
        completion_rows(PairedOutcomes(SETTING, {"edf": runs["edf"]}, settings), PARTS)
    with pytest.raises(InputError, match="'edf' has no predictor"):
        completion_rows(outcomes, {})
    nothing = runs["lara"][1].assign(scored=False)
    with pytest.raises(InputError, match="no task arrived inside the scored span"):
        PairedOutcomes(SETTING, {"lara": {1: nothing}}, settings)


def test_gap_is_measured_from_both_floors_to_the_bound(outcomes):
    gap = gap_rows(outcomes, ["mara", "lara"], ["edf", "lara", "index"]).set_index(["method", "floor_kind"])
    assert strongest(outcomes, ["edf", "lara", "index"]) == "index"
    assert gap.loc[("mara", "strongest"), "floor"] == "index"
    row = gap.loc[("mara", "reference")]
    assert row["share_closed"] == pytest.approx(
        (row["rate"] - row["floor_rate"]) / (row["bound_rate"] - row["floor_rate"])
    )
    assert row["share_low"] < row["share_closed"] < row["share_high"]
    assert gap.loc[("lara", "reference"), "share_closed"] == 0.0
    assert gap.loc[("lara", "strongest"), "share_closed"] < 0.0
    assert row["n_episodes"] == 15


def test_comparisons_are_corrected_within_each_suite(outcomes, runs, settings):
    first = comparison_rows(outcomes, "mara", ["edf", "lara", "index"])
    other = PairedOutcomes(Setting("stress", "bursts", 1.0), runs, settings)
    table = adjust_within_suites(
        pd.concat([first, comparison_rows(other, "mara", ["index"])], ignore_index=True)
    )
    assert (table["p_holm"] >= table["p_value"]).all()
    alone = table[table["suite"] == "stress"].iloc[0]
    assert alone["p_holm"] == alone["p_value"]
    assert table.set_index(["suite", "baseline"]).loc[("in_distribution", "edf"), "p_holm"] < 0.001
