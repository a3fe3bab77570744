"""The workflow refuses broken settings before any job, and lays out the whole graph for sound ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a user's own, with the project's settings in it."""
    (tmp_path / "config").symlink_to(ROOT / "config")
    return tmp_path


def snakemake(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    command += ["--directory", str(folder), "--cores", "2", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"study": {"train_sedes": [1]}},
            ["study.train_sedes: unknown setting; did you mean 'train_seeds'?"],
        ),
        ({"cluster": {"nodes": "eight"}}, ["cluster.nodes: "]),
        ({"study": {"loads": [1.0, -1.0]}}, ["study.loads.1: "]),
        ({"study": {"train_seeds": []}}, ["study.train_seeds: "]),
        (
            {"study": {"loads": [2.0]}, "flow": {"paths": 0}, "evaluation": {"colour": "red"}},
            ["study: loads must contain 1.0", "flow.paths: ", "evaluation.colour: unknown setting"],
        ),
    ],
)
def test_broken_settings_get_a_line_each_and_exit_code_2(
    folder: Path, settings: dict[str, object], said: list[str]
) -> None:
    overlay = folder / "mine.yaml"
    overlay.write_text(yaml.safe_dump(settings))
    done = snakemake(folder, "--configfile", str(overlay))
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode == 2
    assert len(lines) == len(said)
    for text in said:
        assert any(line.startswith(f"error: {overlay}: {text}") for line in lines), (text, lines)
    assert not (folder / "results" / "pools").exists()


def test_the_small_run_has_every_stage(folder: Path) -> None:
    done = snakemake(folder, "--configfile", str(ROOT / "config/smoke.yaml"), "--dry-run")
    assert done.returncode == 0, done.stderr
    for rule in (
        "task_pool",
        "mixed_pool",
        "noisy_curves",
        "mixed_forecasts",
        "rulegraph",
        "fit_predictor",
        "train_predictor",
        "forecasts",
        "training_load",
        "trace",
        "tune",
        "train_mat",
        "outcomes",
        "bound",
        "evaluate_setting",
        "prediction_tables",
        "claims",
        "figure",
        "report",
    ):
        assert f"rule {rule}:" in done.stdout, rule
