"""Which jobs an edit runs again: those that it concerns and what follows from them, and no other."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from mara.code_stamps import imported_modules
from tests.workflow.project import SETTINGS, Plan, Project, changed, matching, with_descendants

CODE = "\nEDITED = 1\n"
DOCSTRING = '\n\ndef _unused() -> None:\n    """Nothing."""\n'
SIMULATIONS = {"training_load", "tune:*", "train_mat:*", "outcomes:*", "gantt"}
FITS = {"fit_predictor:*", "train_predictor:*", "add_deadline:*"}


class Made(NamedTuple):
    """A project in which everything has been made."""

    project: Project
    jobs: Plan
    """All jobs."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """One for all tests, which leave it as they found it."""
    project = Project(tmp_path_factory.mktemp("reruns") / "project")
    yield Made(project, project.make_outputs())
    project.close()


@contextmanager
def edited(path: Path, extra: str | bytes, mtime: float | None = None) -> Iterator[None]:
    """Append to a file, and take it back."""
    before = path.read_bytes()
    path.write_bytes(before + (extra if isinstance(extra, bytes) else extra.encode()))
    if mtime is not None:
        os.utime(path, (mtime, mtime))
    yield
    path.write_bytes(before)


def runs_again(made: Made, first: set[str]) -> set[str]:
    """Jobs that match the patterns, and all that follow from them."""
    return with_descendants(made.jobs, matching(made.jobs, first))


@pytest.mark.parametrize(
    ("file", "extra", "first"),
    [
        pytest.param("mara/predictors/neighbours.py", CODE, {"fit_predictor:neighbours"}, id="one predictor"),
        pytest.param("mara/predictors/flow/solver.py", CODE, {"train_predictor:flow"}, id="the flow"),
        pytest.param("mara/predictors/forecast.py", CODE, FITS, id="what all predictors share"),
        pytest.param("mara/simulator/engine.py", CODE, SIMULATIONS, id="the simulator"),
        pytest.param("mara/learning/ppo.py", CODE, {"train_mat:*"}, id="PPO"),
        pytest.param("mara/evaluation/claims.py", CODE, {"claims"}, id="verdicts"),
        pytest.param("mara/figures/style.py", CODE, {"figure:*"}, id="the figures' style"),
        pytest.param("mara/figures/gap_closed.py", CODE, {"figure:gap_closed"}, id="one figure"),
        pytest.param("mara/report/report.html", "<!-- -->", {"report"}, id="the report's template"),
        pytest.param(
            "mara/curves/data/rl.parquet",
            b"more",
            {*FITS, "task_pool:*", "noisy_curves", "sample_curves"},
            id="a data file",
        ),
    ],
)
def test_an_edit_runs_what_it_concerns(made: Made, file: str, extra: str | bytes, first: set[str]) -> None:
    with edited(made.project.folder / file, extra):
        assert set(made.project.plan()) == runs_again(made, first)


def test_nothing_runs_after_edits_that_mean_nothing(made: Made) -> None:
    folder = made.project.folder
    engine, rule = folder / "mara/simulator/engine.py", folder / "workflow/rules/workload.smk"
    new = folder / "mara/predictors/unused.py"
    with edited(engine, "\n# A comment.\n" + "\n" * 3), edited(rule, "\n\n# A comment.\n"):
        docstring = folder / "mara/predictors/wls.py"
        before = docstring.read_text()
        docstring.write_text(before.replace('"""', '"""Edited. ', 1))
        new.write_text("NOBODY_IMPORTS_THIS = 1\n")
        assert made.project.plan() == {}
        docstring.write_text(before)
    new.unlink()


def test_touched_files_run_nothing(made: Made) -> None:
    folder = made.project.folder
    for file in ("mara/simulator/engine.py", "mara/curves/data/rl.parquet", "results/pools/training.parquet"):
        (folder / file).touch()
    (folder / "config/config.yaml").touch()
    assert made.project.plan() == {}


def test_an_edit_with_an_old_time_is_seen_and_taking_it_back_runs_nothing(made: Made) -> None:
    with edited(made.project.folder / "mara/predictors/neighbours.py", CODE, mtime=1e9):
        assert set(made.project.plan()) == runs_again(made, {"fit_predictor:neighbours"})
    assert made.project.plan() == {}


@pytest.mark.parametrize(
    ("setting", "value", "first"),
    [
        ("cluster.nodes", 9, SIMULATIONS),
        ("arrivals.warm_up", 100, {"training_load"}),
        ("flow.paths", 32, {"train_predictor:flow"}),
        ("predictors.neighbours.neighbours", 3, {"fit_predictor:neighbours"}),
        ("allocators.tuner.population", 5, {"tune:*"}),
        ("mat.ppo.updates", 1, {"train_mat:*"}),
        ("evaluation.resamples", 700, {"evaluate_setting:*", "prediction_tables", "claims"}),
        ("study.seeds.allocators", 77, {"tune:*", "outcomes:*"}),
    ],
)
def test_a_setting_runs_the_rules_that_read_it(
    made: Made, setting: str, value: object, first: set[str]
) -> None:
    again = made.project.plan(settings=changed(setting, value))
    assert set(again) == runs_again(made, first | {"provenance"})


@pytest.mark.parametrize(
    ("setting", "value", "new", "joined"),
    [
        (
            "study.train_seeds",
            [1, 2, 3],
            {"train_mat:mara,3", "outcomes:*,mara,3"},
            {"evaluate_setting:*", "training_curves"},
        ),
        ("study.train_seeds", [1], set(), {"evaluate_setting:*", "training_curves"}),
        (
            "study.loads",
            [1.0, 1.5, 2.0],
            {"trace:*,2", "tune:*,2,*", "outcomes:*,2,*", "bound:*,2", "evaluate_setting:*,2"},
            {"collect_tables"},
        ),
        (
            "study.history",
            ["lara", "index_history_1"],
            {"train_predictor:flow_history", "add_deadline:flow_history_deadline", "history_forecasts:*"}
            | {"tune:*,index_history", "outcomes:*,index_history_1,0"}
            | {"evaluate_setting:history,*", "figure:history"},
            {"collect_tables"},
        ),
        (
            "study.ablation",
            [*SETTINGS["study"]["ablation"], "index_2_paths", "mara_2_paths"],
            {"fewer_paths:flow_2_paths_deadline"}
            | {"forecasts:flow_2_paths_deadline,supervised", "outcomes:*,index_2_paths,0"}
            | {"outcomes:*,mara_2_paths,1"},
            {"evaluate_setting:ablation,*"},
        ),
        (
            "study.methods",
            [*SETTINGS["study"]["methods"], "srpt"],
            {"outcomes:*,srpt,0"},
            {"evaluate_setting:in_distribution,*", "evaluate_setting:unseen_load,*"}
            | {"evaluate_setting:held_out_family,*"},
        ),
    ],
    ids=["added seed", "removed seed", "added load", "added suite", "fewer paths", "added method"],
)
def test_what_is_added_is_made_and_joined(
    made: Made, setting: str, value: object, new: set[str], joined: set[str]
) -> None:
    settings = changed(setting, value)
    again = made.project.plan(settings=settings)
    assert set(again) - set(made.jobs) == (matching(again, new) - set(made.jobs) if new else set())
    everything = made.project.plan("--forceall", settings=settings)
    first = matching(everything, joined | {"provenance"} | new)
    assert set(again) == with_descendants(everything, first)


def test_stages_that_ask_for_predictors_by_name_are_stamped_with_them(made: Made) -> None:
    stamps = [path.stem.split("+") for path in (made.project.folder / "results/.code").glob("stages.*.txt")]
    by_name = [
        parts for parts in stamps if "mara.predictors.registry" in imported_modules([f"mara.{parts[0]}"])
    ]
    assert {"stages.tabulate", "stages.score_predictor"} <= {stage for stage, *_ in by_name}
    assert [parts for parts in by_name if not any(name.startswith("predictors.") for name in parts[1:])] == []


def test_a_clone_runs_everything_and_a_moved_folder_nothing(made: Made, tmp_path: Path) -> None:
    clone = Project(tmp_path / "clone", made.project.folder)
    try:
        assert set(clone.plan()) == set(made.jobs)
        for name in ("results", ".snakemake"):
            shutil.copytree(made.project.folder / name, clone.folder / name, dirs_exist_ok=True)
        later = time.time() + 5
        for path in (clone.folder / "mara").rglob("*.py"):
            os.utime(path, (later, later))
        assert clone.plan() == {}
    finally:
        clone.close()
