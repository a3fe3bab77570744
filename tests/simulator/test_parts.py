"""The engine's helpers: selection, log-progress, and the cache of compiled code; and how time grows."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mara.allocators.edf import edf
from mara.config.workload import TaskSettings
from mara.curves.synthetic import draw_curves
from mara.simulator import jit
from mara.simulator.progress import log_progress
from mara.simulator.selection import select_top
from mara.simulator.simulate import simulate
from mara.workload.tasks import make_pool
from tests.simulator.cases import plain, trace_of

scores = st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0, 3.0]), max_size=12)


@settings(max_examples=300, deadline=None)
@given(scores, st.integers(1, 6))
def test_the_best_come_first_and_ties_go_to_the_earlier(score, count):
    chosen = np.full(count, -7)
    found = select_top(np.array(score), count, chosen)
    expected = sorted((k for k in range(len(score)) if score[k] > -np.inf), key=lambda k: (-score[k], k))
    assert chosen[:found].tolist() == expected[:count]
    assert np.all(chosen[found:] == -7)


@pytest.fixture(scope="module")
def curves():
    return draw_curves(200, np.random.default_rng(2))


def test_progress_is_one_exactly_where_the_target_is_reached(curves):
    pool = make_pool(curves, TaskSettings(templates=150, reference="own"), np.random.default_rng(3))
    progress = log_progress(pool, curves)
    assert progress.shape == (150, 200)
    assert progress.dtype == np.float32
    assert np.all((progress[:, 0] == 0) & (np.diff(progress, axis=1) >= 0).all(1))
    reached = np.arange(200) >= pool.demand[:, None]
    np.testing.assert_array_equal(progress == 1, reached)
    assert ((progress > 0) & (progress < 1)).mean() > 0.1


def test_progress_of_a_geometric_fall_is_a_straight_line(curves):
    """With the loss falling by one factor each unit, progress grows by one step (smoothing aside)."""
    pool = make_pool(curves, TaskSettings(templates=1, reference="own"), np.random.default_rng(3))
    loss = np.full_like(curves.loss, np.nan)
    row = pool.rows_in(curves)[0]
    loss[row] = np.exp(-0.01 * np.arange(200))
    object.__setattr__(pool, "target", np.array([np.exp(-1.5)], np.float32))
    progress = log_progress(pool, type(curves)(**{**vars(curves), "loss": loss}))[0]
    np.testing.assert_allclose(np.diff(progress[5:150]), 0.01 / 1.5, rtol=1e-2)


def test_only_what_a_module_imports_marks_its_compiled_code(tmp_path, monkeypatch):
    package = tmp_path / "mara"
    package.mkdir()
    sources = {"top": "from mara.middle import f", "middle": "import mara.deep", "deep": "", "other": ""}
    for name, text in sources.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.setattr(jit, "PACKAGE_ROOT", tmp_path)

    def stamp():
        jit._imported.cache_clear()
        return jit._stamp.__wrapped__(package / "top.py")

    first = stamp()
    (package / "other.py").write_text("x = 1")
    assert stamp() == first
    (package / "deep.py").write_text("x = 1")
    assert stamp() != first


def test_time_grows_about_in_step_with_tasks():
    def seconds(tasks):
        rng = np.random.default_rng(0)
        arrival = np.sort(rng.integers(0, tasks // 5, tasks))
        window, demand = rng.integers(5, 60, tasks), rng.integers(1, 30, tasks)
        trace, pool = trace_of([list(zip(arrival.tolist(), window.tolist(), demand.tolist(), strict=True))])
        spent = []
        for _ in range(3):
            start = time.process_time()
            simulate(trace, pool, plain(50), edf())
            spent.append(time.process_time() - start)
        return min(spent)

    seconds(100)
    assert seconds(40_000) < 3 * 8 * seconds(5_000)
