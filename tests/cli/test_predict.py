"""``mara predict``: the answer in text, JSON and pictures."""

import json
from pathlib import Path

import pytest

from mara.cli.main import dispatch
from mara.curves.readers.read import read_log
from mara.errors import InputError
from mara.live.forecast import forecast_remaining
from tests.curves.readers.samples import LOSSES, evaluations, keras_csv, lightning_csv


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    dispatch(["predict", *map(str, words)])
    return capsys.readouterr().out


def test_json_says_what_the_python_function_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lightning_csv(tmp_path)
    document = json.loads(answer(capsys, path, "--target", 0.25, "--deadline-steps", 300, "--json"))
    remaining = forecast_remaining(read_log(path), 0.25, deadline=300)
    assert document["remaining"]["median"] == remaining.median
    assert document["chance_of_deadline"] == remaining.chance_of_deadline
    assert document["metric"] == "val_loss"
    assert document["newest"] == {"position": 399.0, "value": float(LOSSES[-1])}


def test_json_has_no_infinities(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, keras_csv(tmp_path), "--target", 1e-5, "--json")
    assert json.loads(text)["remaining"]["high80"] is None
    assert "Infinity" not in text


def test_text_has_the_numbers_and_a_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, lightning_csv(tmp_path), "--target", 0.25, "--deadline-steps", 300)
    assert "val_loss by step, 40 points" in text
    assert "80 % interval" in text
    assert "chance to make the deadline in 300" in text
    plot = text[text.index("\n\n") :]
    assert plot.count("\n") == 17
    assert "step" in plot.splitlines()[-1]
    assert max(map(len, plot.splitlines())) <= 80
    assert "•" not in answer(capsys, tmp_path / "metrics.csv", "--target", 0.25, "--quiet")


def test_what_lies_beyond_the_horizon_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = answer(capsys, keras_csv(tmp_path), "--target", 1e-5)
    line = next(line for line in text.splitlines() if line.startswith("target"))
    assert line.count("more than") == 1
    assert "interval" not in line


def test_reached_diverged_and_rising(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lightning_csv(tmp_path)
    assert "reached already" in answer(capsys, path, "--target", 1)
    with path.open("a") as stream:
        stream.write("40,404,,nan\n")
    assert "diverged" in answer(capsys, path, "--target", 0.2)
    text = answer(capsys, evaluations(tmp_path), "--target", 2.9, "--best", 3)
    assert "counts as its distance to 3" in text


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "new" / f"plot.{suffix}"
    answer(capsys, lightning_csv(tmp_path), "--target", 0.25, "--plot", picture, "--deadline-steps", 100)
    assert picture.stat().st_size > 3000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "x"], "--target: expected a number, not 'x'"),
        (["--target", "nan"], "finite number"),
        (["--target", "-1"], "must lie above"),
        (["--target", "1", "--deadline-steps", "-5"], "0 or more"),
        (["--target", "-1e5"], "must lie above"),
        (["--target", "inf"], "finite number"),
        (["--target", "0.2", "--best", "nan"], "best nan; expected a finite number"),
        (["--target", "0.2", "--deadline-steps", "inf"], "0 or more"),
        (["--target", "0.2", "--deadline-steps", "nan"], "0 or more"),
        (["--target", "1", "--horizon", "0"], "--horizon: no such option"),
        (["--target", "1", "--plot", "a.exe"], "ends in .png"),
        (["--target", "1", "--plot", "/dev/null/a.png"], "/dev/null is no folder"),
        (["--target", "1", "--metric", "valloss2"], "is no column"),
        (["--target", "1", "--axis", "time"], "no time axis"),
        ([], "required: --target"),
    ],
)
def test_bad_words(words: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        dispatch(["predict", str(lightning_csv(tmp_path)), *words])
