"""The distilled head: close to its teacher, at one pass."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from mara.config.flow import (
    DistilledSettings,
    ExampleSettings,
    FlowSettings,
    TrainingSettings,
    WindowSettings,
)
from mara.errors import InputError
from mara.predictors.flow.distilled import DistilledPredictor
from mara.predictors.flow.lightweight import LightweightPredictor
from mara.predictors.flow.predictor import FlowPredictor
from mara.predictors.forecast import Query

torch.set_num_threads(1)

TEACHER = FlowSettings(
    examples=ExampleSettings(examples=4000, synthetic_curves=200, altered_copies=1, trials=400),
    training=TrainingSettings(steps=30, batch=256, warm_up=5, checkpoint_every=30),
    hidden=32,
    width=32,
    depth=1,
    window=WindowSettings(tasks=300, steps=30),
)
SETTINGS = DistilledSettings(
    prefixes=3000,
    targets=6,
    hidden=64,
    depth=1,
    compared=300,
    training=TrainingSettings(steps=250, batch=256, warm_up=20, checkpoint_every=250, input_noise=0.0),
)


@pytest.fixture(scope="module")
def distilled(corpus):
    teacher = FlowPredictor(TEACHER, deadline=True)
    return DistilledPredictor(teacher, SETTINGS).fit(corpus, np.random.default_rng(0))


def queries(corpus, window=None) -> Query:
    length = np.minimum(np.random.default_rng(2).integers(1, 120, len(corpus)), corpus.diverged_at)
    best = Query.of(corpus.loss, length, np.ones(len(corpus))).best_smoothed()
    return Query.of(corpus.loss, length, 0.7 * best, corpus.schedule, window)


def test_is_closer_to_its_teacher_than_other_questions_are(distilled, corpus):
    for window in (None, np.full(len(corpus), 40.0)):
        query = queries(corpus, window)
        mine, teachers = distilled.forecast(query).cdf, distilled.teacher.forecast(query).cdf
        apart = np.abs(mine - teachers).mean()
        assert apart < 0.06
        assert apart < 0.4 * np.abs(mine - np.roll(teachers, 1, axis=0)).mean()


def test_what_was_lost_is_kept(distilled):
    assert 0 < distilled.lost["cdf"] < 0.06
    assert {f"quantile {level}" for level in (0.1, 0.5, 0.9)} <= set(distilled.lost)


def test_decided_questions_are_decided(distilled):
    query = Query.of(np.linspace(2, 1, 200)[None].repeat(2, 0), np.array([100, 100]), np.array([1.9, 0.0]))
    cdf = distilled.forecast(query).cdf
    assert np.all(cdf[0] == 1)
    assert np.all(cdf[1] == 0)


def test_only_the_prefix_counts(distilled, corpus):
    query = queries(corpus)
    spoiled = replace(query, loss=np.where(query.seen(), query.loss, np.float32(1e-3)))
    np.testing.assert_array_equal(distilled.forecast(query).cdf, distilled.forecast(spoiled).cdf)


def test_saving_and_loading_keeps_the_forecasts(distilled, corpus, tmp_path: Path):
    distilled.save(tmp_path / "distilled")
    loaded = DistilledPredictor.load(tmp_path / "distilled")
    query = queries(corpus)
    np.testing.assert_array_equal(loaded.forecast(query).cdf, distilled.forecast(query).cdf)


def test_exported_it_forecasts_the_same_without_torch(distilled, corpus, odd, tmp_path: Path):
    distilled.export(tmp_path / "model.npz")
    light = LightweightPredictor.load(tmp_path / "model.npz")
    assert light.name == distilled.name
    some_windows = np.where(np.arange(len(corpus)) % 2, 40.0, np.nan)
    for query in (queries(corpus), queries(corpus, some_windows), *odd.values()):
        mine, its = light.forecast(query, 150), distilled.forecast(query, 150)
        np.testing.assert_allclose(mine.cdf, its.cdf, atol=1e-5)


def test_the_lightweight_module_loads_no_neural_network_library():
    code = "import sys, mara.predictors.flow.lightweight; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04"])
def test_a_file_that_is_no_exported_model_is_named(tmp_path: Path, content: bytes):
    (tmp_path / "bad.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.npz: not an exported predictor"):
        LightweightPredictor.load(tmp_path / "bad.npz")


def test_an_archive_of_other_arrays_is_named(tmp_path: Path):
    np.savez(tmp_path / "other.npz", name=np.zeros(3))
    with pytest.raises(InputError, match=r"other\.npz: not an exported predictor"):
        LightweightPredictor.load(tmp_path / "other.npz")
