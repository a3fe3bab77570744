import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest

from mara.curves import recipes as recipe_list
from mara.curves.corpus import POINTS, load_corpus, read_curves
from mara.curves.recipes import Recipe, Recorded
from mara.curves.record import as_corpus, compare, record_family, record_ids, round_bits
from mara.curves.record import main as record_words
from mara.errors import InputError

ROOT = Path(__file__).parents[2]

STUB = """
import os
from pathlib import Path

import numpy as np

from mara.curves.recipes import Recipe, Recorded, run_seed


def recipes():
    return [
        Recipe(f"{group}/{run:02d}-0", "supervised", "set", group, {}, run, "train", group)
        for group in ("set/net0", "set/net1", "set/net2", "set/net3")
        for run in range(3)
    ]


def record(batch):
    folder = Path(os.environ["STUB_FOLDER"])
    if batch[0].batch == "set/net2" and not (folder / "repaired").exists():
        raise RuntimeError("killed")
    (folder / batch[0].batch.replace("/", "-")).open("a").write("x")
    loss = np.stack([np.random.default_rng(run_seed(recipe, "order")).uniform(1, 2, 200) for recipe in batch])
    return Recorded(loss, loss, np.ones_like(loss))
"""


def some_recipe(name: str = "set/net/00-0") -> Recipe:
    return Recipe(name, "supervised", "set", "set/net", {}, 0, "train", "set/net")


def test_re_recorded_curves_are_the_same_bits() -> None:
    """A few ids of quick batches of every recorder, other ones in every run."""
    corpus = load_corpus()
    rng = np.random.default_rng()
    ids = []
    for architecture in ("/linear/", "/mlp-1x16-tanh/", "/boosting-depth1/", "/window-2x12-32/"):
        names = [
            name
            for name in corpus.id
            if architecture in name and not name.startswith(("digits", "gaussians_w"))
        ]
        ids.append(str(rng.choice(names)))
    recorded = record_ids(ids, jobs=2)
    assert list(recorded.id) == ids
    assert compare(recorded, corpus) == []


def test_a_killed_recording_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stub_recorder.py").write_text(STUB)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("STUB_FOLDER", str(tmp_path))
    monkeypatch.setitem(recipe_list.RECORDERS, "supervised", ("stub_recorder",))
    with pytest.raises(RuntimeError, match="killed"):
        record_family("supervised", tmp_path / "data", tmp_path / "shards", jobs=1)
    assert not (tmp_path / "data").exists()
    finished = {path.name.split("-")[0] for path in tmp_path.glob("shards/*/*.parquet")}
    (tmp_path / "repaired").touch()
    path = record_family("supervised", tmp_path / "data", tmp_path / "shards", jobs=1)
    corpus = read_curves(path)
    assert list(corpus.id) == [f"set/net{batch}/{run:02d}-0" for batch in range(4) for run in range(3)]
    assert 1 <= len(finished) <= 3
    for shard in finished:
        assert len((tmp_path / shard.replace("__", "-")).read_text()) == 1
    assert not list(tmp_path.glob("shards/*/*"))
    other = record_family("supervised", tmp_path / "data2", tmp_path / "shards2", jobs=2)
    assert compare(read_curves(other), corpus) == []
    assert other.read_bytes() == path.read_bytes()


