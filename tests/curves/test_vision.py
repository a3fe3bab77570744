from collections import Counter

import numpy as np
import pytest
import torch

from mara.curves import vision
from mara.curves.convnets import StackedConvNet
from mara.curves.corpus import POINTS
from mara.curves.images import IMAGE_DATA, image_data
from mara.curves.recipes import Recipe, Recorded


def batch_of(recipes: list[Recipe], name: str) -> list[Recipe]:
    return [recipe for recipe in recipes if recipe.batch == name]


@pytest.fixture(scope="module")
def recipes() -> list[Recipe]:
    return vision.recipes()


@pytest.fixture(scope="module")
def small_batch(recipes: list[Recipe]) -> list[Recipe]:
    """The batch of the fewest images that holds a pair of siblings, of the cheapest architecture."""
    cheap = [run for run in recipes if run.group.endswith("/patches-16") and run.id.endswith("-1")]
    first = min(cheap, key=lambda recipe: (recipe.config["steps"] * recipe.config["batch_size"], recipe.id))
    return batch_of(recipes, first.batch)


@pytest.fixture(scope="module")
def recorded(small_batch: list[Recipe]) -> Recorded:
    return vision.record(small_batch)


@pytest.mark.parametrize("name", IMAGE_DATA)
def test_image_data_is_whole_and_balanced(name: str) -> None:
    data = image_data(name)
    pixels = np.concatenate([data.train_x, data.valid_x])
    assert len(data.valid_x) == len(data.valid_y)
    assert len(data.train_x) == len(data.train_y) >= 1000
    assert abs(pixels.mean()) < 1e-3
    assert pixels.std() == pytest.approx(1.0, abs=1e-3)
    if data.kind == "classes":
        shares = np.bincount(data.train_y, minlength=data.outputs) / len(data.train_y)
        assert shares.min() > 0.5 / data.outputs
    elif data.kind in ("image", "mask"):
        assert data.train_y.shape == data.train_x.shape
    assert len(np.unique(data.train_x.reshape(len(data.train_x), -1), axis=0)) > 0.95 * len(data.train_x)


def test_no_validation_image_was_trained_on() -> None:
    data = image_data("digits")
    seen = {image.tobytes() for image in data.train_x}
    assert not any(image.tobytes() in seen for image in data.valid_x)


def test_the_family_is_as_large_as_the_data_card_says(recipes: list[Recipe]) -> None:
    sizes = Counter(recipe.group for recipe in recipes)
    assert len(recipes) >= 400
    assert len(sizes) >= 40
    assert min(sizes.values()) >= 5
    assert len({recipe.group.split("/")[1] for recipe in recipes}) >= 10
    assert {recipe.split for recipe in recipes} == {"test"}
    assert len({recipe.id for recipe in recipes}) == len(recipes)


def test_every_third_configuration_has_a_sibling_that_differs_in_the_seed_only(recipes: list[Recipe]) -> None:
    for recipe in recipes:
        index, sibling = recipe.id.rsplit("/", 1)[1].split("-")
        if sibling == "1":
            (twin,) = [other for other in recipes if other.id == f"{recipe.group}/{index}-0"]
            assert twin.config == recipe.config
            assert twin.seed != recipe.seed
            assert int(index) % 3 == 0
    assert sum(recipe.id.endswith("-1") for recipe in recipes) == 3 * len(
        {recipe.group for recipe in recipes}
    )


def test_stacked_runs_equal_runs_alone() -> None:
    """Each run's outputs and gradients are its own, through every kind of layer."""
    for layers, dense in (
        (vision.ARCHITECTURES["residual-8x2"], False),
        (vision.ARCHITECTURES["depthwise-12"], False),
        (vision.DENSE_ARCHITECTURES["bottleneck-12"], True),
        (vision.DENSE_ARCHITECTURES["dilated-8"], True),
    ):
        net = StackedConvNet(layers, (1, 8, 8), 3, dense)
        generator = torch.Generator().manual_seed(4)
        parameters = torch.stack([net.initial(1.0, generator) for _ in range(3)]).double().requires_grad_()
        images = torch.randn(5, 3, 8, 8, generator=generator).double()
        together = net.forward(parameters, images)
        assert together.shape == ((3, 5, 3, 8, 8) if dense else (3, 5, 3))
        (gradient,) = torch.autograd.grad(together.square().sum(), parameters)
        for run in range(3):
            alone = parameters[run : run + 1].detach().requires_grad_()
            output = net.forward(alone, images[:, run : run + 1])
            torch.testing.assert_close(output[0], together[run])
            (own,) = torch.autograd.grad(output.square().sum(), alone)
            torch.testing.assert_close(own[0], gradient[run])


def test_recording_again_gives_the_same_bits(small_batch: list[Recipe], recorded: Recorded) -> None:
    again = vision.record(small_batch)
    np.testing.assert_array_equal(again.validation_loss, recorded.validation_loss)
    np.testing.assert_array_equal(again.train_loss, recorded.train_loss)


def test_runs_of_a_batch_share_neither_weights_nor_data_order(
    small_batch: list[Recipe], recorded: Recorded
) -> None:
    twin = next(recipe for recipe in small_batch if recipe.id.endswith("-1"))
    siblings = [row for row, recipe in enumerate(small_batch) if recipe.config == twin.config]
    assert len(siblings) == 2
    first, second = (recorded.validation_loss[row] for row in siblings)
    assert first[0] != second[0]
    noise = np.diff(recorded.train_loss[siblings], axis=1)[:, POINTS // 2 :]
    assert abs(np.corrcoef(noise)[0, 1]) < 0.35


def test_losses_are_positive_and_training_helps(recorded: Recorded) -> None:
    """A run with a large learning rate may diverge; the others stay finite beside it."""
    loss = recorded.validation_loss
    whole = np.isfinite(loss).all(axis=1)
    assert whole.sum() >= len(loss) / 2
    assert (loss[np.isfinite(loss)] > 0).all()
    assert recorded.schedule.shape == loss.shape
    assert (loss[whole].min(axis=1) < 0.5 * loss[whole, 0]).any()
