"""What can go wrong round a run gets one clear line, and nothing that was finished is lost."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from mara.config.flow import TrainingSettings
from mara.errors import exit_on_input_error
from mara.predictors.flow.training import Run as TrainingRun
from mara.predictors.flow.training import train
from tests.workflow.kill_and_resume import TINY, Run, differences, fingerprints
from tests.workflow.project import ROOT, copy_sources

CORPUS, POOL = "results/tables/corpus.csv", "results/pools/validation.parquet"
SNAKEMAKE = (sys.executable, "-m", "snakemake", "--cores", "1")
CLAIMS = """\
claim,published,measured,ci_low,ci_high,holds
C1,a lead,0.0358,0.0232,0.0496,yes
"""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)


def errors(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("error: ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_sources(tmp_path / "project")


def test_a_run_says_too_many_cores_once_and_ends_with_the_claims(folder: Path) -> None:
    (folder / "results/tables").mkdir(parents=True)
    (folder / "results/tables/claims.csv").write_text(CLAIMS)
    (folder / "results/report.html").write_text("report")
    done = run(folder, *SNAKEMAKE[:-1], "512", CORPUS)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("note: --cores 512, but this machine has") == 1
    said = done.stdout.splitlines()
    assert any("C1" in line and "0.0358" in line and "[0.0232, 0.0496]" in line for line in said), said
    assert f"Report: {(folder / 'results/report.html').resolve()}" in said


def test_every_target_is_described(folder: Path) -> None:
    listed = run(folder, *SNAKEMAKE, "--list").stdout.splitlines()
    described = {line.split(" (")[0] for line in listed if line.endswith(".)")}
    assert {"all", "tables", "partial", "train_mat"} <= described
    assert len(described) == len(listed)


def test_another_workflow_can_use_this_one(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(
        f"""
configfile: "mine.yaml"

module mara:
    snakefile: "{ROOT}/workflow/Snakefile"
    config: config

use rule * from mara as mara_*

rule everything:
    default_target: True
    input: rules.mara_all.input
"""
    )
    (tmp_path / "mine.yaml").write_text("study: {loads: [1.0, 3.0]}\n")
    done = run(tmp_path, *SNAKEMAKE, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "rule mara_report:" in done.stdout
    assert "results/traces/supervised/standard/load3.parquet" in done.stdout
    assert (tmp_path / "results/.code").is_dir()


def test_a_missing_plugin_is_named(folder: Path) -> None:
    without = """
import pkgutil, sys
listed = pkgutil.iter_modules
pkgutil.iter_modules = lambda *options: (one for one in listed(*options) if "slurm" not in one.name)
from snakemake.cli import main
main(["--workflow-profile", "slurm", "--dry-run"])
"""
    done = run(folder, sys.executable, "-c", without)
    assert done.returncode == 2
    assert "error: argument --executor/-e: invalid choice: 'slurm'" in done.stderr.splitlines()[-1]


def test_a_read_only_folder_of_results_is_named(folder: Path) -> None:
    results = folder / "results"
    results.mkdir()
    results.chmod(0o555)
    command = [*SNAKEMAKE, CORPUS]
    if os.geteuid() == 0:  # root may write anywhere, unless it gives that up
        if shutil.which("setpriv") is None:
            pytest.skip("root needs setpriv to be refused")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    done = run(folder, *command)
    results.chmod(0o755)
    assert done.returncode == 2
    assert errors(done.stderr) == [
        f"error: {results}: cannot be written (Permission denied); make room, or give another folder "
        "with --directory"
    ]


def test_a_full_disk_is_named(folder: Path) -> None:
    results = folder / "results"
    results.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(results)]
    if os.geteuid() != 0 or run(folder, *mount).returncode != 0:
        pytest.skip("mounting a small disk needs root, and a system that lets it")
    try:
        done = run(folder, *SNAKEMAKE, CORPUS)
    finally:
        subprocess.run(["umount", str(results)], check=True)
    assert done.returncode == 2
    assert len(errors(done.stderr)) == 1
    assert "No space left on device" in errors(done.stderr)[0]


def test_a_stage_names_a_full_disk_and_hides_no_other_error(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(number: int) -> None:
        raise OSError(number, os.strerror(number), "results/a.csv")

    with pytest.raises(SystemExit) as ended:
        exit_on_input_error(lambda: fail(errno.ENOSPC))
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: results/a.csv: cannot be written (No space left on device)\n"
    with pytest.raises(FileNotFoundError):
        exit_on_input_error(lambda: fail(errno.ENOENT))


def test_a_damaged_checkpoint_is_named_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = tmp_path / "checkpoint.pt"
    checkpoint.write_bytes(b"half a checkpoint")
    settings = TrainingSettings(steps=2, batch=2, half_precision=False)

    def start() -> None:
        run = TrainingRun(checkpoint=checkpoint)
        train(nn.Linear(1, 1), lambda *_: torch.zeros(()), 2, settings, torch.Generator(), run)

    with pytest.raises(SystemExit):
        exit_on_input_error(start)
    said = capsys.readouterr().err
    assert said.startswith(f"error: {checkpoint}: not a checkpoint of this training (")
    assert said.endswith("); delete it\n")
    assert said.count("\n") == 1
    assert checkpoint.read_bytes() == b"half a checkpoint"


def test_a_killed_run_locks_others_out_until_unlocked_and_ends_alike(tmp_path: Path) -> None:
    undisturbed = Run(tmp_path / "undisturbed", TINY, [POOL, CORPUS], ROOT)
    undisturbed.finish()
    killed = Run(tmp_path / "killed", TINY, [POOL, CORPUS], undisturbed.folder)
    process = killed.start()
    end = time.monotonic() + 300
    while not list(killed.folder.glob("results/logs/**/*.log")) and time.monotonic() < end:
        time.sleep(0.05)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGSTOP)  # so that it does not end before the second has come

    # A second Snakemake at the same time is turned away, and disturbs nothing.
    second = killed.start()
    said = second.communicate()[0]
    assert second.returncode == 1
    assert "LockException" in said
    assert "--unlock" in said
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    killed.finish("--unlock")
    killed.finish()
    assert (
        differences(fingerprints(undisturbed.folder / "results"), fingerprints(killed.folder / "results"))
        == []
    )
