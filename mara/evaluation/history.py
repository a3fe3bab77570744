"""What it is worth to know a run's configuration and earlier runs of its group: completion with and without.

All runs are on the same episodes and, but for the transformer, under the same index; only what its forecasts
know differs.
"""

from __future__ import annotations

import pandas as pd

from mara.evaluation.completion import comparison_rows
from mara.evaluation.outcomes import PairedOutcomes

CONTRASTS = (
    ("index_history_0", "index"),
    ("index_history_1", "index"),
    ("index_history", "index"),
    ("index_history_1", "index_history_0"),
    ("index_history", "index_history_0"),
    ("index_history", "index_history_1"),
    ("mara_history", "mara"),
    ("mara_history", "index_history"),
)
"""(with more knowledge, with less): the configuration, 1 and 3 earlier runs; the transformer on most."""


def history_rows(outcomes: PairedOutcomes) -> pd.DataFrame:
    """Paired differences in completion of one setting, for the contrasts of which both methods were run.

    Columns as in ``comparisons.csv``, and the two completion rates ``rate`` and ``baseline_rate``.
    """
    parts = []
    for method, baseline in CONTRASTS:
        if method in outcomes.methods and baseline in outcomes.methods:
            completed = [outcomes.totals(name) for name in (method, baseline)]
            rate, baseline_rate = (done / arrived for done, arrived in completed)
            rows = comparison_rows(outcomes, method, [baseline])
            parts.append(rows.assign(rate=rate, baseline_rate=baseline_rate))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
