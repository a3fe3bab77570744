"""Recorder of gradient-boosted trees on tabular data; a unit is one tree (with one output a class or target).

Shapes: n examples, O outputs, N = 200 points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.tree import DecisionTreeRegressor

from mara.curves.corpus import POINTS
from mara.curves.datasets import BUILDERS, Dataset, load_dataset
from mara.curves.mlp import noisy_labels
from mara.curves.optimizers import SCHEDULES, learning_rates
from mara.curves.plan import group_recipes, group_rng
from mara.curves.recipes import Recipe, Recorded, run_seed

GROUPS_PER_DATASET = 2

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "boosting-depth1": {"max_depth": 1},
    "boosting-depth2": {"max_depth": 2},
    "boosting-depth4": {"max_depth": 4},
    "boosting-leaves24": {"max_leaf_nodes": 24},
    "boosting-random5": {"max_depth": 5, "splitter": "random"},
}


def recipes() -> list[Recipe]:
    """Two kinds of tree on each data set."""
    listed = []
    for dataset in BUILDERS:
        chosen = group_rng(f"{dataset}/boosting").permutation(list(ARCHITECTURES))[:GROUPS_PER_DATASET]
        for architecture in sorted(chosen):
            listed += group_recipes(dataset, str(architecture), _settings)
    return listed


def _settings(rng: np.random.Generator) -> dict[str, Any]:
    schedule = str(rng.choice(SCHEDULES)) if rng.random() < 0.5 else "constant"
    return {
        "optimizer": "boosting",
        "schedule": schedule,
        "learning_rate": float(f"{10 ** rng.uniform(-2.1, 0.3):.3g}"),
        "subsample": float(rng.choice([0.3, 0.6, 1.0])),
        "max_features": float(rng.choice([0.3, 1.0])),
        "min_samples_leaf": int(rng.choice([1, 5, 20])),
        "label_noise": float(rng.choice([0.0, 0.0, 0.1, 0.25])),
    }


def record(batch: list[Recipe]) -> Recorded:
    """Train the runs of a group one after the other."""
    data = load_dataset(batch[0].dataset)
    trees = ARCHITECTURES[batch[0].group.split("/")[1]]
    curves = [_boost(data, trees, recipe) for recipe in batch]
    rates = [learning_rates(recipe.config["schedule"], recipe.config["learning_rate"]) for recipe in batch]
    train_loss, validation_loss = np.array(curves).transpose(1, 0, 2)
    return Recorded(train_loss, validation_loss, np.stack(rates))


def _boost(data: Dataset, trees: dict[str, Any], recipe: Recipe) -> NDArray[np.float64]:
    """Training and validation loss (2, N) of one run.

    Each tree fits the negative gradient of the loss with respect to the outputs on a random share of the
    examples. For classes it is doubled: half the inverse curvature of a logit at probability one half.
    """
    config = recipe.config
    rates = learning_rates(config["schedule"], config["learning_rate"])
    labels = noisy_labels(data, recipe).numpy()
    rng = np.random.default_rng(run_seed(recipe, "order"))
    kept = max(2, round(config["subsample"] * len(labels)))
    train_output = np.zeros((len(labels), data.outputs))
    held_output = np.zeros((len(data.validation_y), data.outputs))
    curve = np.full((2, POINTS), np.nan)
    for point in range(POINTS):
        if point:
            chosen = rng.choice(len(labels), kept, replace=False)
            gradient = _negative_gradient(train_output[chosen], labels[chosen], data.classification)
            tree = DecisionTreeRegressor(
                **trees,
                max_features=config["max_features"],
                min_samples_leaf=config["min_samples_leaf"],
                random_state=int(rng.integers(2**31)),
            )
            tree.fit(data.train_x[chosen], gradient)
            train_output += rates[point] * tree.predict(data.train_x).reshape(train_output.shape)
            held_output += rates[point] * tree.predict(data.validation_x).reshape(held_output.shape)
        curve[0, point] = _loss(train_output, labels, data.classification)
        curve[1, point] = _loss(held_output, data.validation_y, data.classification)
        if not np.abs(train_output).max() < 1e12:
            break
    return curve


def _negative_gradient(output: NDArray, labels: NDArray, classification: bool) -> NDArray:
    if classification:
        return 2 * (np.eye(output.shape[1])[labels] - softmax(output, axis=1))
    return labels - output


def _loss(output: NDArray, labels: NDArray, classification: bool) -> float:
    if classification:
        return float(-log_softmax(output, axis=1)[np.arange(len(labels)), labels].mean())
    return float(np.square(output - labels).mean())
