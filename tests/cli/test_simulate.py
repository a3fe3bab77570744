"""``mara simulate``: a table, a document, a picture; one line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from mara.allocators.mat.policy import MatPolicy, build_network
from mara.cli.main import dispatch
from mara.config.allocators import IndexWeights
from mara.config.mat import MatSettings, NetworkSettings
from mara.errors import InputError


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Forty jobs for two nodes, one bad row, not sorted."""
    rng = np.random.default_rng(5)
    rows = [
        f"j{i},{submit:.0f},{duration:.0f},{submit + duration * slack:.0f}"
        for i, (submit, duration, slack) in enumerate(
            zip(rng.uniform(0, 9000, 40), rng.uniform(200, 900, 40), rng.uniform(1.2, 4, 40), strict=True)
        )
    ]
    path = tmp_path / "jobs.csv"
    path.write_text("id,submit_time,duration,deadline\n" + "\n".join([*rows, "bad,5,-1,"]) + "\n")
    return path


def test_a_table_for_people(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(["simulate", str(trace), "--nodes", "2", "--allocators", "fifo,edf,srpt"])
    said = capsys.readouterr()
    assert "rows were not sorted by submit time; sorted" in said.err
    assert "skipped 1 row: negative duration (line 42)" in said.err
    assert "40 jobs (plain), 2 nodes, slots of 15 s" in said.out
    rows = {line.split()[0]: line for line in said.out.splitlines() if line[:4] in ("fifo", "edf ", "srpt")}
    assert set(rows) == {"fifo", "edf", "srpt"}
    assert "srpt reads kalman" in said.out


def test_a_document_for_machines(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(["simulate", str(trace), "--nodes", "2", "--slot-seconds", "60", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["trace"]["jobs"] == 40
    assert document["trace"]["skipped"] == [{"reason": "negative duration", "rows": 1, "first_lines": [42]}]
    assert document["model"]["slot_seconds"] == 60
    fifo, edf = document["allocators"]
    assert (fifo["allocator"], edf["allocator"]) == ("fifo", "edf")
    assert edf["rate"]["estimate"] == edf["completed"] / 40
    assert edf["rate"]["low"] <= edf["rate"]["estimate"] <= edf["rate"]["high"]
    difference = edf["rate"]["estimate"] - fifo["rate"]["estimate"]
    assert edf["lead_over_first"]["estimate"] == pytest.approx(difference)


def test_a_picture_and_the_transformer(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = NetworkSettings(width=16, heads=2, blocks=1, candidates_min=6, candidates_per_node=3)
    settings = MatSettings(network=network)
    drawn = build_network(settings, torch.Generator().manual_seed(0))
    MatPolicy(drawn, settings, IndexWeights()).save(tmp_path / "policy.pt")
    words = ["--nodes", "2", "--allocators", "index,mat", "--transformer", str(tmp_path / "policy.pt")]
    dispatch(
        ["simulate", str(trace), *words, "--slot-seconds", "60", "--gantt", str(tmp_path / "g.svg"), "--json"]
    )
    index, mat = json.loads(capsys.readouterr().out)["allocators"]
    assert abs(index["completed"] - mat["completed"]) <= 2  # untrained it is the index
    picture = (tmp_path / "g.svg").read_text()
    assert picture.startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nodes", "0"], "--nodes 0: expected 1"),
        (["--nodes", "1000000000000"], "expected 1 to 100000"),
        (["--nodes", "-1"], "--nodes -1: expected 1"),
        (["--nodes", "2", "--max-nodes-per-job", "0"], "--max-nodes-per-job 0: expected 1 to 2"),
        (["--nodes", "2", "--max-nodes-per-job", "3"], "--max-nodes-per-job 3: expected 1 to 2"),
        (["--nodes", "2", "--transformer", "policy.pt"], "nothing runs it; add mat to --allocators"),
        (["--nodes", "2", "--allocators", "mat", "--transformer", "/dev/null"], "not a trained transformer"),
        (["--nodes", "2", "--allocators", "mat", "--transformer", __file__], "no file of weights alone"),
        (["--nodes", "2", "--slack", "nan"], "slack of nan"),
        (["--nodes", "100000", "--slot-seconds", ".001"], "choose longer slots or fewer nodes"),
        (["--nodes", "2", "--allocator", "edf"], "--allocator: no such option; did you mean --allocators"),
        (["--nodes", "2", "--gantt", "/dev/null/g.svg"], "/dev/null is no folder"),
        (["--nodes", "2", "--allocators", ","], "name at least one"),
        (["--nodes", "2", "--allocators", "edf,edf"], "twice"),
        (["--nodes", "2", "--allocators", "egf"], "allocator egf: unknown"),
        (["--nodes", "2", "--allocators", "mat"], "needs a trained transformer"),
        (["--nodes", "2", "--seed", "-1"], "seed -1"),
        (["--nodes", "2", "--seed", "9" * 30], "seed 9"),
        (["--nodes", "2", "--predictor", "flow"], "expected one of kalman"),
        (["--nodes", "2", "--gantt", "g.txt"], "ends in .png, .svg"),
        (["--nodes", "99", "--gantt", "g.svg"], "do not fit a picture"),
        (["--nodes", "2", "--gantt", "/proc/none/g.svg"], "cannot be written"),
        (["--nodes", "2", "--strict"], "line 42: negative duration"),
        (["--nodes", "2", "--slot-seconds", "nan"], "slot of nan"),
        ([], "arguments are required: --nodes"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(trace: Path, words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        dispatch(["simulate", str(trace), *words])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "empty; expected a trace"),
        ("id,submit_time,duration,deadline\n", "no job in it"),
        ("step,loss\n1,2\n", "no known trace format"),
        (
            "id,submit_time,duration,deadline\na,0,0,9\nb,-1,4,9\nc,5,4,3\nd,nan,4,9\n",
            "4 rows; 1 row: zero duration",
        ),
        ("id,submit_time,duration,deadline\na,0,4,9\nb,9e11,4,9.1e11\n", "choose longer slots"),
    ],
)
def test_traces_without_a_job_to_simulate_are_refused(rows: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(rows)
    with pytest.raises(InputError, match=message) as caught:
        dispatch(["simulate", str(path), "--nodes", "1"])
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value) or "line 3" in str(caught.value)


def test_one_job_and_doubled_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.csv"
    path.write_text("id,submit_time,duration,deadline\n" + "a,0,40,100\n" * 3)
    dispatch(["simulate", str(path), "--nodes", "1", "--allocators", "edf,lara,index", "--json"])
    said = capsys.readouterr()
    assert "skipped 2 rows: id was there before (lines 3, 4)" in said.err
    document = json.loads(said.out)
    assert [row["completed"] for row in document["allocators"]] == [1, 1, 1]
    assert document["allocators"][0]["rate"]["low"] is None
