"""A small corpus with groups and splits, and prefixes as odd as they come."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mara.curves.corpus import Corpus, part_of
from mara.curves.synthetic import draw_curves
from mara.predictors.forecast import Predictor, Query

RUNS = 6


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """240 synthetic curves as if recorded: groups of six noisy runs of one curve, in all four splits."""
    rng = np.random.default_rng(7)
    prior = draw_curves(200, rng)
    whole = np.flatnonzero(prior.diverged_at == 200)[:40]
    row = np.repeat(whole, RUNS)
    noise = np.exp(0.05 * rng.standard_normal((len(row), 200)))
    names = np.array([f"group{k}" for k in range(len(row) // RUNS)])
    split = np.array(["calibration", "validation", "test"])[np.arange(len(names)) % 3]
    split[: len(names) // 2] = "train"
    assert any(part_of(name) == "predictor" for name in names[: len(names) // 2])
    return replace(
        prior.select(row),
        id=np.array([f"curve{k}" for k in range(len(row))]),
        family=np.full(len(row), "supervised"),
        group=np.repeat(names, RUNS),
        split=np.repeat(split, RUNS),
        loss=(prior.loss[row] * noise).astype(np.float32),
    )


@pytest.fixture(scope="session")
def odd() -> dict[str, Query]:
    """One question each, by the name of its oddity."""
    fall = 2.0 / np.sqrt(1 + np.arange(200))
    holed = fall.copy()
    holed[10] = np.nan
    infinite = fall.copy()
    infinite[10] = np.inf
    negative = fall.copy()
    negative[10] = -1.0

    def ask(loss: np.ndarray, length: int, target: float) -> Query:
        return Query.of(loss[None], np.array([length]), np.array([target]))

    return {
        "one point": ask(fall, 1, 1.0),
        "constant": ask(np.full(200, 0.7), 50, 0.5),
        "all reached": ask(fall, 50, 0.6),
        "zero target": ask(fall, 50, 0.0),
        "negative target": ask(fall, 50, -3.0),
        "NaN target": ask(fall, 50, np.nan),
        "NaN inside": ask(holed, 50, 0.1),
        "infinity inside": ask(infinite, 50, 0.1),
        "negative inside": ask(negative, 50, 0.1),
        "reached before a NaN": ask(holed, 50, 1.5),
        "rising": ask(1.0 + np.arange(200) / 50, 100, 0.5),
        "whole curve": ask(fall, 200, 0.1),
        "long": ask(2.0 / np.sqrt(1 + np.arange(100_000)), 100_000, 0.0063),
        "tiny losses": ask(fall * 1e-30, 50, 0.1e-30),
        "huge losses": ask(fall * 1e30, 50, 0.1e30),
    }


@pytest.fixture(scope="session")
def defined_answers(odd) -> Callable[[Predictor], None]:
    """Asks a predictor every odd question and checks its answers."""

    def check(predictor: Predictor) -> None:
        for oddity, question in odd.items():
            asked = question.rows(np.array([0]), truth=np.array([5.0]))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                answer = predictor.forecast(asked)
            assert np.isfinite(answer.cdf).all(), oddity
            assert not np.isnan(answer.point).any(), oddity
            if oddity in ("all reached", "reached before a NaN"):
                assert answer.point[0] == 0, oddity
                assert (answer.cdf == 1).all(), oddity
            elif "target" in oddity or "inside" in oddity:
                assert answer.point[0] == np.inf, oddity
                assert (answer.cdf == 0).all(), oddity
            else:
                assert answer.point[0] >= 1, oddity
                assert answer.cdf[0, 0] == 0, oddity

    return check
