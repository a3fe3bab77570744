"""Tabular data sets of the supervised family: bundled with scikit-learn or generated.

Every generated set comes from a generator seeded by its name, and so does the division into training and
validation examples; they are the same in all runs. Inputs and regression targets are standardised with the
training examples' mean and deviation, so that the loss before training is about 1 (squared error) or log K.

Shapes: n examples, F features, O outputs (classes, or targets of a regression).
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as bundled

Raw = tuple[NDArray, NDArray]
"""Features (n, F) and either classes (n,) of integers or targets (n,) or (n, O) of floats."""

MAXIMUM_TRAIN = 1000
MAXIMUM_VALIDATION = 400


@dataclass(frozen=True)
class Dataset:
    """One data set, divided and standardised."""

    name: str
    classification: bool
    outputs: int
    """Classes, or targets of a regression."""
    train_x: NDArray[np.float32]
    """(n, F)."""
    train_y: NDArray
    """(n,) int64 classes or (n, O) float32 targets."""
    validation_x: NDArray[np.float32]
    validation_y: NDArray


@functools.cache
def load_dataset(name: str) -> Dataset:
    """Build the data set of that name.

    Raises:
        KeyError: if there is none.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    features, labels = BUILDERS[name](rng)
    features = np.asarray(features, dtype=np.float64)
    order = rng.permutation(len(features))
    validation = min(MAXIMUM_VALIDATION, round(0.3 * len(features)))
    held, kept = order[:validation], order[validation : validation + MAXIMUM_TRAIN]
    classification = np.issubdtype(labels.dtype, np.integer)
    scaled = _standardise(features, kept).astype(np.float32)
    if classification:
        target, outputs = labels.astype(np.int64), int(labels.max()) + 1
    else:
        target = _standardise(labels.reshape(len(labels), -1).astype(np.float64), kept).astype(np.float32)
        outputs = target.shape[1]
    return Dataset(name, classification, outputs, scaled[kept], target[kept], scaled[held], target[held])


def _standardise(values: NDArray, fitted_on: NDArray) -> NDArray:
    mean, deviation = values[fitted_on].mean(0), values[fitted_on].std(0)
    return (values - mean) / np.where(deviation > 1e-9, deviation, 1.0)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _mixed(columns: NDArray, dimensions: int, noise: float, rng: np.random.Generator) -> NDArray:
    """Hide a few columns in more dimensions: noise columns, then a random rotation."""
    padded = np.concatenate(
        [columns, noise * rng.normal(size=(len(columns), dimensions - columns.shape[1]))], 1
    )
    rotation, _ = np.linalg.qr(rng.normal(size=(dimensions, dimensions)))
    return padded @ rotation


def _classification(**settings: Any) -> Callable[[np.random.Generator], Raw]:
    return lambda rng: bundled.make_classification(n_samples=1200, random_state=_seed(rng), **settings)


def _digits_halves(rng: np.random.Generator) -> Raw:
    """Lower half of a digit's image from the upper half."""
    images = bundled.load_digits().data
    return images[:, :32], images[:, 32:]


def _wine_colour(rng: np.random.Generator) -> Raw:
    """Colour intensity of a wine from its other measurements."""
    table = bundled.load_wine().data
    return np.delete(table, 9, axis=1), table[:, 9]


def _moons(rng: np.random.Generator) -> Raw:
    points, labels = bundled.make_moons(1200, noise=0.2, random_state=_seed(rng))
    return _mixed(points, 10, 0.3, rng), labels


def _circles(rng: np.random.Generator) -> Raw:
    points, labels = bundled.make_circles(1200, noise=0.08, factor=0.6, random_state=_seed(rng))
    return _mixed(points, 5, 0.3, rng), labels


def _blobs(rng: np.random.Generator) -> Raw:
    points, labels = bundled.make_blobs(1200, 8, centers=6, cluster_std=4.0, random_state=_seed(rng))
    return points, labels


def _spirals(rng: np.random.Generator) -> Raw:
    labels = rng.integers(3, size=1400)
    radius = np.sqrt(rng.uniform(0.02, 1, 1400))
    angle = 2 * np.pi * labels / 3 + 5 * radius + rng.normal(0, 0.15, 1400)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1), labels


