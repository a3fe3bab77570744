from dataclasses import replace

import numpy as np
import pytest

from mara.curves.corpus import POINTS, Corpus
from mara.curves.noise_floor import noise_floor


def twins(speeds: list[float]) -> Corpus:
    """Pairs of exponentials; the twin falls as much slower as its speed says."""
    units = np.arange(POINTS)
    loss = np.concatenate([[np.exp(-units / 60), np.exp(-units * speed / 60)] for speed in speeds])
    count = len(loss)
    groups = np.repeat([f"set/{number}" for number in range(len(speeds))], 2)
    return Corpus(
        id=np.array([f"{group}/{row % 2}" for row, group in enumerate(groups)]),
        family=np.array(["supervised"] * count),
        dataset=np.array(["set"] * count),
        group=groups,
        split=np.array(["train"] * count),
        seed=np.arange(count),
        config=[{}] * count,
        loss=loss.astype(np.float32),
        train_loss=loss.astype(np.float32),
        schedule=np.ones((count, POINTS), dtype=np.float32),
        diverged_at=np.full(count, POINTS, dtype=np.int32),
    )


def test_equal_twins_have_no_error() -> None:
    floor = noise_floor(twins([1.0, 1.0, 1.0]), "supervised", np.random.default_rng(0))
    assert floor is not None
    assert floor.nmae == floor.low == floor.high == 0
    assert (floor.groups, floor.pairs, floor.cases) == (3, 6, 6 * 12)


def test_unlike_twins_have_more_error_and_an_interval_around_it() -> None:
    near = noise_floor(twins([0.9, 0.95, 1.05, 1.1]), "supervised", np.random.default_rng(0))
    far = noise_floor(twins([0.5, 0.6, 1.8, 2.0]), "supervised", np.random.default_rng(0))
    assert near is not None
    assert far is not None
    assert 0 < near.low <= near.nmae <= near.high < far.nmae < 1


def test_the_error_is_that_of_the_protocol() -> None:
    """One pair, by hand: after 20 points of exp(-n/60) the target .5 needs about 60 log 2 further units."""
    corpus = twins([1.0])
    slow = replace(corpus, loss=np.vstack([corpus.loss[0], np.ones(POINTS)]).astype(np.float32))
    floor = noise_floor(slow, "supervised", np.random.default_rng(0))
    assert floor is not None
    forward = [
        abs(min(np.ceil(-60 * np.log(fraction)), 200 - prefix) - (200 - prefix)) / (200 - prefix)
        for prefix in (20, 40, 80)
        for fraction in (0.9, 0.7, 0.5, 0.25)
    ]
    # The other way round the twin is below each target before the prefix ends only where 1 * fraction allows.
    backward = []
    for prefix in (20, 40, 80):
        for fraction in (0.9, 0.7, 0.5, 0.25):
            smoothed = np.array([np.exp(-np.arange(max(0, n - 4), n + 1) / 60).mean() for n in range(POINTS)])
            reached = np.flatnonzero(smoothed[1:] <= fraction)[0] + 1
            answer = np.clip(reached - (prefix - 1), 0, 200 - prefix)
            backward.append(abs(answer - (200 - prefix)) / (200 - prefix))
    assert floor.nmae == pytest.approx(np.mean([*forward, *backward]), abs=0.01)


def test_a_family_without_twins_has_no_floor() -> None:
    assert noise_floor(twins([1.0]), "vision", np.random.default_rng(0)) is None
