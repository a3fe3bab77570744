"""The image data sets of the vision family: scikit-learn's digits and images made by rule.

Each data set is a fixed sample: the same name always gives the same images. Tasks differ in kind (classes,
numbers, masks, whole images) and in geometry: some are learned at once, some after a plateau, some hardly.

Shapes: T training and V validation images, C channels, H x W pixels, K outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_digits

TRAIN_SIZE = 1200
VALID_SIZE = 160
_SIZE = TRAIN_SIZE + VALID_SIZE

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ImageData:
    """A data set; pixels have zero mean and unit variance over the data set."""

    train_x: NDArray[np.float32]
    """(T, C, H, W)"""
    train_y: NDArray
    """(T,) int64 classes, (T, K) float32 numbers, or (T, K, H, W) float32 images or masks in 0..1."""
    valid_x: NDArray[np.float32]
    valid_y: NDArray
    kind: str
    """"classes", "numbers", "image" or "mask": the meaning of y and hence the loss."""
    outputs: int
    """K"""

    @property
    def dense(self) -> bool:
        """Whether there is an output at every pixel."""
        return self.kind in ("image", "mask")


@cache
def image_data(name: str) -> ImageData:
    """Return the data set of that name; raises ``KeyError`` for a name not in ``IMAGE_DATA``."""
    make, kind = IMAGE_DATA[name]
    rng = np.random.default_rng([8153, *name.encode()])
    x, y = make(rng)
    order = rng.permutation(len(x))[:_SIZE]
    x, y = x[order], y[order]
    x = ((x - x.mean()) / x.std()).astype(np.float32)
    if kind == "classes":
        y, outputs = y.astype(np.int64), int(y.max()) + 1
    else:
        y, outputs = y.astype(np.float32), y.shape[1]
    return ImageData(x[VALID_SIZE:], y[VALID_SIZE:], x[:VALID_SIZE], y[:VALID_SIZE], kind, outputs)


# From scikit-learn's digits


def _digit_images() -> tuple[Array, NDArray]:
    images, labels = load_digits(return_X_y=True)
    return images.reshape(-1, 1, 8, 8) / 16.0, labels


def _digits(rng: np.random.Generator) -> tuple[Array, NDArray]:
    """Ten classes of handwritten digits, 8 x 8."""
    return _digit_images()


def _digits_denoise(rng: np.random.Generator) -> tuple[Array, NDArray]:
    """Digits under strong noise; the clean image is asked for."""
    images, _ = _digit_images()
    return images + rng.normal(0.0, 0.5, images.shape), images


def _digit_pairs(rng: np.random.Generator) -> tuple[Array, NDArray]:
    """Two digits side by side, 8 x 16: is the left one larger?"""
    images, labels = _digit_images()
    left, right = rng.integers(0, len(images), (2, _SIZE))
    return np.concatenate([images[left], images[right]], axis=3), labels[left] > labels[right]


# Made by rule


def _grid(size: int) -> tuple[Array, Array]:
    """Row and column coordinates (size, size) in -1..1."""
    axis = np.linspace(-1.0, 1.0, size)
    rows, columns = np.meshgrid(axis, axis, indexing="ij")
    return rows, columns


def _outline(shape: int, rows: Array, columns: Array) -> Array:
    """Return a mask (..., H, W) of one of six shapes: disc, square, triangle, cross, ring, bar."""
    radius = np.hypot(rows, columns)
    square = np.maximum(np.abs(rows), np.abs(columns))
    inside = [
        radius < 1.0,
        square < 0.85,
        (rows < 0.7) & (rows > 2.0 * np.abs(columns) - 1.0),
        (square < 1.0) & (np.minimum(np.abs(rows), np.abs(columns)) < 0.35),
        (radius < 1.05) & (radius > 0.55),
        (np.abs(rows) < 0.35) & (np.abs(columns) < 1.1),
    ]
    return inside[shape].astype(np.float64)


def _placed_shape(shape: int, rng: np.random.Generator, scales: tuple[float, float] = (0.35, 0.65)) -> Array:
    """Return the mask (12, 12) of a shape at a random place, scale and angle."""
    rows, columns = _grid(12)
    scale = rng.uniform(*scales)
    row, column = rng.uniform(-0.9 + scale, 0.9 - scale, 2)
    angle = rng.uniform(-0.6, 0.6)
    down, right = (rows - row) / scale, (columns - column) / scale
    return _outline(
        shape, np.cos(angle) * down - np.sin(angle) * right, np.sin(angle) * down + np.cos(angle) * right
    )


def _shapes(rng: np.random.Generator) -> tuple[Array, NDArray]:
    """Six shapes, 12 x 12, bright or dim, under noise."""
    labels = rng.integers(0, 6, _SIZE)
    masks = np.stack([_placed_shape(label, rng, (0.45, 0.75)) for label in labels])
    contrast = rng.uniform(0.6, 1.4, (_SIZE, 1, 1))
    return (contrast * masks + rng.normal(0.0, 0.15, masks.shape))[:, None], labels


def _textured(sigma: tuple[float, float], count: int, size: int, rng: np.random.Generator) -> Array:
    """Return noise fields (count, size, size) of unit variance, smoothed with the given widths."""
    field = gaussian_filter(rng.standard_normal((count, size, size)), (0.0, *sigma), mode="wrap")
    return field / field.std(axis=(1, 2), keepdims=True)


def _textures(rng: np.random.Generator) -> tuple[Array, NDArray]:
    """Six random textures, 12 x 12, that differ in grain and direction only."""
    grains = ((0.0, 0.0), (0.5, 0.5), (0.8, 0.8), (1.3, 0.4), (0.4, 1.3), (1.3, 1.3))
    labels = np.repeat(np.arange(len(grains)), _SIZE // len(grains) + 1)
    fields = np.concatenate([_textured(grain, _SIZE // len(grains) + 1, 12, rng) for grain in grains])
    return (fields + rng.normal(0.0, 0.3, fields.shape))[:, None], labels


def _gratings(rng: np.random.Generator) -> tuple[Array, NDArray]:
    """Gratings of any angle, phase and pitch, 12 x 12; the doubled angle's cosine and sine are asked for."""
    rows, columns = _grid(12)
    ranges = ((0.0, np.pi), (0.0, 2 * np.pi), (4.0, 9.0))
    angle, phase, pitch = (rng.uniform(low, high, (_SIZE, 1, 1)) for low, high in ranges)
    wave = np.sin(pitch * (np.cos(angle) * columns + np.sin(angle) * rows) + phase)
    target = np.concatenate([np.cos(2 * angle), np.sin(2 * angle)], axis=1)[:, :, 0]
    return (wave + rng.normal(0.0, 0.7, wave.shape))[:, None], target


