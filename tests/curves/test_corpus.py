import time
from collections import defaultdict

import numpy as np
import pytest

from mara.curves.corpus import (
    DATA_DIRECTORY,
    HELD_OUT_FAMILIES,
    POINTS,
    SPLITS,
    Corpus,
    concatenate,
    load_corpus,
    siblings,
)
from mara.curves.recipes import family_batches
from mara.curves.smoothing import smooth


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus()


def test_it_loads_in_under_a_second() -> None:
    load_corpus()
    seconds = []
    for _ in range(3):
        start = time.process_time()
        load_corpus()
        seconds.append(time.process_time() - start)
    assert min(seconds) < 1


def test_files_are_small() -> None:
    assert sum(path.stat().st_size for path in DATA_DIRECTORY.glob("*.parquet")) < 10e6


@pytest.mark.parametrize(
    ("family", "curves", "groups"), [("supervised", 3000, 300), ("vision", 400, 40), ("rl", 500, 40)]
)
def test_there_are_enough_curves(corpus: Corpus, family: str, curves: int, groups: int) -> None:
    chosen = corpus.of(family=family)
    assert len(chosen) >= curves
    assert len(np.unique(chosen.group)) >= groups
    assert min(np.unique(chosen.group, return_counts=True)[1]) >= 5


@pytest.mark.parametrize("family", ["supervised", "vision", "rl"])
def test_it_holds_exactly_what_the_recipes_say(corpus: Corpus, family: str) -> None:
    chosen = corpus.of(family=family)
    recipes = {recipe.id: recipe for _, batch in family_batches(family) for recipe in batch}
    assert list(chosen.id) == list(recipes)
    for row, name in enumerate(chosen.id):
        recipe = recipes[name]
        assert chosen.config[row] == recipe.config
        assert (chosen.group[row], chosen.split[row], chosen.seed[row]) == (
            recipe.group,
            recipe.split,
            recipe.seed,
        )


def test_splits_and_parts_divide_groups(corpus: Corpus) -> None:
    split_of = defaultdict(set)
    for group, split in zip(corpus.group, corpus.split, strict=True):
        split_of[group].add(split)
    assert all(len(splits) == 1 for splits in split_of.values())
    for family in HELD_OUT_FAMILIES:
        assert set(corpus.of(family=family).split) == {"test"}
    train = set(corpus.of(split="train").group)
    predictor, allocator = (set(corpus.of(part=part).group) for part in ("predictor", "allocator"))
    assert predictor | allocator == train
    assert not predictor & allocator
    assert 0.15 < len(allocator) / len(train) < 0.35


def test_unknown_names_are_refused(corpus: Corpus) -> None:
    for bad in (
        {"family": "audio"},
        {"split": "exam"},
        {"part": "half"},
        {"split": "test", "part": "predictor"},
    ):
        with pytest.raises(ValueError, match=r"."):
            corpus.of(**bad)


def test_divergence_is_marked_and_nothing_else_is_missing(corpus: Corpus) -> None:
    alive = np.arange(POINTS) < corpus.diverged_at[:, None]
    for loss in (corpus.loss, corpus.train_loss):
        assert np.array_equal(np.isfinite(loss), alive)
        assert (loss[alive] > 0).all()
    assert corpus.schedule.shape == corpus.loss.shape == (len(corpus), POINTS)
    assert 0.003 < (corpus.diverged_at < POINTS).mean() < 0.15


def test_a_group_varies_in_its_first_loss_and_course(corpus: Corpus) -> None:
    """Runs recorded side by side must not share initial weights and data order."""
    networks = corpus.select(np.array(["boosting" not in group for group in corpus.group]))
    networks = networks.of(family="supervised")
    pairs = np.array([rows[:2] for rows in siblings(networks)])
    for losses in (networks.loss[:, 0], networks.train_loss[:, 1]):
        # Losses are rounded, so that a few agree by chance.
        assert (losses[pairs[:, 0]] == losses[pairs[:, 1]]).mean() < 0.01


def test_learning_takes_very_different_times(corpus: Corpus) -> None:
    for family in ("supervised", "vision", "rl"):
        smoothed = smooth(corpus.of(family=family).loss.astype(np.float64))
        best = np.nanmin(smoothed, axis=1)
        start = smoothed[:, 0]
        learnt = best < 0.9 * start
        middle = (smoothed <= (0.1 * start + 0.9 * best)[:, None]).argmax(axis=1)[learnt]
        early, late = np.quantile(middle, [0.1, 0.9])
        assert early < 40
        assert late > 100
        assert learnt.mean() > 0.5


def test_selecting_and_joining_give_the_rows_back(corpus: Corpus) -> None:
    rng = np.random.default_rng(0)
    mask = rng.random(len(corpus)) < 0.5
    parts = concatenate([corpus.select(mask), corpus.select(~mask)])
    order = np.argsort(np.concatenate([np.flatnonzero(mask), np.flatnonzero(~mask)]))
    back = parts.select(order)
    np.testing.assert_array_equal(back.id, corpus.id)
    np.testing.assert_array_equal(back.loss, corpus.loss)
    assert back.config == corpus.config


@pytest.mark.parametrize("family", ["supervised", "vision", "rl"])
def test_the_data_card_tells_the_counts(corpus: Corpus, family: str) -> None:
    chosen = corpus.of(family=family)
    splits = [len(np.unique(chosen.of(split=split).group)) for split in SPLITS]
    counts = [len(np.unique(chosen.group)), len(np.unique(chosen.dataset)), *splits]
    row = [family, f"{len(chosen):,}", *map(str, counts), str((chosen.diverged_at < POINTS).sum())]
    assert f"| {' | '.join(row)} |" in (DATA_DIRECTORY / "README.md").read_text(encoding="utf-8")
