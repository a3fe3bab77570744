from collections import Counter

import numpy as np
import pytest

from mara.curves.corpus import POINTS
from mara.curves.recipes import Recipe, Recorded
from mara.curves.reinforcement import recorder
from mara.curves.reinforcement.tasks import SMALLEST_SHORTFALL


@pytest.fixture(scope="module")
def recipes() -> list[Recipe]:
    return recorder.recipes()


@pytest.fixture(scope="module")
def batch(recipes: list[Recipe]) -> list[Recipe]:
    return [recipe for recipe in recipes if recipe.batch == "lake-4x4/q"]


@pytest.fixture(scope="module")
def recorded(batch: list[Recipe]) -> Recorded:
    return recorder.record(batch)


def test_the_family_is_as_large_as_the_data_card_says(recipes: list[Recipe]) -> None:
    sizes = Counter(recipe.group for recipe in recipes)
    assert len(recipes) >= 500
    assert len(sizes) >= 40
    assert min(sizes.values()) >= 5
    assert {recipe.split for recipe in recipes} == {"test"}
    assert len({recipe.id for recipe in recipes}) == len(recipes)
    algorithms = {recipe.group.split("/")[1].rsplit("-", 1)[0] for recipe in recipes}
    assert {"reinforce", "actor-critic", "ppo", "q", "sarsa"} <= algorithms


def test_every_third_configuration_has_a_sibling_that_differs_in_the_seed_only(recipes: list[Recipe]) -> None:
    by_id = {recipe.id: recipe for recipe in recipes}
    twins = [recipe for recipe in recipes if recipe.id.endswith("-1")]
    assert len(twins) == 3 * len({recipe.group for recipe in recipes})
    for twin in twins:
        first = by_id[twin.id[:-1] + "0"]
        assert (first.config, first.group) == (twin.config, twin.group)
        assert first.seed != twin.seed


def test_recording_again_gives_the_same_bits(batch: list[Recipe], recorded: Recorded) -> None:
    again = recorder.record(batch)
    np.testing.assert_array_equal(again.validation_loss, recorded.validation_loss)
    np.testing.assert_array_equal(again.train_loss, recorded.train_loss)


def test_curves_are_positive_start_untrained_and_mostly_learn(recorded: Recorded) -> None:
    loss = recorded.validation_loss
    assert loss.shape == (10, POINTS)
    assert loss.min() >= SMALLEST_SHORTFALL
    assert (loss[:, 0] > 0.8).all()
    assert (loss.min(axis=1) < 0.5).sum() >= 5
    assert (recorded.schedule > 0).all()


def test_siblings_differ(batch: list[Recipe], recorded: Recorded) -> None:
    ids = [recipe.id for recipe in batch]
    first, second = ids.index("lake-4x4/q/00-0"), ids.index("lake-4x4/q/00-1")
    assert not np.array_equal(recorded.train_loss[first], recorded.train_loss[second])
