"""Rows of ``ablation.csv``: what MARA loses or gains when one of its parts is taken away."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mara.errors import InputError
from mara.evaluation.completion import POOLED, Parts, completion_rows
from mara.evaluation.outcomes import PairedOutcomes
from mara.evaluation.statistics import Interval, holm


def ablation_rows(
    outcomes: PairedOutcomes, parts: Mapping[str, Parts], labels: Mapping[str, str]
) -> pd.DataFrame:
    """Pooled completion rows with the paired difference to the whole of MARA, Holm-corrected.

    The row of the unshaped variant also has ``shaped_minus_unshaped`` with its interval: the completion of its
    shaped twin less its own, paired. In other rows, and where the twin was not run, it is unknown.

    Args:
        outcomes: MARA, LARA and the ablated methods in one setting.
        parts: predictor and allocator of every method.
        labels: what was changed, for each ablated method.

    Raises:
        InputError: MARA itself was not run in this setting.
    """
    whole = outcomes.settings.method
    if whole not in outcomes.methods:
        raise InputError(f"{outcomes.setting}: no run of {whole!r}; ablations are compared with it")
    added = []
    for method in outcomes.methods:
        difference, p_value = Interval(0.0, 0.0, 0.0), float("nan")
        if method != whole:
            pair = outcomes.resample([method, whole], "group")
            difference = pair.interval([1.0, -1.0], outcomes.settings.confidence)
            p_value = pair.p_value([1.0, -1.0])
        twins = method == outcomes.settings.unshaped and outcomes.settings.shaped in outcomes.methods
        feedback = shaped_minus_unshaped(outcomes) if twins else Interval(*[float("nan")] * 3)
        added.append(
            {
                "method": method,
                "label": labels.get(method, ""),
                "difference_to_mara": difference.estimate,
                "mara_low": difference.low,
                "mara_high": difference.high,
                "p_value": p_value,
                "shaped_minus_unshaped": feedback.estimate,
                "shaped_low": feedback.low,
                "shaped_high": feedback.high,
            }
        )
    table = completion_rows(outcomes, parts)
    table = table[table["train_seed"] == POOLED].merge(
        pd.DataFrame(added), on="method", validate="one_to_one"
    )
    table["p_holm"] = holm(table["p_value"].where(table["label"] != ""))
    return table


def shaped_minus_unshaped(outcomes: PairedOutcomes) -> Interval:
    """What the log-progress potential does to learning: completion with it less without it, same budget."""
    settings = outcomes.settings
    pair = outcomes.resample([settings.shaped, settings.unshaped], "group")
    return pair.interval([1.0, -1.0], settings.confidence)
