"""Logs of one's own become a held-out family: in the graph, in every stage that knows families, in tables."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from mara.config.experiment import load_experiment
from mara.config.problems import SettingsError
from mara.curves.corpus import Corpus, load_corpus, read_curves, write_curves
from mara.errors import InputError
from mara.figures import calibration, prediction_error, sample_curves
from mara.predictors.registry import make_predictor
from mara.stages import (
    make_pool,
    own_family,
    prediction_tables,
    score_predictor,
    tabulate,
)
from mara.stages import sample_curves as sample_stage
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from tests.workflow.test_snakefile import ROOT, snakemake


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Eight recorded curves in two groups under strangers' names, and two runs that are alone."""
    vision = load_corpus().of(family="vision")
    groups = np.unique(vision.group)[:4]
    rows = [
        np.flatnonzero(vision.group == group)[:count]
        for group, count in zip(groups, (4, 4, 1, 1), strict=True)
    ]
    chosen = vision.select(np.concatenate(rows))
    return replace(
        chosen,
        id=np.array([f"lab/{row}" for row in range(len(chosen))]),
        family=np.full(len(chosen), "lab"),
        split=np.full(len(chosen), "train"),
    )


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def call(stage: object, *words: str | Path) -> None:
        monkeypatch.setattr(sys, "argv", ["stage", *map(str, words)])
        stage.main()  # type: ignore[attr-defined]

    return call


def overlay(folder: Path, source: Path) -> Path:
    settings = yaml.safe_load((ROOT / "config/smoke.yaml").read_text())
    settings["study"]["own_families"] = {"lab": str(source)}
    (folder / "mine.yaml").write_text(yaml.safe_dump(settings))
    return folder / "mine.yaml"


def test_the_graph_gains_the_jobs_of_the_family(tmp_path: Path, corpus: Corpus) -> None:
    (tmp_path / "config").symlink_to(ROOT / "config")
    write_curves(corpus, tmp_path / "lab.parquet")
    done = snakemake(tmp_path, "--configfile", str(overlay(tmp_path, Path("lab.parquet"))), "--dry-run")
    assert done.returncode == 0, done.stderr
    for made in (
        "results/own/lab.parquet",
        "results/pools/lab.parquet",
        "results/forecasts/wls/lab",
        "results/scores/lab/flow.parquet",
        "results/traces/lab/standard/load1.parquet",
        "results/outcomes/lab/standard/load1/mara/seed1.parquet",
        "results/bound/lab/standard/load1.parquet",
        "results/evaluated/held_out_family/lab/load1",
        "results/evaluated/history/lab/load1",
    ):
        assert f"output: {made}" in done.stdout, made
    assert "results/own/lab.parquet, results/.code/stages.make_pool.txt" in done.stdout


def test_a_missing_source_is_said_before_any_job(tmp_path: Path) -> None:
    (tmp_path / "config").symlink_to(ROOT / "config")
    done = snakemake(tmp_path, "--configfile", str(overlay(tmp_path, Path("none.parquet"))), "--dry-run")
    assert done.returncode == 2
    assert "error: study.own_families.lab: none.parquet: no such file" in done.stderr


@pytest.mark.parametrize("name", ["vision", "training", "My Logs"])
def test_names_of_the_study_are_taken(name: str) -> None:
    with pytest.raises(SettingsError):
        load_experiment({"study": {"own_families": {name: "logs"}}})


