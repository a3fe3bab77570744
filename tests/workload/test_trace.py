from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from mara.config.workload import ArrivalSettings, TaskSettings
from mara.errors import InputError
from mara.workload.arrivals import read_submissions
from mara.workload.card import trace_card
from mara.workload.tasks import make_pool
from mara.workload.trace import Trace, make_trace
from tests.workload.curve_groups import make_groups

CORPUS = make_groups(20, 10, np.random.default_rng(0))
POOL = make_pool(CORPUS, TaskSettings(templates=500), np.random.default_rng(1))
COLUMNS = ("offset", "template", "arrival", "deadline", "scored")


def trace_of(process: str, rate: float = 0.6, episodes: int = 300, seed: int = 2) -> Trace:
    return make_trace(POOL, ArrivalSettings(process=process), rate, episodes, np.random.default_rng(seed))


@pytest.mark.parametrize("process", ["poisson", "bursty", "diurnal"])
def test_mean_rate_and_order(process: str) -> None:
    trace = trace_of(process)
    assert len(trace) / (300 * 420) == pytest.approx(0.6, rel=0.05)
    for e in range(trace.episodes):
        assert (np.diff(trace.arrival[trace.offset[e] : trace.offset[e + 1]]) >= 0).all()
    assert trace.arrival.min() >= 0
    assert trace.arrival.max() < 420
    np.testing.assert_array_equal(trace.deadline - trace.arrival, POOL.window[trace.template])
    np.testing.assert_array_equal(trace.scored, (trace.arrival >= 120) & (trace.arrival < 360))


def test_poisson_counts_have_unit_dispersion_and_bursts_more() -> None:
    def dispersion(process: str) -> float:
        count = np.diff(trace_of(process, episodes=1500).offset)
        return float(count.var() / count.mean())

    assert dispersion("poisson") == pytest.approx(1, abs=0.12)
    assert dispersion("bursty") > 2


def test_diurnal_rate_swings() -> None:
    trace = trace_of("diurnal")
    even = trace_of("poisson")

    def swing(t: Trace) -> float:
        first = t.arrival[t.offset[0] : t.offset[-1]]
        by_episode = np.zeros((t.episodes, 7))
        np.add.at(by_episode, (t.episode, first // 60), 1)
        return float(by_episode.var(axis=1).mean())

    assert swing(trace) > 1.5 * swing(even)


def test_first_episodes_do_not_depend_on_how_many_follow() -> None:
    few, many = trace_of("bursty", episodes=3), trace_of("bursty", episodes=20)
    first = many.select(np.arange(3))
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(few, name), getattr(first, name))


def test_a_higher_rate_presses_the_same_tasks_together() -> None:
    slow, fast = trace_of("poisson", 0.5), trace_of("poisson", 0.75)
    for e in range(20):
        a, b = slice(*slow.offset[e : e + 2]), slice(*fast.offset[e : e + 2])
        n = slow.offset[e + 1] - slow.offset[e]
        np.testing.assert_array_equal(slow.template[a], fast.template[b][:n])
        assert (fast.arrival[b][:n] <= slow.arrival[a]).all()


def test_select_and_save(tmp_path: Path) -> None:
    trace = trace_of("poisson", 0.003, 60)  # some episodes are empty
    assert (np.diff(trace.offset) == 0).any()
    trace.save(tmp_path / "t.parquet")
    read = Trace.load(tmp_path / "t.parquet")
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(read, name), getattr(trace, name))
        assert getattr(read, name).dtype == getattr(trace, name).dtype
    assert read.meta == trace.meta
    back = trace.select(np.array([5, 2]))
    np.testing.assert_array_equal(back.template[: back.offset[1]], trace.template[slice(*trace.offset[5:7])])


def test_offered_load() -> None:
    trace = trace_of("poisson", 0.6)
    card = trace_card(trace, POOL, capacity=8)
    work = np.minimum(POOL.demand, POOL.window)[trace.template]
    assert card["offered_load"] == pytest.approx(0.6 * work.mean() / 8)
    assert 0 < card["feasible_load"] < card["offered_load"]


def replay(tmp_path: Path, text: str) -> ArrivalSettings:
    file = tmp_path / "log.csv"
    file.write_text(text)
    return ArrivalSettings(process="replay", replay_file=file)


def test_replay_keeps_the_pattern_and_the_rate(tmp_path: Path) -> None:
    times = np.sort(np.random.default_rng(0).choice([0, 1000, 2000, 3000], 400)) + np.arange(400) % 7
    settings = replay(
        tmp_path, "submit_time\n" + "\n".join(map(str, np.random.default_rng(1).permutation(times)))
    )
    trace = make_trace(POOL, settings, 0.5, 40, np.random.default_rng(3))
    assert len(trace) / (40 * 420) == pytest.approx(0.5, rel=0.25)
    assert np.bincount(trace.arrival[: trace.offset[1]]).max() > 20  # four piles of about 100


def test_replayed_windows_follow_the_file(tmp_path: Path) -> None:
    rows = [f"{100 * i},{100 * i + (500 if i % 2 else 5000)}" for i in range(1000)]
    settings = replay(tmp_path, "submit_time,deadline\n" + "\n".join(rows))
    trace = make_trace(POOL, settings, 1.0, 20, np.random.default_rng(3))
    window = trace.deadline - trace.arrival
    assert set(np.unique(np.round(window / 5)).astype(int)) <= set(range(26))
    short, long = np.percentile(window, [20, 80])
    assert short <= 8
    assert 35 <= long <= 70


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time\n1\n2", "no column submit_time"),
        ("submit_time\n5\n5", "two different"),
        ("submit_time\n1\n-2", "line 3: negative submit time"),
        ("submit_time\n1\nnan", "line 3: submit time is not a finite number"),
        ("submit_time\n1\nsoon", "line 3: submit time is not a number"),
        ("submit_time,deadline\n1,5\n2,2", "line 3: deadline must be after"),
        ("", "empty"),
    ],
)
def test_bad_replay_files(tmp_path: Path, text: str, message: str) -> None:
    settings = replay(tmp_path, text)
    assert settings.replay_file is not None
    with pytest.raises(InputError, match=message):
        read_submissions(settings.replay_file)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_rates(rate: float) -> None:
    with pytest.raises(InputError, match="rate must be positive"):
        make_trace(POOL, ArrivalSettings(), rate, 1, np.random.default_rng(0))


def test_replay_needs_its_file() -> None:
    with pytest.raises(ValidationError, match="replay_file"):
        ArrivalSettings(process="replay")


def test_a_shuffled_file_is_refused_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    trace_of("poisson", episodes=3).save(path)
    table = pq.read_table(path)
    rows = np.arange(len(table))
    rows[[5, -1]] = rows[[-1, 5]]
    pq.write_table(table.take(rows), path)
    with pytest.raises(InputError, match="row 6, column episode: rows must be sorted by episode"):
        Trace.load(path)
