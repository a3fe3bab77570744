"""Effects in the factorial add up, and the ablation is taken from the whole of MARA."""

import pytest

from mara.errors import InputError
from mara.evaluation.ablation import ablation_rows
from mara.evaluation.attribution import effect_rows
from mara.evaluation.completion import Parts
from mara.evaluation.outcomes import PairedOutcomes, Setting

PARTS = {
    "lara": Parts("wls", "lara"),
    "lara_flow": Parts("flow", "lara"),
    "mara_wls": Parts("wls", "mat"),
    "mara": Parts("flow", "mat"),
    "index": Parts("flow", "index"),
}
RATES = {"lara": 0.55, "lara_flow": 0.60, "mara_wls": 0.57, "mara": 0.63, "index": 0.62}


@pytest.fixture(scope="module")
def outcomes(fabricate, settings):
    return PairedOutcomes(Setting("attribution", "supervised", 1.0), fabricate(RATES), settings)


def test_predictor_and_allocator_share_the_whole_lead(outcomes):
    rows = effect_rows(outcomes, PARTS, "lara").query("method != 'grid'").set_index("effect")
    assert set(rows["method"]) == {"mara"}, (
        "the index on wls was not run, so its effects cannot be told apart"
    )
    assert rows.loc["predictor", "value"] + rows.loc["allocator", "value"] == pytest.approx(
        rows.loc["total", "value"]
    )
    done = {method: outcomes.totals(method)[0] / outcomes.totals(method)[1] for method in RATES}
    assert rows.loc["interaction", "value"] == pytest.approx(
        done["mara"] - done["lara_flow"] - done["mara_wls"] + done["lara"]
    )
    assert (rows["low"] <= rows["value"]).all()
    assert (rows["value"] <= rows["high"]).all()


def test_main_effects_over_the_grid_are_means_over_the_other_factor(outcomes):
    rows = effect_rows(outcomes, PARTS, "lara").query("method == 'grid'")
    done = {method: outcomes.totals(method)[0] / outcomes.totals(method)[1] for method in RATES}
    predictor = rows.query("effect == 'predictor' and predictor == 'flow'").iloc[0]
    means = (done["lara_flow"] - done["lara"] + done["mara"] - done["mara_wls"]) / 2
    assert predictor["value"] == pytest.approx(means)
    allocators = rows.query("effect == 'allocator'").set_index("allocator")["value"]
    assert allocators["index"] == pytest.approx(done["index"] - done["lara_flow"])
    mat = (done["mara_wls"] - done["lara"] + done["mara"] - done["lara_flow"]) / 2
    assert allocators["mat"] == pytest.approx(mat)


def test_two_methods_in_one_cell_and_a_missing_base_are_refused(outcomes):
    with pytest.raises(InputError, match="are both"):
        effect_rows(outcomes, {**PARTS, "index": Parts("flow", "mat")}, "lara")
    with pytest.raises(InputError, match="no run of 'fifo'"):
        effect_rows(outcomes, PARTS, "fifo")


def test_ablation_is_relative_to_mara_and_corrected_over_the_ablations_only(outcomes):
    rows = ablation_rows(outcomes, PARTS, {"mara_wls": "WLS in place of the flow"}).set_index("method")
    assert rows.loc["mara", "difference_to_mara"] == 0.0
    assert rows.loc["mara_wls", "mara_high"] < 0.0
    assert rows.loc["mara_wls", "p_holm"] == rows.loc["mara_wls", "p_value"]
    assert rows["p_holm"].notna().sum() == 1
