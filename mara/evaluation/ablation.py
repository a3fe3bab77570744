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
        added.append(
            {
                "method": method,
                "label": labels.get(method, ""),
                "difference_to_mara": difference.estimate,
                "mara_low": difference.low,
                "mara_high": difference.high,
                "p_value": p_value,
            }
        )
    table = completion_rows(outcomes, parts)
    table = table[table["train_seed"] == POOLED].merge(
        pd.DataFrame(added), on="method", validate="one_to_one"
    )
    table["p_holm"] = holm(table["p_value"].where(table["label"] != ""))
    return table
