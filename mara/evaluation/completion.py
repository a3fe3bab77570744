"""Rows of the completion tables: rates, paired differences to LARA, and the share of the gap closed.

One call handles one setting (suite, workload, load). Where a method was trained with several seeds there
is one row a seed and a row "all" that pools them; a method without training has the row "all" alone. The
quoted intervals are over curve groups and training seeds, those over episodes are printed beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from mara.errors import InputError
from mara.evaluation.outcomes import PairedOutcomes
from mara.evaluation.statistics import Interval, Resampled, holm, percentile_interval

POOLED = "all"


class Parts(NamedTuple):
    """What a method is made of: the predictor behind it ("none" where it has none) and the allocator."""

    predictor: str
    allocator: str


COMPLETION_COLUMNS = (
    "suite",
    "workload",
    "load",
    "method",
    "predictor",
    "allocator",
    "train_seed",
    "n_episodes",
    "arrived",
    "completed",
    "completion_rate",
    "ci_low",
    "ci_high",
    "difference_to_lara",
    "diff_low",
    "diff_high",
    "ci_low_episodes",
    "ci_high_episodes",
    "n_groups",
    "n_seeds",
)


def completion_rows(outcomes: PairedOutcomes, parts: Mapping[str, Parts]) -> pd.DataFrame:
    """The rows of ``completion.csv`` for one setting, in the order in which methods were given.

    Raises:
        InputError: the reference method was not run in this setting, or ``parts`` lacks a method.
    """
    reference = outcomes.settings.reference
    if reference not in outcomes.methods:
        raise InputError(f"{outcomes.setting}: no run of {reference!r}; differences are taken to it")
    rows = []
    for method in outcomes.methods:
        if method not in parts:
            raise InputError(f"{outcomes.setting}: method {method!r} has no predictor and allocator named")
        seeds = outcomes.seeds[method]
        rows.append(_row(outcomes, method, parts[method], POOLED, seeds))
        if len(seeds) > 1:
            rows.extend(_row(outcomes, method, parts[method], str(seed), (seed,)) for seed in seeds)
    return pd.DataFrame(rows, columns=list(COMPLETION_COLUMNS))


def _row(
    outcomes: PairedOutcomes, method: str, parts: Parts, train_seed: str, seeds: Sequence[int]
) -> dict[str, object]:
    settings, reference = outcomes.settings, outcomes.settings.reference
    completed, arrived = outcomes.totals(method, seeds)
    own = outcomes.resample([method], "group", {method: seeds})
    by_episode = outcomes.resample([method], "episode", {method: seeds})
    rate = clipped(own.interval([1.0], settings.confidence))
    rate_episodes = clipped(by_episode.interval([1.0], settings.confidence))
    if method == reference:
        difference = Interval(0.0, 0.0, 0.0)
    else:
        pair = outcomes.resample([method, reference], "group", {method: seeds})
        difference = pair.interval([1.0, -1.0], settings.confidence)
    return {
        **outcomes.setting._asdict(),
        "method": method,
        "predictor": parts.predictor,
        "allocator": parts.allocator,
        "train_seed": train_seed,
        "n_episodes": len(outcomes.episodes(method)),
        "arrived": arrived,
        "completed": completed,
        "completion_rate": completed / arrived,
        "ci_low": rate.low,
        "ci_high": rate.high,
        "difference_to_lara": difference.estimate,
        "diff_low": difference.low,
        "diff_high": difference.high,
        "ci_low_episodes": rate_episodes.low,
        "ci_high_episodes": rate_episodes.high,
        "n_groups": outcomes.groups(method),
        "n_seeds": len(seeds),
    }


def clipped(interval: Interval) -> Interval:
    """A rate's interval, kept inside [0, 1] (widened seeds may push single resamples over the edge)."""
    low, high = np.clip([interval.low, interval.high], 0.0, 1.0)
    return Interval(interval.estimate, float(low), float(high))


def comparison_rows(outcomes: PairedOutcomes, method: str, baselines: Sequence[str]) -> pd.DataFrame:
    """Paired difference of ``method`` to each of ``baselines`` with both intervals and a p-value."""
    settings = outcomes.settings
    rows = []
    for baseline in baselines:
        pair = outcomes.resample([method, baseline], "group")
        episodes = outcomes.resample([method, baseline], "episode")
        difference = pair.interval([1.0, -1.0], settings.confidence)
        narrow = episodes.interval([1.0, -1.0], settings.confidence)
        rows.append(
            {
                **outcomes.setting._asdict(),
                "method": method,
                "baseline": baseline,
                "difference": difference.estimate,
                "diff_low": difference.low,
                "diff_high": difference.high,
                "diff_low_episodes": narrow.low,
                "diff_high_episodes": narrow.high,
                "p_value": pair.p_value([1.0, -1.0]),
                "n_groups": pair.units,
                "n_episodes": episodes.units,
            }
        )
    return pd.DataFrame(rows)


def adjust_within_suites(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Add ``p_holm``: Holm's correction over all comparisons of a suite."""
    table = comparisons.copy()
    table["p_holm"] = table.groupby("suite", sort=False)["p_value"].transform(lambda p: holm(p.to_numpy()))
    return table


def strongest(outcomes: PairedOutcomes, baselines: Sequence[str]) -> str:
    """The baseline with the highest completion rate in this setting (the first of equals)."""
    rates = {}
    for method in baselines:
        completed, arrived = outcomes.totals(method)
        rates[method] = completed / arrived
    return max(rates, key=lambda method: rates[method])


def gap_rows(outcomes: PairedOutcomes, methods: Sequence[str], baselines: Sequence[str]) -> pd.DataFrame:
    """Share of the gap between a floor and the clairvoyant bound that each of ``methods`` closes.

    Two floors are used: faithful LARA (``floor_kind`` "reference") and the strongest of ``baselines`` in
    this setting ("strongest"), whose selection on these very episodes favours the baseline. A share of 1
    is the optimum, 0 the floor, below 0 worse than the floor. All three rates are resampled together.
    """
    settings = outcomes.settings
    floors = {"reference": settings.reference, "strongest": strongest(outcomes, baselines)}
    rows = []
    for method in methods:
        for kind, floor in floors.items():
            triple = outcomes.resample([method, floor, settings.bound], "group")
            share = _share_closed(triple, settings.confidence)
            rows.append(
                {
                    **outcomes.setting._asdict(),
                    "method": method,
                    "floor_kind": kind,
                    "floor": floor,
                    "rate": triple.estimate[0],
                    "floor_rate": triple.estimate[1],
                    "bound_rate": triple.estimate[2],
                    "share_closed": share.estimate,
                    "share_low": share.low,
                    "share_high": share.high,
                    "n_groups": triple.units,
                    "n_episodes": len(outcomes.episodes(settings.bound) & outcomes.episodes(method)),
                }
            )
    return pd.DataFrame(rows)


def _share_closed(triple: Resampled, level: float) -> Interval:
    """(method - floor) / (bound - floor) with its interval; NaN where floor and bound coincide."""
    method, floor, bound = triple.samples.T
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (triple.estimate[0] - triple.estimate[1]) / (triple.estimate[2] - triple.estimate[1])
        samples = (method - floor) / (bound - floor)
    return percentile_interval(float(share), samples, level, triple.units)
