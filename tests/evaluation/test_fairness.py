"""Fairness by hand on a table small enough to count."""

import numpy as np
import pandas as pd
import pytest

from mara.config.evaluation import EvaluationSettings
from mara.evaluation.completion import Parts
from mara.evaluation.fairness import fairness_rows, group_rows, task_times
from mara.evaluation.outcomes import PairedOutcomes, Setting

SETTING = Setting("fairness", "mix", 1.0)


def frame(completed):
    count = len(completed)
    return pd.DataFrame(
        {
            "episode": np.zeros(count, int),
            "template": np.arange(count),
            "group": ["a", "a", "b", "b", "c", "c"],
            "family": ["supervised"] * 4 + ["rl"] * 2,
            "arrival": np.arange(count),
            "deadline": np.arange(count) + 10,
            "scored": True,
            "completed": completed,
            "finish": np.where(completed, np.arange(count) + 7, -1),
            "first_served": np.where(completed, np.arange(count) + 2, -1),
            "units": np.where(completed, 4.0, 0.0),
        }
    )


@pytest.fixture(scope="module")
def counted():
    runs = {"lara": {0: frame([True, True, True, False, True, False])}, "fair_all": {0: frame([True] * 6)}}
    settings = EvaluationSettings(resamples=200, minimum_group_tasks=2)
    return PairedOutcomes(SETTING, runs, settings), runs


def test_times_by_hand():
    times = task_times(frame([True, False, True, True, True, True]))
    assert times["waiting"].tolist()[:2] == [2.0, 10.0]
    assert times["slowdown"].iloc[0] == pytest.approx(8 / 4)
    assert np.isnan(times["slowdown"].iloc[1])
    assert times["never_served"].tolist()[:2] == [False, True]


def test_rates_gaps_and_indices_by_hand(counted):
    rows = fairness_rows(*counted, {m: Parts("wls", m) for m in counted[1]}).set_index("method")
    lara = rows.loc["lara"]
    assert lara["worst_family"] == "rl"
    assert lara["worst_family_rate"] == pytest.approx(0.5)
    assert lara["family_gap"] == pytest.approx(0.25)
    assert lara["jain_family"] == pytest.approx(1.25**2 / (2 * (0.75**2 + 0.5**2)))
    assert lara["worst_group_rate"] == pytest.approx(0.5)
    assert lara["group_gap"] == pytest.approx(0.5)
    assert lara["never_served"] == pytest.approx(2 / 6)
    assert lara["mean_waiting"] == pytest.approx((4 * 2 + 2 * 10) / 6)


def test_serving_everyone_is_perfectly_fair(counted):
    fair = (
        fairness_rows(*counted, {m: Parts("wls", m) for m in counted[1]}).set_index("method").loc["fair_all"]
    )
    assert fair["family_gap"] == 0.0
    assert fair["jain_family"] == 1.0
    assert fair["jain_group"] == 1.0


def test_group_table_adds_up_to_the_whole(fabricate, settings):
    runs = fabricate({"lara": 0.5, "mara": 0.6}, seeds={"mara": 2}, episodes=15)
    outcomes = PairedOutcomes(SETTING, runs, settings)
    rows = group_rows(outcomes, runs)
    for method in runs:
        for kind in ("family", "group"):
            part = rows[(rows["method"] == method) & (rows["kind"] == kind)]
            assert (part["completed"].sum(), part["arrived"].sum()) == outcomes.totals(method)
    families = rows[rows["kind"] == "family"]
    assert (families["ci_low"] <= families["completion_rate"]).all()
    assert (families["completion_rate"] <= families["ci_high"]).all()
