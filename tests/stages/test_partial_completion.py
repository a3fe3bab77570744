"""Completion so far: what is there is summed up by itself, whatever is missing."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mara.allocators.registry import make_policy
from mara.errors import InputError
from mara.simulator.simulate import Outcome, simulate
from mara.stages import partial_completion
from tests.stages.small_study import CLUSTER, SETTINGS, command, idle, make_episodes, make_pool


def rates(folder: Path, runs: list[Path]) -> pd.DataFrame:
    options = ["--settings", SETTINGS.model_dump_json(), "--pools", str(folder), "--runs", *map(str, runs)]
    command(partial_completion, *options, "--output", str(folder / "partial.csv"))
    table = pd.read_csv(folder / "partial.csv", dtype={"train_seed": str})
    return table[table["train_seed"] == "all"].set_index(["scenario", "workload", "load", "method"])


def share(outcome: Outcome) -> float:
    return float(outcome.completed[outcome.scored].mean())


def test_runs_are_summed_up_without_the_reference_and_seed_by_seed(tmp_path: Path) -> None:
    pool = make_pool()
    pool.save(tmp_path / "supervised.parquet")
    trace = make_episodes(pool, 1.0)
    played = simulate(trace, pool, CLUSTER, make_policy("edf", None, None, CLUSTER, pool), None)

    def save(outcome: Outcome, place: str) -> Path:
        path = tmp_path / "outcomes/supervised" / place
        outcome.save(path)
        return path

    runs = [save(played, "standard/load1/mara/seed1.parquet")]
    assert rates(tmp_path, runs).loc["standard", "supervised", 1.0, "mara"]["n_seeds"] == 1
    runs.append(save(idle(played), "standard/load1/mara/seed2.parquet"))
    runs.append(save(played, "bursty/load1.5/edf/seed0.parquet"))
    table = rates(tmp_path, runs)
    assert len(table) == 2
    mara = table.loc["standard", "supervised", 1.0, "mara"]
    assert mara["n_seeds"] == 2
    assert mara["completion_rate"] == pytest.approx(share(played) / 2)
    assert table.loc["bursty", "supervised", 1.5, "edf"]["completion_rate"] == pytest.approx(share(played))


def test_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run has been made yet"):
        rates(tmp_path, [])