def _parity(bits: int, distractors: int) -> Callable[[np.random.Generator], Raw]:
    """Whether an even number of the first bits is set; sums of fewer bits say nothing about it."""

    def build(rng: np.random.Generator) -> Raw:
        table = rng.integers(2, size=(1400, bits + distractors))
        return 2.0 * table - 1, table[:, :bits].sum(1) % 2

    return build


def _checkerboard(rng: np.random.Generator) -> Raw:
    points = rng.uniform(0, 4, size=(1400, 2))
    labels = points.astype(int).sum(1) % 2
    return np.concatenate([points, rng.normal(size=(1400, 2))], 1), labels


def _quantiles(rng: np.random.Generator) -> Raw:
    return bundled.make_gaussian_quantiles(n_samples=1200, n_features=6, n_classes=4, random_state=_seed(rng))


def _hastie(rng: np.random.Generator) -> Raw:
    points, labels = bundled.make_hastie_10_2(1400, random_state=_seed(rng))
    return points, (labels > 0).astype(np.int64)


def _shells(rng: np.random.Generator) -> Raw:
    labels = rng.integers(5, size=1400)
    direction = rng.normal(size=(1400, 4))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * (1 + labels + rng.normal(0, 0.2, 1400))[:, None], labels


def _swiss_roll(rng: np.random.Generator) -> Raw:
    points, along = bundled.make_swiss_roll(1400, noise=0.6, random_state=_seed(rng))
    return points, np.digitize(along, np.quantile(along, [0.2, 0.4, 0.6, 0.8]))


def _modular(rng: np.random.Generator) -> Raw:
    """(a + b) mod 17 from one-hot a and b: memorised first, understood late or never."""
    a, b = np.divmod(np.arange(17 * 17), 17)
    return np.concatenate([np.eye(17)[a], np.eye(17)[b]], 1), (a + b) % 17


def _letters(rng: np.random.Generator) -> Raw:
    """26 classes around random prototypes of 16 coarse features, each seen with shift and clutter."""
    prototypes = rng.integers(0, 4, size=(26, 3, 16))
    labels = rng.integers(26, size=1400)
    style = rng.integers(3, size=1400)
    return prototypes[labels, style] + rng.normal(0, 0.8, size=(1400, 16)), labels


def _friedman(number: int, noise: float) -> Callable[[np.random.Generator], Raw]:
    make = {1: bundled.make_friedman1, 2: bundled.make_friedman2, 3: bundled.make_friedman3}[number]
    return lambda rng: make(n_samples=1200, noise=noise, random_state=_seed(rng))


def _low_rank(rng: np.random.Generator) -> Raw:
    return bundled.make_regression(
        1000, 40, n_informative=15, effective_rank=8, tail_strength=0.4, noise=0.3, random_state=_seed(rng)
    )


def _sparse(rng: np.random.Generator) -> Raw:
    return bundled.make_sparse_uncorrelated(700, 60, random_state=_seed(rng))


def _teacher(layers: int, width: int, activation: Callable[[NDArray], NDArray]) -> Callable[..., Raw]:
    """Outputs of a random network."""

    def build(rng: np.random.Generator) -> Raw:
        hidden = features = rng.normal(size=(1400, 12))
        for _ in range(layers):
            weights = rng.normal(size=(hidden.shape[1], width)) * np.sqrt(2 / hidden.shape[1])
            hidden = activation(hidden @ weights + 0.3 * rng.normal(size=width))
        target = hidden @ rng.normal(size=(width, 3)) / np.sqrt(width)
        return features, target + 0.1 * target.std() * rng.normal(size=target.shape)

    return build


def _waves(rng: np.random.Generator) -> Raw:
    """A sum of sines over one coordinate: low frequencies are learnt first."""
    position = rng.uniform(-1, 1, size=(1200, 1))
    target = sum(np.sin(np.pi * frequency * position[:, 0] + frequency) for frequency in (1, 2, 4, 7, 11))
    return np.concatenate([position, position**2], 1), np.asarray(target) + 0.05 * rng.normal(size=1200)


