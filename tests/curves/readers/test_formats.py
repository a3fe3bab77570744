"""Every format gives back the curve that was logged, without being told what it is."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mara.curves.readers.read import READERS, find_logs, read_log
from mara.errors import InputError
from tests.curves.readers.samples import LOSSES, MAKERS


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_round_trip(make: Callable[..., Path], tmp_path: Path) -> None:
    log = read_log(make(tmp_path))
    assert (log.format, log.metric, log.axis) == MAKERS[make]
    values = log.values
    if log.rising:
        values = 3 - values if log.format in ("monitor", "evaluations") else 3 * (1 - values)
    assert len(log) == len(LOSSES)
    np.testing.assert_allclose(values, LOSSES, atol=1e-4 if log.metric.startswith("metrics/") else 1e-6)
    assert np.all(np.diff(log.position) > 0)
    steps = np.diff(log.position)
    assert log.format == "monitor" or np.all(steps == steps[0])


def test_every_format_has_a_sample() -> None:
    assert {known[0] for known in MAKERS.values()} == set(READERS)


def test_monitor_counts_time_steps(tmp_path: Path) -> None:
    log = read_log(next(make for make in MAKERS if make.__name__ == "monitor")(tmp_path))
    np.testing.assert_array_equal(log.position, np.cumsum(20 + np.arange(len(LOSSES))))
    assert log.rising
    assert log.seconds is not None


@pytest.mark.parametrize("name", ["wandb_history", "mlflow_file", "tensorboard"])
def test_clocks_are_found(name: str, tmp_path: Path) -> None:
    log = read_log(next(make for make in MAKERS if make.__name__ == name)(tmp_path))
    assert log.seconds is not None
    pace = {"wandb_history": 2.5, "mlflow_file": 0.5, "tensorboard": 1.0}[name]
    np.testing.assert_allclose(np.diff(log.seconds), pace, atol=1e-3)


def test_an_iteration_time_is_no_clock(tmp_path: Path) -> None:
    log = read_log(next(make for make in MAKERS if make.__name__ == "mmengine")(tmp_path))
    assert log.seconds is None


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_folder_is_a_run(make: Callable[..., Path], tmp_path: Path) -> None:
    folder = tmp_path / "run-1"
    folder.mkdir()
    path = make(folder)
    if path.name in ("training.log", "metrics.csv", "results.csv", "trainer_state.json", "evaluations.npz"):
        assert read_log(folder).name == "run-1"
        np.testing.assert_array_equal(read_log(folder).values, read_log(path).values)
    found = find_logs(tmp_path)
    assert found in ([path], [folder], [])
    assert found or path.name == "train.log"


def test_resumed_event_files_of_a_folder_are_one_run(tmp_path: Path) -> None:
    """A second file that starts at an earlier step replaces what came after it."""
    make = next(make for make in MAKERS if make.__name__ == "tensorboard")
    first = make(tmp_path, LOSSES[:30])
    first.rename(tmp_path / "events.out.tfevents.1600000000.host.1.0")
    make(tmp_path, LOSSES * 2)
    log = read_log(tmp_path)
    np.testing.assert_allclose(log.values, LOSSES * 2, rtol=1e-6)
    assert any("replaced" in note for note in log.notes)


def test_an_unknown_format_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="known are csv"):
        read_log(tmp_path, format="xml")
