"""Recorder of small character language models; the loss is the cross-entropy of the next character in nats.

Texts are bundled with Python and scikit-learn or generated. All runs of a group train side by side: a model
is written for one run and vectorised over the runs.

Shapes: R runs, B excerpts of a step (padded to the largest batch size), T characters of context, V characters
of the alphabet.
"""

from __future__ import annotations

import argparse
import collections
import difflib
import functools
import inspect
import json.decoder
import pydoc_data.topics
import textwrap
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from mara.curves.corpus import POINTS
from mara.curves.optimizers import draw_settings
from mara.curves.plan import group_recipes, group_rng
from mara.curves.recipes import Recipe, Recorded
from mara.curves.training import Shape, StackedWeights, shuffled_passes, train

LENGTH = 60_000
ALPHABET = 48
VALIDATION_EXCERPTS = 40
BATCH_SIZES = (4, 8, 16, 24)
STEPS_PER_UNIT = (1, 2, 4)


def _descriptions() -> str:
    """scikit-learn's descriptions of its data sets."""
    folder = Path(sklearn.datasets.__file__).parent / "descr"
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.rst")))


def _topics() -> str:
    """Python's language reference as ``help()`` shows it."""
    topics = pydoc_data.topics.topics
    return "\n".join(topics[name] for name in sorted(topics))[:LENGTH]


def _code() -> str:
    """Sources of a few modules of Python's standard library."""
    modules = (json.decoder, textwrap, difflib, collections, argparse)
    return "\n".join(inspect.getsource(module) for module in modules)[:LENGTH]


