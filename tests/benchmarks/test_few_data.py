"""The benchmark of few data: which curves a share holds, going on after a stop, paired differences."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from mara.config.flow import DirectSettings, ExampleSettings, FlowSettings, TrainingSettings
from mara.curves.corpus import Corpus, part_of
from mara.curves.synthetic import draw_curves

EXAMPLES = ExampleSettings(examples=1500, synthetic_curves=50, altered_copies=1, trials=200)
TRAINING = TrainingSettings(steps=10, batch=64, warm_up=2, checkpoint_every=10)
FLOW = FlowSettings(examples=EXAMPLES, training=TRAINING, hidden=16, width=16, depth=1, paths=8)
DIRECT = DirectSettings(examples=EXAMPLES, training=TRAINING, hidden=16, depth=1)


@pytest.fixture(scope="module")
def few_data() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "few_data.py"
    spec = importlib.util.spec_from_file_location("few_data", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Groups of four synthetic curves as if recorded, a quarter of them in each split."""
    curves = draw_curves(400, np.random.default_rng(5))
    number = np.arange(400) // 4
    return replace(
        curves,
        family=np.full(400, "supervised"),
        group=np.array([f"group-{k}" for k in number]),
        split=np.array(["train", "calibration", "validation", "test"])[number % 4],
    )


def test_small_shares_lie_in_larger_ones_and_other_splits_stay(few_data, corpus):
    for draw in range(2):
        groups = [set(few_data.drawn_groups(corpus, few_data.Trial(s, draw))) for s in few_data.SHARES]
        assert groups[0] < groups[1] < groups[2] == set(few_data.training_groups(corpus))
        assert all(part_of(group) == "predictor" for group in groups[2])
        thin = few_data.thinned(corpus, few_data.Trial(few_data.SHARES[1], draw))
        assert set(thin.of(split="train").group) - groups[1] == set(corpus.of(part="allocator").group)
        kept = thin.of(split="train", part="predictor")
        whole = corpus.of(split="train", part="predictor")
        np.testing.assert_array_equal(kept.id, whole.id[np.isin(whole.group, list(groups[1]))])
        for split in ("calibration", "validation", "test"):
            np.testing.assert_array_equal(thin.of(split=split).id, corpus.of(split=split).id)
    quarter = [set(few_data.drawn_groups(corpus, few_data.Trial(Fraction(1, 4), draw))) for draw in (0, 1)]
    assert quarter[0] != quarter[1]


def test_a_run_goes_on_with_what_is_missing(few_data, corpus, tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr("mara.predictors.direct._PRIOR_PREFIXES", 1000)
    trials = [
        few_data.Trial(Fraction(1, 4), 0),
        few_data.Trial(Fraction(1, 4), 1),
        few_data.Trial(Fraction(1, 4), 0, synthetic=False),
    ]
    few_data.measure(corpus, "validation", tmp_path, trials, FLOW, DIRECT)
    names = ("scores.csv", "differences.csv")
    tables = [(tmp_path / name).read_bytes() for name in names]
    assert capsys.readouterr().out.count("CPU s") == 6
    assert not list(tmp_path.rglob("*.checkpoint"))
    trials[1].part(tmp_path, "direct", ".parquet").unlink()
    few_data.measure(corpus, "validation", tmp_path, trials, FLOW, DIRECT)
    assert capsys.readouterr().out.count("CPU s") == 1
    assert [(tmp_path / name).read_bytes() for name in names] == tables, "the same numbers in both runs"
    found, paired = (pd.read_csv(tmp_path / name) for name in names)
    assert len(found) == 6
    assert len(paired) == 4
    whole = found[found["synthetic_prior"]].groupby("predictor")["nmae"].mean()
    row = paired[paired["synthetic_prior"] & (paired["score"] == "nmae")].iloc[0]
    assert row["estimate"] == pytest.approx(whole["flow"] - whole["direct"])
    assert row["low"] <= row["estimate"] <= row["high"]
    assert row["draws"] == 2


def test_differences_are_paired(few_data):
    rng = np.random.default_rng(0)
    group = np.repeat([f"g{k}" for k in range(20)], 5)
    first = [pd.DataFrame({"group": group, "nmae": rng.uniform(size=100)}) for _ in range(2)]
    second = [frame.assign(nmae=frame["nmae"] - 0.25) for frame in first]
    assert few_data.difference(first, second, "nmae") == pytest.approx((0.25, 0.25, 0.25))
