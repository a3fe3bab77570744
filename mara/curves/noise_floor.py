"""How well a run's twin, which differs in the seed only, predicts the run: the error no forecast should beat.

Protocol: prefix of 20, 40 or 80 points; target .9, .7, .5 or .25 of the best smoothed loss so far; truth =
units until the smoothed loss is at or below the target, capped at the H units that are left. The twin's
answer is when the twin itself reaches that target, its whole curve being known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mara.command_line import LineParser
from mara.curves.corpus import FAMILIES, Corpus, load_corpus, siblings
from mara.curves.smoothing import demand, smooth
from mara.errors import exit_on_input_error

PREFIXES = (20, 40, 80)
FRACTIONS = (0.9, 0.7, 0.5, 0.25)


@dataclass(frozen=True)
class NoiseFloor:
    """Error of twins as predictors in one family."""

    family: str
    nmae: float
    """Mean of |twin's answer - truth| / H over all cases."""
    low: float
    """2.5 % point of the bootstrap over groups."""
    high: float
    """97.5 % point."""
    cases: int
    pairs: int
    """Ordered pairs of a run and its twin."""
    groups: int


def noise_floor(
    corpus: Corpus, family: str, rng: np.random.Generator, resamples: int = 2000
) -> NoiseFloor | None:
    """The noise floor of a family, None where it has no twins.

    Args:
        corpus: curves with their twins.
        family: supervised, vision or rl.
        rng: of the bootstrap.
        resamples: of the bootstrap.
    """
    chosen = corpus.of(family=family)
    pairs = np.array(
        [(run, twin) for rows in siblings(chosen) for run in rows for twin in rows if run != twin],
        dtype=np.int64,
    ).reshape(-1, 2)
    smoothed = smooth(chosen.loss.astype(np.float64))
    errors, names = [], []
    for prefix in PREFIXES:
        usable = pairs[chosen.diverged_at[pairs[:, 0]] >= prefix]
        if len(usable) == 0:
            continue
        run, twin = usable.T
        best = smoothed[run, :prefix].min(axis=1)
        for fraction in FRACTIONS:
            truth = _remaining(smoothed[run], fraction * best, prefix)
            answer = _remaining(smoothed[twin], fraction * best, prefix)
            errors.append(np.abs(answer - truth) / (chosen.loss.shape[1] - prefix))
            names.append(chosen.group[run])
    if not errors:
        return None
    groups, member = np.unique(np.concatenate(names), return_inverse=True)
    error = np.concatenate(errors)
    total, count = np.bincount(member, error), np.bincount(member)
    drawn = rng.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), size=resamples)
    low, high = np.quantile((drawn @ total) / (drawn @ count), [0.025, 0.975])
    return NoiseFloor(
        family, float(error.mean()), float(low), float(high), len(error), len(pairs), len(groups)
    )


def _remaining(smoothed: NDArray, target: NDArray, prefix: int) -> NDArray[np.int64]:
    """Units after the prefix until the target is reached, 0 where it was before, at most what is left."""
    reached = demand(smoothed, target).astype(np.int64)
    return np.clip(reached - (prefix - 1), 0, smoothed.shape[1] - prefix)


def main() -> None:
    """Print the noise floor of every family of the corpus."""
    LineParser(description=__doc__).parse_args()
    corpus = load_corpus()
    for family in FAMILIES:
        floor = noise_floor(corpus, family, np.random.default_rng(0))
        if floor is not None:
            print(
                f"{family}: nMAE {floor.nmae:.3f} [{floor.low:.3f}, {floor.high:.3f}], "
                f"{floor.cases} cases, {floor.pairs} pairs, {floor.groups} groups"
            )


if __name__ == "__main__":
    exit_on_input_error(main)
