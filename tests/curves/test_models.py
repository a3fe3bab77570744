"""The models that supervised curves are recorded from."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from mara.curves import boosting, mlp, text
from mara.curves.corpus import POINTS
from mara.curves.datasets import BUILDERS, load_dataset
from mara.curves.recipes import Recipe
from mara.curves.training import StackedWeights, shuffled_passes

CONFIG = {
    "optimizer": "adam",
    "schedule": "constant",
    "learning_rate": 0.01,
    "weight_decay": 0.0,
    "steps_per_unit": 1,
    "batch_size": 32,
    "dropout": 0.0,
    "label_noise": 0.0,
}


def recipe(group: str, seed: int, **changes: float) -> Recipe:
    name = f"{group}/{seed:02d}-0"
    return Recipe(name, "supervised", group.split("/")[0], group, {**CONFIG, **changes}, seed, "train", group)


@pytest.mark.parametrize("name", list(BUILDERS))
def test_data_sets_are_finite_standardised_and_divided(name: str) -> None:
    data = load_dataset(name)
    assert np.isfinite(data.train_x).all()
    assert np.isfinite(data.validation_x).all()
    assert 0.15 < len(data.validation_x) / (len(data.train_x) + len(data.validation_x)) < 0.45
    np.testing.assert_allclose(data.train_x.mean(0), 0, atol=1e-4)
    deviation = data.train_x.std(0)
    assert (np.isclose(deviation, 1, atol=1e-3) | (deviation < 1e-6)).all()
    if data.classification:
        assert set(np.unique(data.train_y)) == set(range(data.outputs))
    else:
        np.testing.assert_allclose(data.train_y.std(0)[data.train_y.std(0) > 1e-6], 1, atol=1e-3)


def test_generated_data_is_the_same_every_time() -> None:
    first = load_dataset("spirals")
    load_dataset.cache_clear()
    np.testing.assert_array_equal(load_dataset("spirals").train_x, first.train_x)


def test_stacked_perceptrons_compute_what_each_alone_does() -> None:
    data = load_dataset("wine")
    batch = [recipe("wine/residual-4x32-relu", seed) for seed in range(3)]
    model = mlp.StackedPerceptron(mlp.ARCHITECTURES["residual-4x32-relu"], data, batch)
    inputs = torch.from_numpy(data.validation_x)
    together = model(inputs.expand(3, -1, -1))
    for run in range(3):
        weights = [leaf[run] for leaf in model.weights.leaves]
        hidden = torch.relu(inputs @ weights[0] + weights[1])
        for layer in range(1, 4):
            hidden = hidden + torch.relu(hidden @ weights[2 * layer] + weights[2 * layer + 1])
        torch.testing.assert_close(together[run], hidden @ weights[-2] + weights[-1], rtol=1e-4, atol=1e-5)


def test_losses_are_those_of_pytorch() -> None:
    generator = torch.Generator().manual_seed(0)
    output = torch.randn(2, 5, 3, generator=generator)
    classes = torch.randint(3, (2, 5), generator=generator)
    expected = functional.cross_entropy(output.flatten(0, 1), classes.flatten(), reduction="none")
    torch.testing.assert_close(mlp.example_loss(output, classes, True).flatten(), expected)
    target = torch.randn(2, 5, 3, generator=generator)
    expected = functional.mse_loss(output, target, reduction="none").mean(-1)
    torch.testing.assert_close(mlp.example_loss(output, target, False), expected)


def test_a_run_is_not_touched_by_the_others_of_its_batch() -> None:
    """To rounding: a batch of other size may sum in another order, which is why batches are kept whole."""
    batch = [recipe("iris/mlp-1x16-tanh", seed) for seed in range(3)]
    changed = [batch[0], *[recipe("iris/mlp-1x16-tanh", seed, learning_rate=1e9) for seed in (1, 2)]]
    together = mlp.record(batch).validation_loss[0]
    np.testing.assert_array_equal(mlp.record(changed).validation_loss[0], together)
    np.testing.assert_allclose(mlp.record(batch[:1]).validation_loss[0], together, rtol=1e-3)


def test_padding_does_not_count() -> None:
    batch = [recipe("iris/linear", 0, batch_size=8), recipe("iris/linear", 1, batch_size=64)]
    order, weights = mlp.example_order(batch, 105, 50)
    assert order.shape == (2, 50, 64)
    torch.testing.assert_close(weights.sum(1), torch.ones(2))
    assert (weights[0, 8:] == 0).all()
    small = mlp.record(batch).train_loss[0]
    np.testing.assert_allclose(mlp.record(batch[:1]).train_loss[0], small, rtol=1e-3)


def test_examples_come_in_passes_and_differ_between_runs() -> None:
    first, second = (shuffled_passes(recipe("iris/linear", seed), 40, 10, 8) for seed in (0, 1))
    assert sorted(first.ravel()) == sorted([*range(40), *range(40)])
    assert not np.array_equal(first, second)


def test_dropout_keeps_the_mean_and_acts_in_training_only() -> None:
    data = load_dataset("wine")
    batch = [recipe("wine/mlp-1x64-relu", 0, dropout=0.3), recipe("wine/mlp-1x64-relu", 1)]
    model = mlp.StackedPerceptron(mlp.ARCHITECTURES["mlp-1x64-relu"], data, batch)
    inputs = torch.from_numpy(data.train_x).expand(2, -1, -1)
    with torch.no_grad():
        plain = model(inputs)
        dropped = torch.stack([model(inputs, training=True) for _ in range(400)])
    assert torch.equal(dropped[:, 1], plain[1].expand(400, -1, -1))
    assert not torch.equal(dropped[0, 0], plain[0])
    torch.testing.assert_close(dropped[:, 0].mean(0), plain[0], rtol=0.2, atol=0.2)


def test_label_noise_changes_about_its_share() -> None:
    data = load_dataset("letters")
    labels = mlp.noisy_labels(data, recipe("letters/linear", 0, label_noise=0.25)).numpy()
    assert 0.18 < (labels != data.train_y).mean() < 0.3
    clean = mlp.noisy_labels(data, recipe("letters/linear", 0)).numpy()
    np.testing.assert_array_equal(clean, data.train_y)


def test_boosting_learns_and_stops_when_it_blows_up() -> None:
    settings = {"subsample": 1.0, "max_features": 1.0, "min_samples_leaf": 1}
    batch = [
        recipe("friedman2/boosting-depth2", 0, learning_rate=0.1, **settings),
        recipe("friedman2/boosting-depth2", 1, learning_rate=1.9e3, **settings),
    ]
    recorded = boosting.record(batch)
    assert recorded.validation_loss[0, -1] < 0.2 * recorded.validation_loss[0, 0]
    assert (np.diff(recorded.train_loss[0]) <= 1e-9).all()
    assert np.isnan(recorded.validation_loss[1, -1])


@pytest.mark.parametrize("name", list(text.ARCHITECTURES))
def test_language_models_see_only_what_came_before(name: str) -> None:
    architecture = text.ARCHITECTURES[name]
    batch = [recipe(f"text_grammar/{name}", seed) for seed in range(2)]
    weights = StackedWeights(architecture.shapes(20), batch)
    characters = torch.randint(20, (2, 3, architecture.context), generator=torch.Generator().manual_seed(0))
    together = torch.func.vmap(architecture.logits)(weights.leaves, characters)
    alone = architecture.logits([leaf[1] for leaf in weights.leaves], characters[1])
    torch.testing.assert_close(together[1], alone, rtol=1e-4, atol=1e-5)
    positions = together.shape[2]
    if positions > 1:
        changed = characters.clone()
        changed[..., -1] = (changed[..., -1] + 1) % 20
        after = torch.func.vmap(architecture.logits)(weights.leaves, changed)
        torch.testing.assert_close(after[:, :, :-1], together[:, :, :-1])
        assert not torch.equal(after[:, :, -1], together[:, :, -1])


@pytest.mark.parametrize("name", list(text.TEXTS))
def test_texts_are_long_and_their_parts_disjoint(name: str) -> None:
    loaded = text.load_text(name)
    assert len(loaded.train) + len(loaded.validation) > 35_000
    assert loaded.alphabet <= text.ALPHABET
    assert max(loaded.train.max(), loaded.validation.max()) < loaded.alphabet


def test_language_models_learn() -> None:
    settings = {key: CONFIG[key] for key in CONFIG if key not in ("dropout", "label_noise")}
    batch = [
        Recipe(
            f"t/{seed}",
            "supervised",
            "text_arithmetic",
            "text_arithmetic/window-2x12-32",
            settings,
            seed,
            "test",
            "t",
        )
        for seed in range(2)
    ]
    recorded = text.record(batch)
    assert recorded.validation_loss.shape == (2, POINTS)
    assert (recorded.validation_loss[:, -1] < 0.85 * recorded.validation_loss[:, 0]).all()
