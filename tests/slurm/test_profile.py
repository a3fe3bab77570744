"""The `slurm` profile on a real cluster: jobs succeed, fail with their log, run again if missing, and are cancelled."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from mara.curves.corpus import DATA_DIRECTORY
from tests.slurm.cluster import NoSlurmError, running_cluster, squeue, wait_until
from tests.workflow.project import copy_sources, hear_ctrl_c

SETTINGS = {"study": {"own_families": {"mine": "mine.parquet"}}, "tasks": {"templates": 40}}
POOL, OWN, RECORDED = (
    "results/pools/validation.parquet",
    "results/own/mine.parquet",
    "results/recorded/rl.parquet",
)


@pytest.fixture
def cluster() -> Iterator[Path]:
    """A cluster of two nodes; skips where there can be none."""
    try:
        with running_cluster() as folder:
            yield folder
    except NoSlurmError as error:
        pytest.skip(str(error))


def start(folder: Path, *targets: str) -> subprocess.Popen[str]:
    """Submit targets through the profile; only the waiting is shortened."""
    command = f"-m snakemake --workflow-profile slurm --configfile {folder}/settings.yaml --retries 0".split()
    command += ["--slurm-init-seconds-before-status-checks", "4", "--", *targets]
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=hear_ctrl_c,
    )


def finish(snakemake: subprocess.Popen[str]) -> str:
    """Wait for the end; return what was said."""
    try:
        return snakemake.communicate(timeout=400)[0]
    finally:
        snakemake.kill()


def test_a_run_on_a_real_cluster(tmp_path: Path, cluster: Path) -> None:
    folder = copy_sources(tmp_path / "project")
    (folder / "settings.yaml").write_text(yaml.safe_dump(SETTINGS))

    # One job fails; it is reported with its log, and the other one is not held up.
    (folder / "mine.parquet").write_text("no curves")
    submitted = start(folder, POOL, OWN)
    said = finish(submitted)
    assert submitted.returncode == 1, said
    assert "Error in rule own_family" in said
    assert "mine.parquet: not a whole Parquet file" in said
    assert "A job failed; its log is printed above" in said
    assert (folder / POOL).is_file()
    assert not (folder / OWN).exists()

    # Once the data are mended, only what is missing runs; then nothing does.
    pool_made = (folder / POOL).stat().st_mtime_ns
    shutil.copy(DATA_DIRECTORY / "vision.parquet", folder / "mine.parquet")
    submitted = start(folder, POOL, OWN)
    said = finish(submitted)
    assert submitted.returncode == 0, said
    assert said.count("has been submitted with SLURM jobid") == 1
    assert (folder / OWN).is_file()
    assert (folder / POOL).stat().st_mtime_ns == pool_made
    said = finish(start(folder, POOL, OWN))
    assert "Nothing to be done" in said

    # Ctrl-C cancels what runs.
    assert squeue() == []
    submitted = start(folder, RECORDED)
    try:
        wait_until((folder / "results/logs/record_corpus/rl.log").exists, "a recording", 300)
        assert squeue("--states=RUNNING") != []
    finally:
        submitted.send_signal(signal.SIGINT)
    asked = time.monotonic()
    said = finish(submitted)
    assert submitted.returncode != 0, said
    wait_until(lambda: squeue() == [], "an empty queue", 30)
    assert time.monotonic() - asked < 60
    assert not (folder / RECORDED).exists()