def test_a_worker_does_not_outlive_a_killed_recorder(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing, os, time
            from mara.curves.record import _start_worker

            def work(queue):
                _start_worker()
                queue.put(os.getpid())
                time.sleep(600)

            if __name__ == "__main__":
                context = multiprocessing.get_context("spawn")
                queue = context.SimpleQueue()
                context.Process(target=work, args=(queue,)).start()
                print(queue.get(), flush=True)
                os.kill(os.getpid(), 9)
            """
        )
    )
    # The worker holds the output open as well, so this returns when it is gone too, or runs out of time.
    subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, timeout=240, check=False)


def test_divergence_is_marked_from_the_first_bad_point() -> None:
    loss = np.ones((4, POINTS))
    loss[0, 30:] = np.inf
    loss[1, 40] = np.nan
    loss[2, 50] = 2e6
    train = np.ones((4, POINTS))
    train[1, 35] = np.nan
    corpus = as_corpus(
        [some_recipe(f"set/net/{row:02d}-0") for row in range(4)], Recorded(train, loss, np.ones((4, POINTS)))
    )
    assert list(corpus.diverged_at) == [30, 35, 50, POINTS]
    for row, point in enumerate(corpus.diverged_at):
        assert np.isfinite(corpus.loss[row, :point]).all()
        assert np.isnan(corpus.loss[row, point:]).all()


def test_tiny_losses_are_floored_and_rounding_is_small() -> None:
    loss = np.geomspace(3, 1e-12, POINTS)[None]
    corpus = as_corpus([some_recipe()], Recorded(loss, loss, np.ones((1, POINTS))))
    expected = np.maximum(loss, 1e-6)
    np.testing.assert_allclose(corpus.loss, expected, rtol=1.23e-4)
    assert (corpus.loss > 0).all()
    values = round_bits(np.random.default_rng(0).lognormal(size=1000))
    np.testing.assert_array_equal(round_bits(values), values)


def test_a_curve_without_a_start_is_refused() -> None:
    loss = np.full((1, POINTS), np.nan)
    with pytest.raises(ValueError, match="no finite start"):
        as_corpus([some_recipe()], Recorded(loss, loss, np.ones((1, POINTS))))


SLOW = STUB.replace(
    'raise RuntimeError("killed")', '(folder / "begun").touch()\n        __import__("time").sleep(600)'
)
FAMILY_OF_STUB = """
import signal

from mara.curves import record
from mara.curves.recipes import RECORDERS
from mara.errors import exit_on_input_error

RECORDERS["supervised"] = ("stub_recorder",)
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    words = ["--family", "supervised", "--output", "data", "--shards", "shards", "--jobs", "1"]
    exit_on_input_error(lambda: record.main(words))
"""


def test_an_interrupted_recording_ends_at_once_and_can_go_on(tmp_path: Path) -> None:
    (tmp_path / "stub_recorder.py").write_text(SLOW)
    (tmp_path / "run.py").write_text(FAMILY_OF_STUB)
    environment = {**os.environ, "STUB_FOLDER": str(tmp_path), "PYTHONPATH": f"{tmp_path}:{ROOT}"}

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "run.py"],
            cwd=tmp_path,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    with start() as first:
        end = time.monotonic() + 240
        while not (tmp_path / "begun").exists():
            assert first.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        os.killpg(first.pid, signal.SIGINT)
        said = first.communicate(timeout=240)[1]
    assert first.returncode == 130
    assert said.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said
    assert not list((tmp_path / "data").iterdir())
    kept = {path.name.split("-")[0] for path in tmp_path.glob("shards/*/*.parquet")}
    (tmp_path / "repaired").touch()
    with start() as second:
        second.communicate(timeout=240)
    assert second.returncode == 0
    assert len(read_curves(tmp_path / "data" / "supervised.parquet")) == 12
    for shard in kept:
        assert len((tmp_path / shard.replace("__", "-")).read_text()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--family", "visions"], "--family: invalid choice"),
        (["--all", "--family", "rl"], "not allowed with"),
        ([], "one of the arguments --all --family --ids is required"),
        (["--ids"], "--ids: expected at least one argument"),
        (["--family", "rl", "--jobs", "0"], "--jobs 0: expected 1 to"),
        (["--family", "rl", "--jobs", "-1"], "--jobs -1: expected 1 to"),
        (["--family", "rl", "--jobs", "1000000"], "--jobs 1000000: expected 1 to"),
        (["--family", "rl", "--output", "/dev/null"], "--output /dev/null: cannot be written"),
        (["--family", "rl", "--output", "new", "--shards", "/dev/null/a"], "--shards /dev/null/a: cannot"),
        (["--ids", "digits/mlp-1x200-relu/00-0", "--output", "none"], "none: no corpus here; expected"),
    ],
)
def test_wrong_words_are_named(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message) as caught:
        record_words(words)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_worker_that_was_killed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise BrokenProcessPool

    monkeypatch.setattr("mara.curves.record.record_family", killed)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="a worker was killed"):
        record_words(["--family", "rl", "--output", "data"])


@pytest.mark.parametrize("arguments", [["--ids", "no/such/curve"], ["--family", "supervised", "--jobs", "0"]])
def test_wrong_commands_end_with_one_line_and_code_2(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mara.curves.record", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")