def _arithmetic() -> str:
    """Sums of two numbers with their results."""
    pairs = np.random.default_rng(1).integers(0, 100, size=(LENGTH // 8, 2))
    return "".join(f"{a}+{b}={a + b}\n" for a, b in pairs)[:LENGTH]


def _brackets() -> str:
    """Well-nested brackets of four kinds, with labels that must agree."""
    rng = np.random.default_rng(2)
    pairs = (("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"))
    text: list[str] = []
    pending: list[str] = []
    while len(text) < LENGTH:
        if pending and (len(pending) >= 6 or rng.random() < 0.5):
            text.append(pending.pop())
        else:
            opening, closing = pairs[rng.integers(4)]
            label = "abcdefgh"[rng.integers(8)]
            text += [opening, label]
            pending.append(label + closing)
    return "".join(text)[:LENGTH]


def _grammar() -> str:
    """Sentences of a small grammar whose verbs agree with their subjects, over made-up words."""
    rng = np.random.default_rng(3)
    syllables = ["ka", "lo", "mi", "ren", "tus", "ve", "sha", "por", "di", "nuk", "el", "gri"]
    words = [
        ["".join(rng.choice(syllables, rng.integers(1, 4))) for _ in range(count)] for count in (40, 25, 15)
    ]
    chances = [1 / np.arange(1, len(kind) + 1) for kind in words]
    text: list[str] = []
    while sum(map(len, text)) < LENGTH:
        noun, verb, other = (
            str(rng.choice(kind, p=chance / chance.sum()))
            for kind, chance in zip(words, chances, strict=True)
        )
        plural = rng.random() < 0.4
        subject = f"the {noun}{'s' if plural else ''}"
        text.append(
            f"{subject} {'very ' if rng.random() < 0.3 else ''}{verb}{'' if plural else 'es'} {other}. "
        )
    return "".join(text)[:LENGTH]


TEXTS = {
    "text_descriptions": _descriptions,
    "text_topics": _topics,
    "text_code": _code,
    "text_arithmetic": _arithmetic,
    "text_brackets": _brackets,
    "text_grammar": _grammar,
}


@dataclass(frozen=True)
class Architecture:
    """A language model of one run."""

    context: int
    """T."""
    shapes: Callable[[int], list[Shape]]
    """Weights for an alphabet of V."""
    logits: Callable[[Sequence[Tensor], Tensor], Tensor]
    """(weights, characters (B, T)) -> logits (B, S, V) of the characters after the last S positions."""


def _fan(*shape: int) -> Shape:
    return shape, (3 / shape[0]) ** 0.5


def _window(context: int, width: int, hidden: int) -> Architecture:
    """A perceptron on the last characters' embeddings."""

    def shapes(alphabet: int) -> list[Shape]:
        return [
            ((alphabet, width), 1.0),
            _fan(context * width, hidden),
            ((hidden,), 0.0),
            _fan(hidden, alphabet),
            ((alphabet,), 0.0),
        ]

    def logits(weights: Sequence[Tensor], characters: Tensor) -> Tensor:
        table, first, first_bias, last, last_bias = weights
        seen = functional.embedding(characters, table).flatten(1)
        return (torch.relu(seen @ first + first_bias) @ last + last_bias)[:, None]

    return Architecture(context, shapes, logits)


def _recurrent(context: int, hidden: int) -> Architecture:
    """A tanh recurrent network."""

    def shapes(alphabet: int) -> list[Shape]:
        return [
            ((alphabet, hidden), 1.0),
            ((hidden, hidden), (1.5 / hidden) ** 0.5),
            _fan(hidden, alphabet),
            ((alphabet,), 0.0),
        ]

    def logits(weights: Sequence[Tensor], characters: Tensor) -> Tensor:
        table, carry, last, last_bias = weights
        inputs = functional.embedding(characters, table)
        state = torch.zeros_like(inputs[:, 0])
        states = []
        for position in range(context):
            state = torch.tanh(inputs[:, position] + state @ carry)
            states.append(state)
        return torch.stack(states, 1) @ last + last_bias

    return Architecture(context, shapes, logits)


def _attention(context: int, width: int, heads: int) -> Architecture:
    """One transformer block with pre-normalisation."""

    def shapes(alphabet: int) -> list[Shape]:
        return [
            ((alphabet, width), 1.0),
            ((context, width), 0.3),
            _fan(width, 3 * width),
            _fan(width, width),
            _fan(width, 4 * width),
            _fan(4 * width, width),
            _fan(width, alphabet),
        ]

    def logits(weights: Sequence[Tensor], characters: Tensor) -> Tensor:
        table, places, mixed, joined, wide, narrow, last = weights
        hidden = functional.embedding(characters, table) + places
        count = len(characters)
        query, key, value = (
            part.view(count, context, heads, width // heads).transpose(1, 2)
            for part in (functional.layer_norm(hidden, (width,)) @ mixed).chunk(3, -1)
        )
        scores = query @ key.transpose(-1, -2) / (width // heads) ** 0.5
        future = torch.ones(context, context, dtype=torch.bool).triu(1)
        seen = scores.masked_fill(future, -torch.inf).softmax(-1) @ value
        hidden = hidden + seen.transpose(1, 2).reshape(count, context, width) @ joined
        hidden = hidden + torch.relu(functional.layer_norm(hidden, (width,)) @ wide) @ narrow
        return functional.layer_norm(hidden, (width,)) @ last

    return Architecture(context, shapes, logits)


ARCHITECTURES = {
    "window-2x12-32": _window(2, 12, 32),
    "window-6x16-96": _window(6, 16, 96),
    "recurrent-40": _recurrent(12, 40),
    "attention-24": _attention(16, 24, 2),
    "attention-40": _attention(24, 40, 4),
}


@dataclass(frozen=True)
class Text:
    """A text as numbers of characters."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    alphabet: int


@functools.cache
def load_text(name: str) -> Text:
    """The text of that name; its last tenth is for validation.

    Characters beyond the commonest 47 count as one.
    """
    text = TEXTS[name]()[:LENGTH].lower()
    common = [character for character, _ in collections.Counter(text).most_common(ALPHABET - 1)]
    numbers = {character: number for number, character in enumerate(sorted(common))}
    codes = np.array([numbers.get(character, len(numbers)) for character in text])
    cut = len(codes) * 9 // 10
    return Text(codes[:cut], codes[cut:], len(numbers) + 1)


def recipes() -> list[Recipe]:
    """Every architecture on each text."""
    listed = []
    for dataset in TEXTS:
        for architecture in ARCHITECTURES:
            steps = int(group_rng(f"{dataset}/{architecture}/unit").choice(STEPS_PER_UNIT))
            listed += group_recipes(dataset, architecture, functools.partial(_settings, steps))
    return listed


def _settings(steps: int, rng: np.random.Generator) -> dict[str, Any]:
    return {
        **draw_settings(rng),
        "steps_per_unit": steps,
        "batch_size": int(rng.choice(BATCH_SIZES)),
    }


def record(batch: list[Recipe]) -> Recorded:
    """Train all runs of a group together."""
    text = load_text(batch[0].dataset)
    architecture = ARCHITECTURES[batch[0].group.split("/")[1]]
    weights = StackedWeights(architecture.shapes(text.alphabet), batch)
    logits = torch.func.vmap(architecture.logits)
    span = architecture.context + 1
    sizes = [recipe.config["batch_size"] for recipe in batch]
    steps = batch[0].config["steps_per_unit"] * (POINTS - 1)
    places = np.zeros((len(batch), steps, max(sizes)), dtype=np.int64)
    shares = torch.zeros(len(batch), max(sizes))
    for run, (recipe, size) in enumerate(zip(batch, sizes, strict=True)):
        places[run, :, :size] = shuffled_passes(recipe, len(text.train) - span, steps, size)
        shares[run, :size] = 1 / size
    excerpts = torch.from_numpy(np.lib.stride_tricks.sliding_window_view(text.train, span).copy())
    held = np.lib.stride_tricks.sliding_window_view(text.validation, span)
    held_rng = np.random.default_rng(zlib.crc32(batch[0].dataset.encode()))
    count = VALIDATION_EXCERPTS * (12 if span <= 8 else 1)
    held_excerpts = torch.from_numpy(held[held_rng.choice(len(held), count)]).expand(len(batch), -1, -1)
    order = torch.from_numpy(places)

    def losses(chosen: Tensor) -> Tensor:
        """Mean loss (R, B) of excerpts (R, B, T + 1)."""
        output = logits(weights.leaves, chosen[..., :-1])
        target = chosen[..., -output.shape[2] :]
        return (output.logsumexp(-1) - output.gather(-1, target[..., None])[..., 0]).mean(-1)

    def validate() -> Tensor:
        return losses(held_excerpts).mean(1)

    def start() -> Tensor:
        return (losses(excerpts[order[:, 0]]) * shares).sum(1)

    def step_loss(step: int) -> Tensor:
        return (losses(excerpts[order[:, step]]) * shares).sum(1)

    return train(batch, weights, start, step_loss, validate)