def _signals(rng: np.random.Generator) -> tuple[Array, NDArray]:
    """Ten one-dimensional patterns, shifted, stretched, sheared and noisy, drawn as 10 x 20 images."""
    knots = np.random.default_rng(77).normal(0.0, 1.0, (10, 7))
    labels = rng.integers(0, 10, _SIZE)
    column = np.linspace(0.0, 1.0, 20)
    height = np.empty((_SIZE, 20))
    for row, label in enumerate(labels):
        start, stop = rng.uniform(0.0, 0.3), rng.uniform(0.7, 1.0)
        pattern = np.interp(column, np.linspace(start, stop, 7), knots[label], left=0.0, right=0.0)
        height[row] = rng.uniform(0.7, 1.3) * pattern + rng.uniform(-0.7, 0.7) * (column - 0.5)
    height += rng.normal(0.0, 0.15, height.shape)
    level = np.linspace(-2.2, 2.2, 10)[None, :, None]
    return np.exp(-(((level - height[:, None, :]) / 0.35) ** 2))[:, None], labels


def _counting(rng: np.random.Generator) -> tuple[Array, NDArray]:
    """One to eight blobs, 12 x 12, some overlapping; their number is asked for."""
    rows, columns = _grid(12)
    count = rng.integers(1, 9, _SIZE)
    images = np.zeros((_SIZE, 12, 12))
    for image, blobs in zip(images, count, strict=True):
        for row, column, width in rng.uniform((-0.9, -0.9, 0.12), (0.9, 0.9, 0.22), (blobs, 3)):
            image += np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / width**2)
    images += rng.normal(0.0, 0.15, images.shape)
    return images[:, None], ((count - 4.5) / 2.3)[:, None]


def _same_or_not(rng: np.random.Generator) -> tuple[Array, NDArray]:
    """Two patches of 6 x 6 of black and white cells side by side: are they the same?"""
    left, right = np.sign(rng.standard_normal((2, _SIZE, 3, 3)))
    labels = rng.integers(0, 2, _SIZE)
    right = np.where(labels[:, None, None] == 1, left, right)
    pairs = np.concatenate([left, right], axis=2).repeat(2, axis=1).repeat(2, axis=2)
    return (pairs + rng.normal(0.0, 0.3, pairs.shape))[:, None], labels


def _segmentation(rng: np.random.Generator) -> tuple[Array, NDArray]:
    """A shape of one texture on another texture, 12 x 12; its mask is asked for."""
    masks = np.stack([_placed_shape(int(rng.integers(0, 6)), rng) for _ in range(_SIZE)])
    fine, coarse = _textured((0.3, 0.3), _SIZE, 12, rng), _textured((1.2, 1.2), _SIZE, 12, rng)
    return (np.where(masks > 0, fine, coarse) + 0.5 * masks)[:, None], masks[:, None]


def _deblurring(rng: np.random.Generator) -> tuple[Array, NDArray]:
    """Scenes of three shapes, 12 x 12, blurred and noisy; the sharp scene is asked for."""
    scenes = np.zeros((_SIZE, 12, 12))
    for scene in scenes:
        for shape, contrast in zip(rng.integers(0, 6, 3), rng.uniform(-1.0, 1.0, 3), strict=True):
            scene += contrast * _placed_shape(int(shape), rng)
    blurred = gaussian_filter(scenes, (0.0, 0.9, 0.9)) + rng.normal(0.0, 0.03, scenes.shape)
    return blurred[:, None], scenes[:, None]


IMAGE_DATA: dict[str, tuple[Callable[[np.random.Generator], tuple[Array, NDArray]], str]] = {
    "digits": (_digits, "classes"),
    "digit_pairs": (_digit_pairs, "classes"),
    "digits_denoise": (_digits_denoise, "image"),
    "shapes": (_shapes, "classes"),
    "textures": (_textures, "classes"),
    "gratings": (_gratings, "numbers"),
    "signals": (_signals, "classes"),
    "counting": (_counting, "numbers"),
    "same_or_not": (_same_or_not, "classes"),
    "segmentation": (_segmentation, "mask"),
    "deblurring": (_deblurring, "image"),
}
"""Each data set's maker, which gives images (>= T + V, C, H, W) and answers, and its kind."""
