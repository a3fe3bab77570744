"""Who is served: completion per family and curve group, waiting, slowdown, and indices of evenness.

Waiting is the number of slots from arrival to first service; a task that was never served has waited for
its whole window. Slowdown is the slots from arrival to completion per unit trained, over completed tasks:
1 means trained at once and without a pause on a node of speed 1.

Shapes: G curve groups, F families, S training seeds, B resamples.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mara.evaluation.completion import POOLED, Parts, clipped, completion_rows
from mara.evaluation.outcomes import PairedOutcomes, Runs, scored_rows
from mara.evaluation.statistics import (
    Floats,
    Resampled,
    Sums,
    jain,
    percentile_interval,
    resample_weights,
    resampled_ratios,
)

GROUP_COLUMNS = (
    "method",
    "kind",
    "name",
    "family",
    "arrived",
    "completed",
    "completion_rate",
    "ci_low",
    "ci_high",
    "mean_waiting",
    "mean_slowdown",
    "never_served",
    "n_groups",
)


def task_times(rows: pd.DataFrame) -> pd.DataFrame:
    """Add ``waiting`` (slots), ``never_served`` and ``slowdown`` (NaN unless completed) to scored rows."""
    served = rows["first_served"].to_numpy() >= 0
    window = (rows["deadline"] - rows["arrival"]).to_numpy(dtype=np.float64)
    waited = (rows["first_served"] - rows["arrival"]).to_numpy(dtype=np.float64)
    slots = (rows["finish"] + 1 - rows["arrival"]).to_numpy(dtype=np.float64)
    units = np.maximum(rows["units"].to_numpy(dtype=np.float64), 1.0)
    return rows.assign(
        waiting=np.where(served, waited, window),
        never_served=~served,
        slowdown=np.where(rows["completed"].to_numpy(dtype=bool), slots / units, np.nan),
    )


def group_rows(outcomes: PairedOutcomes, runs: Runs) -> pd.DataFrame:
    """One row per method and family, and per method and curve group (training seeds pooled).

    Families carry an interval over their groups and the training seeds; single groups carry none.
    """
    rows = []
    for method in outcomes.methods:
        tasks = _pooled_tasks(outcomes, runs, method)
        families, resampled = _family_rates(outcomes, tasks)
        ends = pd.DataFrame(
            [
                clipped(percentile_interval(np.nan, column, outcomes.settings.confidence, units))[1:]
                for column, units in zip(
                    resampled.samples.T, tasks.groupby("family")["group"].nunique()[families], strict=True
                )
            ],
            index=families,
            columns=["ci_low", "ci_high"],
        )
        for kind in ("family", "group"):
            table = _summed(tasks, kind)
            if kind == "family":
                table = table.join(ends)
            rows.append(table.reset_index(names="name").assign(method=method, kind=kind))
    setting = outcomes.setting._asdict()
    return pd.concat(rows, ignore_index=True).assign(**setting)[[*setting, *GROUP_COLUMNS]]


def _summed(tasks: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Counts, rates and mean times of the tasks of each family or each curve group."""
    parts = tasks.groupby(kind, sort=True)
    arrived, completed = parts.size(), parts["completed"].sum().astype(np.int64)
    return pd.DataFrame(
        {
            "family": parts["family"].first(),
            "arrived": arrived,
            "completed": completed,
            "completion_rate": completed / arrived,
            "mean_waiting": parts["waiting"].mean(),
            "mean_slowdown": parts["slowdown"].mean(),
            "never_served": parts["never_served"].mean(),
            "n_groups": parts["group"].nunique(),
        }
    )


def fairness_rows(outcomes: PairedOutcomes, runs: Runs, parts: Mapping[str, Parts]) -> pd.DataFrame:
    """The rows of ``fairness.csv`` for one setting: the pooled completion rows and what fairness adds.

    ``family_gap`` is the best family's completion minus the worst's; ``jain_family`` and ``jain_group``
    are Jain's index of the completion rates. The worst group is sought among groups with enough scored
    tasks (``minimum_group_tasks``), since the smallest of many noisy rates says little.
    """
    base = completion_rows(outcomes, parts)
    added = pd.DataFrame([_fairness(outcomes, runs, method) for method in outcomes.methods])
    return base[base["train_seed"] == POOLED].merge(added, on="method", validate="one_to_one")


def _pooled_tasks(outcomes: PairedOutcomes, runs: Runs, method: str) -> pd.DataFrame:
    frames = [
        scored_rows(runs[method][seed], f"{outcomes.setting}/{method}/seed{seed}").assign(train_seed=seed)
        for seed in outcomes.seeds[method]
    ]
    return task_times(pd.concat(frames, ignore_index=True))


def _family_rates(outcomes: PairedOutcomes, tasks: pd.DataFrame) -> tuple[list[str], Resampled]:
    """Families in order, and their completion rates with groups and seeds resampled, samples (B, F)."""
    counts = tasks.groupby(["family", "group", "train_seed"])["completed"].agg(["sum", "count"])
    tables = {name: counts[name].unstack("train_seed", fill_value=0) for name in ("sum", "count")}
    of_group = tables["sum"].index.get_level_values("family").to_numpy(dtype=str)
    hits, trials = (tables[name].to_numpy(dtype=np.float64) for name in ("sum", "count"))
    families = sorted(set(of_group.tolist()))
    sums = []
    for family in families:
        inside = (of_group == family)[:, None]
        sums.append(Sums(hits * inside, trials * inside))
    settings = outcomes.settings
    weights = resample_weights(len(of_group), settings.resamples, np.random.default_rng(settings.seed))
    return families, resampled_ratios(sums, weights, np.random.default_rng([settings.seed, 1]))


def _fairness(outcomes: PairedOutcomes, runs: Runs, method: str) -> dict[str, object]:
    settings = outcomes.settings
    tasks = _pooled_tasks(outcomes, runs, method)
    families, drawn = _family_rates(outcomes, tasks)
    rates = drawn.estimate
    by_group = tasks.groupby("group")["completed"].agg(["mean", "count"])
    large = by_group[by_group["count"] >= settings.minimum_group_tasks * len(outcomes.seeds[method])]
    worst_group = str(large["mean"].idxmin()) if len(large) else ""

    def ends(samples: Floats) -> tuple[float, float]:
        _, low, high = percentile_interval(0.0, samples, settings.confidence, drawn.units)
        return low, high

    with np.errstate(invalid="ignore"):
        worst_low, worst_high = ends(np.clip(drawn.samples.min(axis=1), 0.0, 1.0))
        gap_low, gap_high = ends(drawn.samples.max(axis=1) - drawn.samples.min(axis=1))
        jain_low, jain_high = ends(jain(drawn.samples))
    return {
        "method": method,
        "n_families": len(families),
        "worst_family": families[int(np.argmin(rates))],
        "worst_family_rate": float(rates.min()),
        "worst_family_low": worst_low,
        "worst_family_high": worst_high,
        "family_gap": float(rates.max() - rates.min()),
        "family_gap_low": gap_low,
        "family_gap_high": gap_high,
        "jain_family": float(jain(rates)),
        "jain_family_low": jain_low,
        "jain_family_high": jain_high,
        "worst_group": worst_group,
        "worst_group_rate": float(large["mean"].min()) if len(large) else np.nan,
        "group_gap": float(large["mean"].max() - large["mean"].min()) if len(large) else np.nan,
        "jain_group": float(jain(by_group["mean"].to_numpy())),
        "mean_waiting": float(tasks["waiting"].mean()),
        "mean_slowdown": float(tasks["slowdown"].mean()),
        "never_served": float(tasks["never_served"].mean()),
    }