def _stairs(rng: np.random.Generator) -> Raw:
    points = rng.uniform(-1, 1, size=(1200, 6))
    target = np.floor(3 * points[:, 0]) + 2 * (points[:, 1] * points[:, 2] > 0) + (points[:, 3] > 0.5)
    return points, target + 0.2 * rng.normal(size=1200)


def _products(rng: np.random.Generator) -> Raw:
    points = rng.normal(size=(1400, 10))
    target = points[:, 0] * points[:, 1] + points[:, 2] * points[:, 3] * points[:, 4]
    return points, target + 0.1 * rng.normal(size=1400)


def _heavy_tails(rng: np.random.Generator) -> Raw:
    points = rng.normal(size=(1000, 15))
    return points, points @ rng.normal(size=15) + 2 * rng.standard_t(2.5, size=1000)


def _s_curve(rng: np.random.Generator) -> Raw:
    points, along = bundled.make_s_curve(1200, noise=0.15, random_state=_seed(rng))
    return _mixed(points, 8, 0.5, rng), np.sin(3 * along) + 0.3 * along


def _pendulum(rng: np.random.Generator) -> Raw:
    """State of a damped pendulum after two seconds, from its state now (60 Euler steps)."""
    start = np.stack([rng.uniform(-3, 3, 1400), rng.uniform(-4, 4, 1400)], 1)
    angle, speed = start.T.copy()
    for _ in range(60):
        angle, speed = angle + speed / 30, speed - (9.8 * np.sin(angle) + 0.3 * speed) / 30
    return np.stack([np.sin(start[:, 0]), np.cos(start[:, 0]), start[:, 1]], 1), np.stack(
        [np.sin(angle), np.cos(angle), speed], 1
    )


def _relu(values: NDArray) -> NDArray:
    return np.maximum(values, 0)


BUILDERS: dict[str, Callable[[np.random.Generator], Raw]] = {
    # bundled with scikit-learn
    "digits": lambda rng: (bundled.load_digits().data, bundled.load_digits().target),
    "digits_halves": _digits_halves,
    "wine": lambda rng: (bundled.load_wine().data, bundled.load_wine().target),
    "wine_colour": _wine_colour,
    "breast_cancer": lambda rng: (bundled.load_breast_cancer().data, bundled.load_breast_cancer().target),
    "iris": lambda rng: (bundled.load_iris().data, bundled.load_iris().target),
    "diabetes": lambda rng: (bundled.load_diabetes().data, bundled.load_diabetes().target),
    # generated, classification
    "gaussians_easy": _classification(n_features=20, n_informative=8, n_classes=3, class_sep=2.0),
    "gaussians_hard": _classification(n_features=20, n_informative=5, class_sep=0.5, flip_y=0.08),
    "gaussians_many": _classification(
        n_features=30, n_informative=12, n_classes=10, n_clusters_per_class=1, class_sep=1.5
    ),
    "gaussians_wide": _classification(n_features=150, n_informative=6, n_redundant=20, class_sep=1.0),
    "gaussians_clusters": _classification(
        n_features=12, n_informative=6, n_clusters_per_class=8, class_sep=1.2
    ),
    "gaussians_rare": _classification(n_features=15, n_informative=6, weights=[0.93], class_sep=0.8),
    "blobs": _blobs,
    "moons": _moons,
    "circles": _circles,
    "spirals": _spirals,
    "parity3": _parity(3, 9),
    "parity5": _parity(5, 3),
    "checkerboard": _checkerboard,
    "quantiles": _quantiles,
    "hastie": _hastie,
    "shells": _shells,
    "swiss_roll": _swiss_roll,
    "modular": _modular,
    "letters": _letters,
    # generated, regression
    "friedman1": _friedman(1, 1.0),
    "friedman2": _friedman(2, 60.0),
    "friedman3": _friedman(3, 0.05),
    "low_rank": _low_rank,
    "sparse": _sparse,
    "teacher_tanh": _teacher(1, 24, np.tanh),
    "teacher_relu": _teacher(3, 20, _relu),
    "waves": _waves,
    "stairs": _stairs,
    "products": _products,
    "heavy_tails": _heavy_tails,
    "s_curve": _s_curve,
    "pendulum": _pendulum,
}
