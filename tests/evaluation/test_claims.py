"""Verdicts turn with the evidence: each claim is made to hold, and then broken in every way that should."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from mara.evaluation.ablation import ablation_rows
from mara.evaluation.attribution import effect_rows
from mara.evaluation.claims import CLAIM_COLUMNS, Tables, judge, losses
from mara.evaluation.completion import Parts, adjust_within_suites, comparison_rows, completion_rows
from mara.evaluation.outcomes import PairedOutcomes, Setting

PARTS = {
    "edf": Parts("none", "edf"),
    "lara": Parts("wls", "lara"),
    "lara_flow": Parts("flow", "lara"),
    "mara_wls": Parts("wls", "mat"),
    "mara": Parts("flow", "mat"),
    "mara_scratch": Parts("flow", "mat"),
    "mara_scratch_no_shaping": Parts("flow", "mat"),
}
PAIR = {"mara_scratch": "from nothing", "mara_scratch_no_shaping": "from nothing, no shaping"}
GOOD = {
    "edf": 0.45,
    "lara": 0.55,
    "lara_flow": 0.61,
    "mara_wls": 0.57,
    "mara": 0.635,
    "mara_scratch": 0.60,
    "mara_scratch_no_shaping": 0.58,
}


def tables(fabricate, settings, rates, lead=0.05, shaping=None):
    def outcomes(suite, workload, load, names):
        runs = fabricate({n: rates[n] for n in names}, seeds={"mara": 5}, seed=int(load * 100))
        return PairedOutcomes(Setting(suite, workload, load), runs, settings)

    places = [
        ("in_distribution", "supervised", 1.0),
        ("unseen_load", "supervised", 1.5),
        ("unseen_load", "supervised", 2.0),
        ("held_out_family", "rl", 1.0),
        ("held_out_family", "vision", 1.0),
    ]
    factorial = outcomes("attribution", "supervised", 1.0, ["lara", "lara_flow", "mara_wls", "mara"])
    ablated = outcomes("ablation", "supervised", 1.0, ["lara", "mara", *PAIR])
    differences = pd.DataFrame(
        {
            "predictor": "flow",
            "baseline": "wls",
            "family": ["supervised", "vision", "rl"],
            "split": ["in_distribution", "held_out", "held_out"],
            "score": "nmae",
            "difference": -lead,
            "diff_low": -lead - 0.02,
            "diff_high": -lead + 0.02,
            "n_cases": 100,
            "n_groups": 20,
        }
    )
    check = {
        "episodes": 10,
        "identity_error": 1e-13,
        "control_error": 0.5,
        "feedback_shaped": 0.9,
        "feedback_plain": 0.3,
    }
    return Tables(
        differences,
        pd.concat([completion_rows(outcomes(*place, ["edf", "lara", "mara"]), PARTS) for place in places]),
        effect_rows(factorial, PARTS, "lara"),
        ablation_rows(ablated, PARTS, PAIR),
        pd.DataFrame([check | (shaping or {})]),
    )


@pytest.fixture(scope="module")
def good(fabricate, settings):
    return tables(fabricate, settings, GOOD)


def verdicts(evidence, settings):
    table = judge(evidence, settings)
    assert tuple(table.columns) == CLAIM_COLUMNS
    assert table["claim"].tolist() == ["C1", "C2", "C3", "C4", "C5", "C6"]
    return dict(zip(table["claim"], table["holds"], strict=True))


def test_all_six_hold_on_evidence_like_the_published_one(good, settings):
    assert set(verdicts(good, settings).values()) == {"true"}


def test_an_allocator_that_idles_turns_what_rests_on_the_allocator(fabricate, settings):
    idle = {name: 0.0 if name.startswith("mara") else rate for name, rate in GOOD.items()}
    result = verdicts(tables(fabricate, settings, idle), settings)
    assert result == {"C1": "true", "C2": "false", "C3": "false", "C4": "false", "C5": "false", "C6": "true"}


def test_a_forecaster_that_says_never_turns_the_prediction_and_what_rests_on_it(fabricate, settings):
    """Its error is above that of WLS, and methods that read it serve nobody; WLS in MAT is untouched."""
    never = GOOD | {"lara_flow": 0.0, "mara": 0.0} | dict.fromkeys(PAIR, 0.0)
    result = verdicts(tables(fabricate, settings, never, lead=-0.2), settings)
    assert [claim for claim, holds in result.items() if holds == "true"] == ["C6"]


def test_a_lead_that_is_real_but_small_is_not_the_published_one(fabricate, settings):
    table = judge(tables(fabricate, settings, GOOD | {"mara": 0.575}), settings).set_index("claim")
    assert table.loc["C2", "holds"] == "false"
    assert table.loc["C2", "ci_low"] > 0
    assert "smaller than the published" in table.loc["C2", "note"]
    assert table.loc["C3", "holds"] == "true"


def test_a_gain_made_by_the_allocator_is_not_credited_to_the_predictor(fabricate, settings):
    swapped = GOOD | {"lara_flow": 0.57, "mara_wls": 0.61}
    assert verdicts(tables(fabricate, settings, swapped), settings)["C5"] == "false"


@pytest.mark.parametrize("family", ["supervised", "vision", "rl"])
def test_one_family_within_chance_breaks_the_prediction_claim(good, settings, family):
    rows = good.prediction_differences.copy()
    rows.loc[rows["family"] == family, "diff_high"] = 0.001
    broken = dataclasses.replace(good, prediction_differences=rows)
    table = judge(broken, settings).set_index("claim")
    assert table.loc["C1", "holds"] == "false"
    assert f"family={family}" in table.loc["C1", "where"]
    assert verdicts(broken, settings) == verdicts(good, settings) | {"C1": "false"}


@pytest.mark.parametrize(
    ("claim", "suite", "place"),
    [("C3", "unseen_load", {"load": 2.0}), ("C4", "held_out_family", {"workload": "rl"})],
)
def test_one_lost_setting_breaks_the_claim_about_all_and_is_the_one_shown(
    good, settings, claim, suite, place
):
    completion = good.completion.copy()
    lost = (completion["suite"] == suite) & (completion["method"] == "mara")
    for column, value in place.items():
        lost &= completion[column] == value
    completion.loc[lost, "diff_low"] = -0.01
    table = judge(dataclasses.replace(good, completion=completion), settings).set_index("claim")
    assert table.loc[claim, "holds"] == "false"
    assert table.loc[claim, "ci_low"] == -0.01


@pytest.mark.parametrize(
    "shaping",
    [
        {"identity_error": 0.3},
        {"identity_error": np.nan},
        {"control_error": 0.0},
        {"feedback_shaped": 0.3},
    ],
)
def test_shaping_that_changes_the_objective_or_adds_no_feedback_fails(fabricate, good, settings, shaping):
    broken = dataclasses.replace(good, shaping=good.shaping.assign(**shaping))
    assert verdicts(broken, settings) == verdicts(good, settings) | {"C6": "false"}


@pytest.mark.parametrize(
    ("unshaped", "holds", "said"),
    [(0.50, "true", "feedback helps"), (0.605, "true", "beyond chance"), (0.70, "false", "feedback harms")],
)
def test_shaping_fails_only_if_it_costs_completions(fabricate, settings, unshaped, holds, said):
    """Whatever MARA itself completes: compared are the two that learned from nothing."""
    rates = GOOD | {"mara_scratch_no_shaping": unshaped}
    claim = judge(tables(fabricate, settings, rates), settings).set_index("claim").loc["C6"]
    assert claim["holds"] == holds
    assert claim["measured"] == pytest.approx(0.60 - unshaped, abs=0.04)
    assert said in claim["note"]


@pytest.mark.parametrize("lost", PAIR)
def test_half_a_pair_measures_nothing(good, settings, lost):
    rows = good.ablation[good.ablation["method"] != lost]
    claim = judge(dataclasses.replace(good, ablation=rows), settings).set_index("claim").loc["C6"]
    assert claim["holds"] == "false"
    assert lost in claim["note"]


@pytest.mark.parametrize(
    ("field", "claims"),
    [
        ("prediction_differences", {"C1"}),
        ("completion", {"C2", "C3", "C4"}),
        ("effects", {"C5"}),
        ("ablation", {"C6"}),
        ("shaping", {"C6"}),
    ],
)
@pytest.mark.parametrize("with_header", [True, False])
def test_what_was_not_measured_does_not_hold(good, settings, field, claims, with_header):
    nothing = getattr(good, field).iloc[:0] if with_header else pd.DataFrame()
    empty = dataclasses.replace(good, **{field: nothing})
    table = judge(empty, settings).set_index("claim")
    assert set(table.index[table["holds"] == "false"]) == claims
    assert table.loc[sorted(claims), "note"].str.startswith("not measured").all()


def test_an_unknown_interval_does_not_hold(good, settings):
    completion = good.completion.assign(diff_low=np.nan, diff_high=np.nan)
    result = verdicts(dataclasses.replace(good, completion=completion), settings)
    assert {result[c] for c in ("C2", "C3", "C4")} == {"false"}


def test_every_measured_number_stands_in_the_row_it_points_to(good, settings):
    table = judge(good, settings).set_index("claim")
    pooled = good.completion[good.completion["train_seed"] == "all"]
    for claim in ("C2", "C3", "C4"):
        place = dict(part.split("=") for part in table.loc[claim, "where"].split(": ")[1].split(", "))
        row = pooled[
            (pooled["suite"] == place["suite"])
            & (pooled["workload"] == place["workload"])
            & (pooled["load"] == float(place["load"]))
            & (pooled["method"] == place["method"])
        ]
        assert len(row) == 1
        assert table.loc[claim, "measured"] == row["difference_to_lara"].iloc[0]


def test_losses_name_every_setting_and_tell_resolved_ones_apart(fabricate, settings):
    runs = fabricate({"edf": 0.7, "lara": 0.64, "mara": 0.635, "fifo": 0.3})
    outcomes = PairedOutcomes(Setting("stress", "bursts", 1.0), runs, settings)
    table = losses(adjust_within_suites(comparison_rows(outcomes, "mara", ["edf", "lara", "fifo"])))
    assert table["baseline"].tolist()[0] == "edf"
    assert "fifo" not in set(table["baseline"])
    assert bool(table.set_index("baseline").loc["edf", "resolved"])
    assert losses(pd.DataFrame()).empty