def test_the_stages_run_on_the_family(tmp_path: Path, corpus: Corpus, run: Callable[..., None]) -> None:
    write_curves(corpus, tmp_path / "lab.parquet")
    own, pool, model = tmp_path / "own.parquet", tmp_path / "pool.parquet", tmp_path / "model"
    run(own_family, "--family", "mine", "--source", tmp_path / "lab.parquet", "--output", own)
    curves = read_curves(own, "mine")
    assert set(curves.family) == {"mine"}
    assert set(curves.split) == {"test"}
    assert np.unique(curves.group, return_counts=True)[1].min() == 2  # none is alone
    settings = '{"templates": 40}'
    words = ("--settings", settings, "--family", "mine", "--split", "test", "--seed", 1, "--curves", own)
    run(make_pool, *words, "--output", pool, "--card", tmp_path / "card.json")
    assert set(TaskPool.load(pool).family) == {"mine"}
    make_predictor("wls").save(model)
    asked = ("--predictor", "wls", "--model", model)
    run(tabulate, *asked, "--pool", pool, "--curves", own, "--output", tmp_path / "table")
    assert len(ForecastTable.load(tmp_path / "table").offset) == 41
    scores = tmp_path / "mine" / "wls.parquet"
    cost = tmp_path / "mine" / "wls.cost.csv"
    run(score_predictor, *asked, "--own", "mine", own, "--output", scores, "--cost", cost)
    vision = tmp_path / "vision" / "wls.parquet"
    vision.parent.mkdir()
    pd.read_parquet(scores).assign(family="vision").to_parquet(vision)
    tables = [tmp_path / f"{name}.csv" for name in ("prediction", "differences", "calibration", "prefixes")]
    options = zip(("--prediction", "--differences", "--calibration", "--by-prefix"), tables, strict=True)
    written = [word for option in options for word in option]
    costs = ("--costs", cost, "--cost", tmp_path / "cost.csv")
    run(prediction_tables, "--settings", '{"resamples": 100}', "--scores", scores, vision, *written, *costs)
    (row,) = pd.read_csv(tmp_path / "cost.csv").to_dict("records")
    assert (row["predictor"], row["curves"], row["n_cases"]) == ("wls", "mine", len(pd.read_parquet(scores)))
    assert row["ms_per_curve"] > 0
    prediction = pd.read_csv(tables[0])
    assert prediction[["family", "split"]].to_numpy().tolist() == [
        ["mine", "held_out"],
        ["vision", "held_out"],
    ]
    panels = [axis.get_title("left").split("\n")[0] for axis in prediction_error.draw(prediction).figure.axes]
    assert panels == ["vision", "mine"]  # the study's families first
    assert len(calibration.draw(pd.read_csv(tables[2])).figure.axes) == 4
    outputs = ("--curves", tmp_path / "samples.csv", "--corpus", tmp_path / "corpus.csv")
    run(sample_stage, "--seed", 1, "--own", "mine", own, *outputs)
    shown = sample_curves.draw(pd.read_csv(tmp_path / "samples.csv")).figure.axes
    assert [axis.get_title("left") for axis in shown][3].startswith("mine")
    assert "mine" in set(pd.read_csv(tmp_path / "corpus.csv")["family"])


def test_a_folder_of_logs_is_a_family_too(tmp_path: Path, run: Callable[..., None]) -> None:
    rng = np.random.default_rng(0)
    for group in ("a", "b"):
        for number in range(3):
            loss = 2 * np.exp(-np.arange(300) / (50 + 20 * number)) + 0.1 + 0.01 * rng.uniform(size=300)
            rows = "\n".join(f"{step},{value:.5f}" for step, value in enumerate(loss))
            path = tmp_path / "logs" / group / f"run{number}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"step,val_loss\n{rows}\n")
    run(own_family, "--family", "mine", "--source", tmp_path / "logs", "--output", tmp_path / "own.parquet")
    curves = read_curves(tmp_path / "own.parquet", "mine")
    assert sorted(set(curves.group)) == ["mine/a", "mine/b"]
    assert len(curves) == 6


def test_one_curve_is_too_few(corpus: Corpus) -> None:
    with pytest.raises(InputError, match="at least two"):
        own_family.with_siblings(corpus.select(np.array([0])), "mine")
    pair = corpus.select(np.array([0, 1, 2, 8]))
    assert len(set(own_family.with_siblings(pair, "mine").group)) == 1
