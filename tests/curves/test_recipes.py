import itertools
import json
from collections import Counter, defaultdict

import numpy as np
import pytest

from mara.curves.plan import WHOLE_DATASETS
from mara.curves.recipes import Recipe, family_batches, find_batches, fingerprint, run_seed
from mara.errors import InputError


@pytest.fixture(scope="module")
def recipes() -> list[Recipe]:
    return [recipe for _, batch in family_batches("supervised") for recipe in batch]


def test_there_are_enough_groups_in_every_split(recipes: list[Recipe]) -> None:
    groups = {recipe.group: recipe.split for recipe in recipes}
    count = Counter(groups.values())
    assert len(recipes) >= 3000
    assert len(groups) >= 300
    assert count["test"] >= 100
    assert count["train"] >= 140
    assert count["calibration"] >= 30
    assert count["validation"] >= 30
    assert len({recipe.dataset for recipe in recipes}) >= 12


def test_every_group_has_five_runs_and_siblings(recipes: list[Recipe]) -> None:
    runs = Counter(recipe.group for recipe in recipes)
    assert min(runs.values()) >= 5
    seeds = defaultdict(set)
    for recipe in recipes:
        seeds[recipe.group, json.dumps(recipe.config, sort_keys=True)].add(recipe.seed)
    with_twin = {group for (group, _), found in seeds.items() if len(found) > 1}
    assert with_twin == set(runs)
    share = np.mean([len(found) > 1 for found in seeds.values()])
    assert 1 / 3 <= share < 0.5


def test_whole_data_sets_are_never_trained_on(recipes: list[Recipe]) -> None:
    splits = defaultdict(set)
    for recipe in recipes:
        splits[recipe.dataset].add(recipe.split)
    for split, names in WHOLE_DATASETS.items():
        for name in names:
            assert splits[name] == {split}
    unseen = {recipe.group for recipe in recipes if splits[recipe.dataset] == {"test"}}
    assert len(unseen) >= 50


def test_settings_vary(recipes: list[Recipe]) -> None:
    networks = [recipe.config for recipe in recipes if "batch_size" in recipe.config]
    assert len({config["optimizer"] for config in networks}) == 5
    assert len({config["schedule"] for config in networks}) == 5
    assert len({config["batch_size"] for config in networks}) >= 4
    assert len({config.get("dropout") for config in networks}) >= 3
    assert len({config.get("label_noise") for config in networks}) >= 3


def test_no_two_runs_share_a_seed_or_a_stream(recipes: list[Recipe]) -> None:
    streams = [run_seed(recipe, purpose) for recipe in recipes for purpose in ("weights", "order")]
    assert len(set(streams)) == len(streams)
    assert len({recipe.seed for recipe in recipes}) == len(recipes)


def test_the_list_is_the_same_every_time(recipes: list[Recipe]) -> None:
    again = [recipe for _, batch in family_batches("supervised") for recipe in batch]
    assert again == recipes


def test_a_fingerprint_tells_recipes_apart(recipes: list[Recipe]) -> None:
    batches = [list(batch) for _, batch in itertools.groupby(recipes, key=lambda recipe: recipe.batch)]
    assert len({fingerprint(batch) for batch in batches}) == len(batches)
    assert fingerprint(batches[0]) != fingerprint(batches[0][:-1])


def test_an_unknown_id_is_named() -> None:
    with pytest.raises(InputError, match="no recipe has the id 'nothing/of-the-kind/00-0'"):
        find_batches(["nothing/of-the-kind/00-0"])
