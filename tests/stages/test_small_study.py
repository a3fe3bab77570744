"""From outcomes to verdicts: rates are those of the tasks' records, numbers have a row, broken methods lose."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mara.allocators.registry import make_policy
from mara.curves.synthetic import draw_curves
from mara.evaluation.prediction import SCORES, ask, protocol_cases, scores
from mara.figures import held_out, history
from mara.predictors.forecast import Forecast
from mara.predictors.registry import make_predictor
from mara.report.tables import locate, read_tables
from mara.simulator.events import record_events
from mara.stages.prediction_tables import difference_rows
from tests.stages.small_study import CLUSTER, PLAYERS, SETTINGS, Study, make_episodes, never

SHAPING = pd.DataFrame(
    {
        "episodes": [10],
        "identity_error": 0.0,
        "control_error": 1.0,
        "feedback_shaped": 0.9,
        "feedback_plain": 0.2,
    }
)
SHARED = ["suite", "workload", "load", "method"]


def prediction_differences(says_never: bool) -> pd.DataFrame:
    """Flow matching, played by nearly true answers, against WLS on drawn curves; or a flow that says never."""
    corpus = draw_curves(60, np.random.default_rng(5))
    corpus.group[:] = np.arange(60) % 20
    cases = protocol_cases(corpus)
    wls = ask(make_predictor("wls"), cases, corpus)
    if says_never:
        flow = Forecast(np.zeros_like(wls.cdf), np.full(len(cases), np.inf), 0)
    else:
        flow = Forecast.from_cdf(np.arange(wls.horizon + 1) >= cases.truth[:, None] * 1.1)
    frames = {
        name: pd.DataFrame(scores(forecast, cases)).assign(group=cases.group)
        for name, forecast in (("flow", flow), ("wls", wls))
    }
    assert set(SCORES) <= set(frames["flow"])
    rows = []
    for family in ("supervised", "vision", "rl"):
        of_family = {name: frame.assign(family=family) for name, frame in frames.items()}
        rows += difference_rows("flow", of_family["flow"], {"wls": of_family["wls"]}, SETTINGS)
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = Study(tmp_path_factory.mktemp("sound") / "study")
    study.judge(prediction_differences(says_never=False), SHAPING)
    return study


def verdicts(study: Study) -> dict[str, bool]:
    claims = pd.read_csv(study.tables / "claims.csv", dtype={"holds": str})
    return dict(zip(claims["claim"], claims["holds"] == "true", strict=True))


@pytest.mark.parametrize("name", ["completion", "attribution", "ablation", "stress", "fairness"])
def test_rates_recomputed_from_the_tasks_own_records_agree_exactly(sound: Study, name: str) -> None:
    table = sound.table(name)
    assert len(table)
    for row in table.to_dict("records"):
        files = sound.runs[row["suite"], row["workload"], row["load"]]
        seeds = [s for m, s in files if m == row["method"] and row["train_seed"] in ("all", str(s))]
        tasks = [pd.read_parquet(files[row["method"], seed]).query("scored") for seed in seeds]
        completed, arrived = sum(int(t["completed"].sum()) for t in tasks), sum(map(len, tasks))
        assert (row["completed"], row["arrived"]) == (completed, arrived)
        assert row["completion_rate"] == completed / arrived
        if row["method"] != "clairvoyant":
            lara = pd.read_parquet(files["lara", 0]).query("scored")
            lead = completed / arrived - lara["completed"].sum() / len(lara)
            assert row["difference_to_lara"] == pytest.approx(lead, abs=1e-12)


def test_group_and_family_counts_add_up_to_the_completion_table(sound: Study) -> None:
    groups = sound.table("fairness_groups").groupby([*SHARED, "kind"])[["arrived", "completed"]].sum()
    fairness = sound.table("fairness").set_index(SHARED)
    for kind in ("family", "group"):
        counts = groups.xs(kind, level="kind").loc[fairness.index]
        assert (counts == fairness[["arrived", "completed"]]).all().all()


def test_a_tasks_record_is_what_its_event_log_says(sound: Study) -> None:
    trace, table = make_episodes(sound.pool, 1.0), sound.forecasts["good"]
    policy = make_policy(PLAYERS["mara"][0], None, table, CLUSTER, sound.pool)
    path = sound.runs["in_distribution", "supervised", 1.0]["mara", 1]
    record = pd.read_parquet(path).query("episode == 3").reset_index(drop=True)
    events = record_events(trace, sound.pool, CLUSTER, policy, table, episode=3)
    done = events[events["kind"] == "complete"]
    assert sorted(done["task"]) == np.flatnonzero(record["completed"]).tolist()
    assert np.array_equal(record["finish"][done["task"]] + 1, done["slot"])
    missed = events[events["kind"] == "miss"]
    assert sorted(missed["task"]) == np.flatnonzero(~record["completed"]).tolist()


def test_every_verdict_points_at_the_row_that_holds_its_number(sound: Study) -> None:
    tables = read_tables(sound.tables)
    column = {"C1": "difference", "C5": "value", "C6": "shaped_minus_unshaped"}
    for claim in tables["claims"].to_dict("records"):
        name, row = locate(claim["where"], tables)[-1][1].rsplit("-", 1)
        found = tables[name].iloc[int(row)][column.get(claim["claim"], "difference_to_lara")]
        sign = -1 if claim["claim"] == "C1" else 1
        assert claim["measured"] == sign * found, claim["claim"]


def test_what_history_is_worth_is_the_difference_of_the_rates_in_the_completion_table(sound: Study) -> None:
    place = "suite == 'history' and workload == 'rl'"
    row = (
        sound.table("history").query(place).set_index(["method", "baseline"]).loc[("index_history", "index")]
    )
    rates = sound.table("completion").query(place).set_index("method")["completion_rate"]
    assert (row["rate"], row["baseline_rate"]) == (rates["index_history"], rates["index"])
    assert row["difference"] == pytest.approx(row["rate"] - row["baseline_rate"])
    assert row["diff_low"] < row["difference"] < row["diff_high"]
    assert row["difference"] > 0


def test_all_losses_are_comparisons_and_all_negative_comparisons_are_losses(sound: Study) -> None:
    comparisons, losses = sound.table("comparisons"), sound.table("losses")
    assert set(comparisons["suite"]) == {s for s, *_ in sound.runs} - {"attribution", "ablation", "history"}
    assert len(losses) == (comparisons["difference"] < 0).sum()
    for suite, rows in comparisons.groupby("suite"):
        known = rows["p_value"].rank(method="first", ascending=False)
        assert (rows["p_holm"] >= rows["p_value"]).all(), suite
        assert rows["p_holm"][known == len(rows)].item() == pytest.approx(
            min(1.0, len(rows) * rows["p_value"].min())
        )


def test_a_family_of_ones_own_stands_in_tables_and_figures_and_bears_no_claim(sound: Study) -> None:
    for name in ("completion", "comparisons", "fairness", "fairness_groups", "history"):
        assert "mine" in set(sound.table(name)["workload"]), name
    assert not sound.table("claims")["where"].str.contains("mine").any()
    assert "mine" in [axis.get_title("left") for axis in held_out.draw(sound.table("completion")).figure.axes]
    panels = [axis.get_title("left") for axis in history.draw(sound.table("history")).figure.axes]
    assert panels == ["RL", "mine"]


def test_a_sound_method_keeps_its_claims(sound: Study) -> None:
    held = verdicts(sound)
    assert all(held[claim] for claim in ("C1", "C3", "C4", "C5", "C6")), held
    lead = sound.table("claims").set_index("claim")["ci_low"]["C2"]
    assert lead > 0


def test_an_allocator_that_idles_loses_every_claim_about_completion(tmp_path: Path) -> None:
    study = Study(tmp_path / "idle", idles=True)
    study.judge(prediction_differences(says_never=False), SHAPING)
    assert verdicts(study) == dict(
        zip(("C1", "C2", "C3", "C4", "C5", "C6"), (True, *[False] * 4, True), strict=True)
    )
    lost = study.table("losses")
    assert len(lost) == len(study.table("comparisons"))
    assert lost["resolved"].all()


def test_a_forecaster_that_says_never_loses_prediction_and_attribution(sound: Study, tmp_path: Path) -> None:
    study = Study(tmp_path / "never", good=never(sound.forecasts["good"]))
    study.judge(prediction_differences(says_never=True), SHAPING)
    held = verdicts(study)
    assert not held["C1"]
    assert not held["C5"]
    assert not held["C2"]
    effects = study.table("effects").query("method == 'mara' and effect == 'predictor'")
    assert effects["high"].item() < 0
