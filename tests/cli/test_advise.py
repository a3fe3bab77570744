"""``mara advise``: jobs.yaml in, a table or JSON out, quickly."""

import datetime
import json
from pathlib import Path

import pytest

from mara.cli.jobs import read_jobs
from mara.cli.main import dispatch
from mara.errors import InputError
from tests.curves.readers.samples import keras_csv, lightning_csv, monitor, wandb_history

JOBS = """\
jobs:
  - {log: a/metrics.csv, target: 0.25, deadline_steps: 400, name: lit}
  - {log: b, metric: val_loss, target: 0.28, deadline_steps: 60}
  - {log: c/wandb-history.jsonl, target: 0.2, deadline: 5m}
  - {log: d, target: 2.9, best: 3}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, make in zip("abcd", (lightning_csv, keras_csv, wandb_history, monitor), strict=True):
        (tmp_path / name).mkdir()
        make(tmp_path / name)
    (tmp_path / "jobs.yaml").write_text(JOBS)
    return tmp_path


def test_every_job_is_advised_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(["advise", str(folder), "--nodes", "2", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert {job["name"] for job in document["jobs"]} == {"lit", "b", "c/wandb-history.jsonl", "d"}
    assert sorted(job["node"] for job in document["jobs"] if job["node"]) == [1, 2]
    assert document["slot_seconds"] > 0
    dispatch(["advise", str(folder / "jobs.yaml"), "--nodes", "6"])
    text = capsys.readouterr().out
    assert "still needs (80 %)" in text
    assert "nodes have nothing to train" in text


def test_deadlines_in_words_and_dates(folder: Path) -> None:
    now = datetime.datetime(2031, 5, 1, 12, 0, tzinfo=datetime.UTC)
    for text, seconds in {
        "90m": 5400,
        "1.5 h": 5400,
        "2d": 172_800,
        "2": 7200,
        "2031-05-01 18:00:00": 21_600,
        "2031-05-01 18:00": 21_600,
        "2031-05-01T18:00+02:00": 14_400,
        "2031-05-01": 43_200,
        "2030-01-01": 0,
    }.items():
        (folder / "jobs.yaml").write_text(f"jobs: [{{log: a/metrics.csv, target: 0.2, deadline: {text}}}]")
        (job,) = read_jobs(folder / "jobs.yaml", now)
        assert job.seconds_left == pytest.approx(seconds, abs=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected `jobs:` and a list"),
        ("jobs: []", "expected `jobs:` and a list"),
        ("jobs", "expected `jobs:` and a list"),
        ("- a", "expected `jobs:` and a list"),
        ("nodes: 3\njobs: [{log: a/metrics.csv, target: 1}]", "nodes: unknown setting"),
        ("jobs: [7]", r"jobs\.0: input should be"),
        ("jobs:\n  - {log: a/metrics.csv, target: 1, target: 2}", "line 2: target stands twice"),
        ("jobs: [{log: a/metrics.csv}]", "jobs.0.target: field required"),
        (
            "jobs: [{log: a/metrics.csv, target: 1, dedline: 3}]",
            "jobs.0.dedline: unknown setting; did you mean 'deadline",
        ),
        ("jobs: [{log: a/metrics.csv, target: .nan}]", "jobs.0.target"),
        ("jobs: [{log: a/metrics.csv, target: yes}]", "jobs.0.target: a number is expected"),
        (f"jobs: [{{log: a/metrics.csv, target: {'9' * 400}}}]", "jobs.0.target: .*so many digits"),
        (f"jobs: [{{log: a/metrics.csv, target: {'9' * 5000}}}]", "not YAML"),
        ("jobs: [{log: a/metrics.csv, target: [1]}]", "jobs.0.target: a single value"),
        ("jobs: [{log: a/metrics.csv, target: 1, deadline: {a: 1}}]", "jobs.0.deadline: a single value"),
        ("jobs: [{log: a/metrics.csv, target: 1, format: xls}]", "jobs.0.format: 'xls' is no format"),
        ("jobs: [" + "{log: zzz.csv, target: 1}, " * 2 + "]", "jobs.1: called zzz.csv, as jobs.0 is"),
        ("jobs: [{log: a/metrics.csv, target: !!float ''}]", "line 1: not YAML of jobs .tags"),
        ("jobs: [{log: a/metrics.csv, target: !!bool x}]", "line 1: not YAML of jobs .tags"),
        (
            "jobs:\n  - {log: a/metrics.csv, target: 1, deadline: 12:30}",
            "line 2: 12:30: a time without a date",
        ),
        ("jobs: [{log: a/metrics.csv, target: 1, deadline: 1:30:20.5}]", "a time without a date"),
        ("jobs: [{log: a/metrics.csv, target: 1, deadline: true}]", "jobs.0.deadline: a number is expected"),
        ("jobs: [{log: a/metrics.csv, target: 1, deadline: .inf}]", "0 or more"),
        ("jobs: [{log: a/metrics.csv, target: 1, deadline: 2031-02-30}]", "not YAML .day is out of range"),
        ("jobs: [{log: a/metrics.csv, target: 1, [a]: 1}]", "not YAML"),
        ("jobs: []\njobs: []", "line 2: jobs stands twice"),
        ("jobs: []\n---\njobs: []", "single document"),
        ("jobs: [" + "1, " * 1001 + "]", "1,001 jobs; at most 1,000"),
        ("jobs: " + "[" * 11 + "]" * 11, "nested 11 deep"),
        ("jobs: " + "x" * 1_000_001, "above 1,000,000 bytes"),
        ("jobs: [{log: a/metrics.csv, target: 1, deadline: soon}]", "expected 90m, 12h, 2d"),
        ("jobs: [{log: a/metrics.csv, target: 1, deadline: -3}]", "0 or more"),
        ("jobs: [{log: zzz.csv, target: 1}]", "zzz.csv: cannot be read"),
        ("jobs: [{log: a/metrics.csv, target: 1}", "not YAML"),
        ("a: &x [1]\njobs: [*x, *x]", "aliases"),
        ("[" * 5000, "not YAML"),
        ("jobs: !!python/object/apply:os.mkdir [exploded]", "not YAML"),
    ],
)
def test_bad_files_get_one_line(text: str, message: str, folder: Path) -> None:
    (folder / "jobs.yaml").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_jobs(folder / "jobs.yaml")
    assert "\n" not in str(caught.value)
    assert "jobs.yaml" in str(caught.value) or "zzz.csv" in str(caught.value)


def test_a_small_file_cannot_grow(folder: Path) -> None:
    """Nine times nine times nine ... words, were the aliases followed."""
    names = "abcdefghi"
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for name, before in zip(names[1:], names, strict=False):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    (folder / "jobs.yaml").write_text("\n".join([*lines, "jobs: *i"]))
    with pytest.raises(InputError, match="line 2: YAML aliases"):
        read_jobs(folder / "jobs.yaml")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nodes", "0"], "0 nodes: at least one"),
        (["--nodes", "-3"], "-3 nodes: at least one"),
        (["--nodes", "two"], "--nodes: expected a whole number, not 'two'"),
        ([], "required: --nodes"),
    ],
)
def test_bad_words(words: list[str], message: str, folder: Path) -> None:
    with pytest.raises(InputError, match=message):
        dispatch(["advise", str(folder), *words])


def test_odd_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(bytes(range(256)))
    for place in (
        tmp_path,
        tmp_path / "none",
        tmp_path / "a.csv",
        tmp_path / "a.csv" / "b",
        Path("/dev/null"),
    ):
        with pytest.raises(InputError) as caught:
            dispatch(["advise", str(place), "--nodes", "2"])
        assert "\n" not in str(caught.value)
        assert str(place) in str(caught.value)


def test_names_cannot_move_the_cursor(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "jobs.yaml").write_text('jobs: [{log: a/metrics.csv, target: 0.2, name: "x\\e[2J\\ny"}]')
    dispatch(["advise", str(folder), "--nodes", "1"])
    text = capsys.readouterr().out
    assert "x?[2J?y" in text
    assert "\x1b" not in text
