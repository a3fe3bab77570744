"""``mara import``: logs become curves that the study reads."""

import json
from pathlib import Path

import numpy as np
import pytest

from mara.cli.main import dispatch, main
from mara.curves.corpus import POINTS, read_curves
from mara.errors import InputError
from tests.curves.readers.samples import LOSSES, evaluations, keras_csv, lightning_csv


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for run, scale in (("r1", 1.0), ("r2", 1.2)):
        (tmp_path / "resnet" / run).mkdir(parents=True)
        lightning_csv(tmp_path / "resnet" / run, LOSSES * scale)
        (tmp_path / "ppo" / run).mkdir(parents=True)
        evaluations(tmp_path / "ppo" / run, LOSSES * scale)
    (tmp_path / "resnet" / "notes.csv").write_text("a,b\nx,y\n")
    return tmp_path


def test_the_corpus_is_read_by_the_study(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "out" / "mine.parquet"
    dispatch(["import", str(folder), "--family", "mine", "--out", str(out), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["groups"] == {"resnet": 2, "ppo": 2}
    assert len(answer["skipped"]) == 1
    corpus = read_curves(out, "mine")
    assert sorted(corpus.id) == [
        "mine/ppo/r1/evaluations",
        "mine/ppo/r2/evaluations",
        "mine/resnet/r1/metrics",
        "mine/resnet/r2/metrics",
    ]
    assert set(corpus.group) == {"mine/resnet", "mine/ppo"}
    assert np.all(corpus.diverged_at == POINTS)


def test_a_curve_runs_through_what_was_logged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "mine.parquet"
    dispatch(["import", str(folder / "resnet"), "--family", "mine", "--out", str(out)])
    corpus = read_curves(out, "mine")
    row = list(corpus.id).index("mine/r1/metrics") if "mine/r1/metrics" in corpus.id else 0
    at = np.linspace(0, POINTS - 1, len(LOSSES))
    expected = np.interp(np.arange(POINTS), at, LOSSES)
    np.testing.assert_allclose(corpus.loss[row], expected, rtol=1e-3)


def test_a_shorter_run_ends_and_a_diverged_one_diverges(tmp_path: Path) -> None:
    for name, losses in {"a": LOSSES, "b": LOSSES, "c": LOSSES[:20]}.items():
        keras_csv(tmp_path, losses).rename(tmp_path / f"{name}.csv")
    text = (tmp_path / "b.csv").read_text()
    (tmp_path / "b.csv").write_text(text + "40,nan,nan,nan,nan\n")
    out = tmp_path / "own.parquet"
    dispatch(["import", str(tmp_path), "--out", str(out)])
    ends = dict(zip(("a", "b", "c"), read_curves(out, "own").diverged_at.tolist(), strict=True))
    assert ends["a"] == POINTS
    assert ends["b"] == POINTS - 1
    assert ends["c"] == pytest.approx(POINTS * 19 / 39, abs=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--family", "My Logs", "--out", "x.parquet"], "small letters"),
        (["--family", "rl", "--out", "x.parquet"], "--family rl: the study has one of this name"),
        (["--out", "x.csv"], "ends in .parquet"),
        (["--out", "/dev/null/x.parquet"], "/dev/null is no folder"),
        (["--out", "x.parquet", "--best", "nan"], "best nan; expected a finite number"),
        (["--out", "x.parquet", "--best", "100"], "best 100; every value of val_loss lies beyond it already"),
        (["--out", "x.parquet", "--strict"], "notes.csv"),
        (["--out", "x.parquet", "--metric", "nothing"], "none of use"),
    ],
)
def test_bad_words(words: list[str], message: str, folder: Path) -> None:
    with pytest.raises(InputError, match=message):
        dispatch(["import", str(folder), *words])


def test_a_folder_of_unreadable_files_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "a.csv").write_bytes(bytes(range(256)) * 9)
    (folder / "b.csv").touch()
    (folder / "c.npz").write_bytes(b"PK\x03\x04")
    (folder / "d.csv").symlink_to(folder / "d.csv")
    for out in (tmp_path / "x.parquet", folder / "a.csv" / "x.parquet", folder):
        with pytest.raises(InputError) as caught:
            dispatch(["import", str(folder), "--out", str(out)])
        assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.rglob("*.parquet")) == []


def test_a_folder_without_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no log found in it"):
        dispatch(["import", str(tmp_path), "--out", str(tmp_path / "x.parquet")])
    assert not list(tmp_path.iterdir())


def test_an_interrupt_is_a_word_and_leaves_nothing_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    out = folder / "mine.parquet"
    before = sorted(folder.iterdir())
    for place in ("mara.cli.import_logs.read", "mara.files.os.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(place, interrupted)
            patch.setattr("sys.argv", ["mara", "import", str(folder), "--out", str(out)])
            with pytest.raises(SystemExit) as caught:
                main()
        assert caught.value.code == 130
        assert capsys.readouterr().err.splitlines()[-1] == "interrupted"
        assert sorted(folder.iterdir()) == before


def test_groups_of_different_metrics_are_refused(tmp_path: Path) -> None:
    (tmp_path / "g").mkdir()
    keras_csv(tmp_path / "g").rename(tmp_path / "g" / "a.csv")
    evaluations(tmp_path / "g").rename(tmp_path / "g" / "b.npz")
    with pytest.raises(InputError, match="of the same group"):
        dispatch(["import", str(tmp_path), "--out", str(tmp_path / "x.parquet")])
