"""Training examples: prefixes of recorded curves, of altered copies of them, and of synthetic curves.

Alterations keep what a curve is but move it to other shapes that are as likely: another floor under the loss,
another power of the loss. They cost nothing and make few recorded groups go farther.

Shapes: C curves, N points a curve, B examples, K knots.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mara.config.flow import ExampleSettings
from mara.curves.corpus import Corpus, concatenate
from mara.curves.synthetic import draw_curves
from mara.predictors.examples import Examples, draw_examples
from mara.predictors.flow.calibration import NO_GROUP
from mara.predictors.flow.features import Description, describe
from mara.predictors.flow.trajectory import future_knots
from mara.predictors.forecast import Query


@dataclass(frozen=True)
class Prefixes:
    """B prefixes with what came after them.

    description: what is known of each prefix.
    future: (B, K) knots after it, NaN beyond the end of the curve.
    curve: (B,) row of the curve; length: (B,) points of the prefix.
    """

    description: Description
    future: NDArray[np.float32]
    curve: NDArray[np.int64]
    length: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.future)


def draw_lengths(count: int, longest: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Prefix lengths (count,) in 1..longest: half uniform, half log-uniform."""
    even = rng.uniform(1.0, longest + 1.0, count)
    skewed = np.exp(rng.uniform(0.0, np.log(longest + 1.0), count))
    return np.where(rng.random(count) < 0.5, even, skewed).astype(np.int64)


def alter(corpus: Corpus, settings: ExampleSettings, rng: np.random.Generator) -> Corpus:
    """An altered copy of every curve: loss' = (loss + c)**p, with one c and p for all curves of a group.

    c lies between -0.9 and a few times the group's lowest loss, so runs of a group still go to like places.
    """
    names, code = np.unique(corpus.group, return_inverse=True)
    lowest = np.full(len(names), np.inf)
    np.minimum.at(lowest, code, np.nanmin(corpus.loss, axis=1))
    lifted = np.exp(rng.uniform(np.log(0.05), np.log(settings.highest_floor), len(names)))
    share = np.where(rng.random(len(names)) < 0.5, lifted, -rng.uniform(0.0, 0.9, len(names)))
    power = np.exp(rng.normal(0.0, settings.power_spread, len(names)))
    relative = corpus.loss / lowest[code, None] + share[code, None]
    tag = f"~{rng.integers(2**31)}"
    return replace(
        corpus,
        id=np.char.add(corpus.id, tag),
        group=np.char.add(corpus.group, tag),
        loss=(relative ** power[code, None]).astype(np.float32),
    )


def training_corpus(
    corpus: Corpus, settings: ExampleSettings, rng: np.random.Generator
) -> tuple[Corpus, int]:
    """The curves to fit on: recorded, altered, synthetic; and how many of them are not synthetic."""
    recorded = corpus.of(split="train", part="predictor")
    copies = [alter(recorded, settings, rng) for _ in range(settings.altered_copies)]
    synthetic = draw_curves(settings.synthetic_curves, rng)
    return concatenate([recorded, *copies, synthetic]), len(recorded) * (1 + len(copies))


def draw_prefixes(
    curves: Corpus, recorded: int, settings: ExampleSettings, count: int, rng: np.random.Generator
) -> Prefixes:
    """``count`` prefixes of ``curves``, the first ``recorded`` of which are no synthetic ones."""
    drawn = round(count * settings.synthetic_share)
    curve = np.concatenate(
        [
            rng.integers(recorded, size=count - drawn),
            rng.integers(recorded, len(curves), size=drawn),
        ]
    )
    length = np.minimum(draw_lengths(count, settings.longest_prefix, rng), curves.diverged_at[curve])
    known = rng.random(count) >= settings.schedule_dropped
    parts = []
    for rows in np.array_split(np.arange(count), 1 + count // 16384):
        at = curve[rows]
        schedule = np.where(known[rows, None], curves.schedule[at], np.nan)
        parts.append(
            (describe(curves.loss[at], length[rows], schedule), future_knots(curves.loss[at], length[rows]))
        )
    description = Description.concatenate([part[0] for part in parts])
    return Prefixes(description, np.concatenate([part[1] for part in parts]), curve, length)


def draw_questions(
    curves: Corpus, recorded: int, settings: ExampleSettings, tasks: bool, rng: np.random.Generator
) -> Examples:
    """``settings.examples`` questions about the curves that :func:`draw_prefixes` draws, in the same mix.

    With ``tasks``, half of those about recorded and altered curves are tasks; synthetic curves have no siblings that
    could set a task.
    """
    drawn = round(settings.examples * settings.synthetic_share)
    parts = [
        draw_examples(curves.select(rows), count, asked, rng, settings.longest_prefix)
        for rows, count, asked in (
            (np.arange(recorded), settings.examples - drawn, tasks),
            (np.arange(recorded, len(curves)), drawn, False),
        )
        if count
    ]
    examples = Examples.concatenate(parts)
    return replace(examples, query=hide_schedules(examples.query, settings.schedule_dropped, rng))


def hide_schedules(query: Query, share: float, rng: np.random.Generator) -> Query:
    """The same questions, a random ``share`` of them without their learning-rate schedules."""
    hidden = rng.random(len(query)) < share
    return replace(query, schedule=np.where(hidden[:, None], np.nan, query.schedule))


def draw_trials(corpus: Corpus, settings: ExampleSettings, tasks: bool, rng: np.random.Generator) -> Examples:
    """Questions that forecasts are calibrated on: of the calibration split, and of fresh synthetic curves.

    The synthetic ones stand for kinds of curves that were never recorded; they are no part of the training. They
    have no group: the model was trained on their like.
    """
    synthetic = round(settings.trials * settings.synthetic_trials)
    recorded = draw_examples(corpus.of(split="calibration"), settings.trials - synthetic, tasks, rng)
    if not synthetic:
        return recorded
    fresh = draw_curves(max(synthetic // 2, 1), rng)
    drawn = draw_examples(replace(fresh, group=np.full(len(fresh), NO_GROUP)), synthetic, False, rng)
    return Examples.concatenate([recorded, drawn])
