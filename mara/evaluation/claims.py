"""The verdicts: each published claim beside what was measured, by a rule fixed before the figures.

Every function below judges one claim from rows of the result tables and nothing else. A claim whose rows
are missing does not hold: what was not measured was not shown. "Interval above zero" means that the lower
end of the 95 % interval over curve groups and training seeds is above zero. Where a claim says "on every
...", each case must pass on its own; asking all of them needs no correction for their number, and the
case with the smallest lower end is the one printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from mara.config.evaluation import EvaluationSettings
from mara.curves.corpus import HELD_OUT_FAMILIES
from mara.evaluation.completion import POOLED
from mara.evaluation.statistics import Interval

PUBLISHED_RATE = 0.6346
PUBLISHED_LEAD = 0.0854
PUBLISHED_REFERENCE_RATE = 0.5492

CLAIM_COLUMNS = (
    "claim",
    "title",
    "unit",
    "published",
    "measured",
    "ci_low",
    "ci_high",
    "holds",
    "n",
    "where",
    "rule",
    "note",
    "figure",
)


@dataclass(frozen=True)
class Verdict:
    """One row of ``claims.csv``; ``unit`` is "nmae" or "completion" (a difference of two rates)."""

    claim: str
    title: str
    unit: str
    published: str
    measured: float
    ci_low: float
    ci_high: float
    holds: bool
    n: str
    where: str
    rule: str
    note: str
    figure: str


@dataclass(frozen=True)
class Statement:
    """What is claimed and by which rule it is judged: the part of a verdict that no result changes."""

    claim: str
    title: str
    unit: str
    published: str
    rule: str
    figure: str

    def verdict(self, value: Interval, holds: bool, n: str, where: str, note: str) -> Verdict:
        """The verdict with its measured values."""
        return Verdict(
            self.claim,
            self.title,
            self.unit,
            self.published,
            value.estimate,
            value.low,
            value.high,
            bool(holds),
            n,
            where,
            self.rule,
            note,
            self.figure,
        )

    def unmeasured(self, what: str) -> Verdict:
        """The verdict when a row that the rule needs does not exist."""
        unknown = Interval(np.nan, np.nan, np.nan)
        return self.verdict(unknown, False, "0", "none", f"not measured: no row {what}")


C1 = Statement(
    "C1",
    "flow matching predicts the remaining demand better than WLS: smallest lead in nMAE over the families",
    "nmae",
    "lower error on all three families",
    "holds if the nMAE of flow is below that of wls on supervised, vision and rl, "
    "each with the interval of the difference above zero",
    "prediction_error",
)
C2 = Statement(
    "C2",
    "completion at the training load: lead of MARA over LARA",
    "completion",
    f"{PUBLISHED_LEAD}",
    "holds if the interval of the paired lead lies above zero and its upper end reaches the published 0.0854",
    "completion_training",
)
C3 = Statement(
    "C3",
    "smallest lead over LARA under unseen heavier loads",
    "completion",
    "lead holds",
    "holds if the interval of the paired lead lies above zero at every load above the training load",
    "completion_load",
)
C4 = Statement(
    "C4",
    "smallest lead over LARA on held-out task families",
    "completion",
    "lead holds",
    "holds if the interval of the paired lead lies above zero on every held-out family",
    "held_out",
)
C5 = Statement(
    "C5",
    "change in completion owed to the predictor, out of the lead over LARA",
    "completion",
    "the gain is attributed to demand estimation",
    "holds if the whole lead, the predictor's main effect in the factorial (LARA's to MARA's predictor, "
    "averaged over both allocators) and its excess over the allocator's all have intervals above zero",
    "attribution",
)
C6 = Statement(
    "C6",
    "log-progress shaping: completion learned from nothing with it less without it",
    "completion",
    "intermediate feedback, objective unchanged",
    "holds if the shaped return equals the return less the potential of the first state within rounding, the "
    "check fails with a non-zero terminal potential, more slots carry feedback than without shaping, and "
    "the interval of shaped minus unshaped completion does not lie below zero",
    "ablation",
)


@dataclass(frozen=True)
class Tables:
    """The tables that verdicts are read from, each as its module documents it."""

    prediction_differences: pd.DataFrame
    completion: pd.DataFrame
    effects: pd.DataFrame
    ablation: pd.DataFrame
    shaping: pd.DataFrame


def judge(tables: Tables, settings: EvaluationSettings) -> pd.DataFrame:
    """``claims.csv``: one row for each of C1 to C6."""
    verdicts = (
        prediction_claim(tables.prediction_differences),
        training_load_claim(tables.completion, settings),
        unseen_load_claim(tables.completion, settings),
        held_out_claim(tables.completion, settings),
        attribution_claim(tables.effects, settings),
        shaping_claim(tables.shaping, tables.ablation, settings),
    )
    table = pd.DataFrame([asdict(verdict) for verdict in verdicts], columns=list(CLAIM_COLUMNS))
    table["holds"] = table["holds"].map({True: "true", False: "false"})
    return table


def above_zero(value: Interval) -> bool:
    """Whether the interval is known and lies above zero."""
    return bool(np.isfinite(value.low) and value.low > 0.0)


def rows_where(table: pd.DataFrame, **conditions: object) -> pd.DataFrame:
    """Rows in which every named column has the given value; none where the table lacks a column."""
    if not conditions.keys() <= set(table.columns):
        return table.iloc[:0]
    match = pd.Series(True, index=table.index)
    for column, value in conditions.items():
        match &= table[column] == value
    return table[match]


def weakest(values: Sequence[Interval]) -> int:
    """Index of the value with the lowest lower end; an unknown interval is weaker than any."""
    return int(np.argmin([v.low if np.isfinite(v.low) else -np.inf for v in values]))


def prediction_claim(differences: pd.DataFrame) -> Verdict:
    """C1, from ``prediction_differences.csv``: nMAE of flow less that of wls, by family, paired by case."""
    rows = rows_where(differences, predictor="flow", baseline="wls", score="nmae")
    for family in ("supervised", "vision", "rl"):
        if rows_where(rows, family=family).empty:
            return C1.unmeasured(f"prediction_differences.csv: predictor=flow, baseline=wls, family={family}")
    leads = [
        Interval(*(-float(row[column]) for column in ("difference", "diff_high", "diff_low")))
        for _, row in rows.iterrows()
    ]
    names = [f"{row['family']} ({row['split']})" for _, row in rows.iterrows()]
    worst = rows.iloc[weakest(leads)]
    return C1.verdict(
        leads[weakest(leads)],
        all(above_zero(v) for v in leads),
        f"{int(rows['n_cases'].sum())} cases, {int(rows['n_groups'].sum())} groups",
        f"prediction_differences.csv: predictor=flow, baseline=wls, family={worst['family']}, "
        f"split={worst['split']}, score=nmae",
        _listed(names, leads),
    )


def _listed(names: Sequence[str], values: Sequence[Interval]) -> str:
    return "; ".join(
        f"{name} {v.estimate:+.4f} [{v.low:.4f}, {v.high:.4f}]" for name, v in zip(names, values, strict=True)
    )


def _lead(row: pd.Series) -> Interval:
    return Interval(*(float(row[c]) for c in ("difference_to_lara", "diff_low", "diff_high")))


def _size(rows: pd.DataFrame) -> str:
    """How much stands behind rows of the completion table, in words."""
    groups, seeds = int(rows["n_groups"].min()), int(rows["n_seeds"].min())
    plural = "" if seeds == 1 else "s"
    return f"{int(rows['n_episodes'].min())} episodes, {groups} groups, {seeds} training seed{plural}"


def training_load_claim(completion: pd.DataFrame, settings: EvaluationSettings) -> Verdict:
    """C2, from ``completion.csv``, suite in_distribution, the main workload at load 1."""
    place = f"suite=in_distribution, workload={settings.main_workload}, load=1, method={settings.method}"

    here = rows_where(
        completion, suite="in_distribution", workload=settings.main_workload, load=1.0, train_seed=POOLED
    )
    rows, reference = rows_where(here, method=settings.method), rows_where(here, method=settings.reference)
    if len(rows) != 1 or len(reference) != 1:
        return C2.unmeasured(f"completion.csv: {place}")
    lead, rate = _lead(rows.iloc[0]), float(rows["completion_rate"].iloc[0])
    reference_rate = float(reference["completion_rate"].iloc[0])
    holds = above_zero(lead) and lead.high >= PUBLISHED_LEAD
    if holds:
        size = "in keeping with the published lead"
    elif above_zero(lead):
        size = "a lead, but smaller than the published one"
    else:
        size = "no lead beyond chance"
    note = (
        f"{settings.method} completes {rate:.4f} (published {PUBLISHED_RATE}), {settings.reference} "
        f"{reference_rate:.4f} (published {PUBLISHED_REFERENCE_RATE}, to which the load was set on "
        f"calibration episodes): {size}"
    )
    return C2.verdict(lead, holds, _size(rows), f"completion.csv: {place}", note)


def _every_lead(statement: Statement, rows: pd.DataFrame, label: str, suite: str) -> Verdict:
    leads = [_lead(row) for _, row in rows.iterrows()]
    low = weakest(leads)
    names = [
        f"load {row['load']:g}" if label == "load" else f"{row['workload']} (load {row['load']:g})"
        for _, row in rows.iterrows()
    ]
    worst = rows.iloc[low]
    return statement.verdict(
        leads[low],
        all(above_zero(v) for v in leads),
        _size(rows),
        f"completion.csv: suite={suite}, workload={worst['workload']}, load={worst['load']:g}, "
        f"method={worst['method']}",
        _listed(names, leads),
    )


def unseen_load_claim(completion: pd.DataFrame, settings: EvaluationSettings) -> Verdict:
    """C3, from ``completion.csv``, suite unseen_load, the main workload at every load above 1."""
    rows = rows_where(
        completion,
        suite="unseen_load",
        workload=settings.main_workload,
        method=settings.method,
        train_seed=POOLED,
    )
    if rows.empty or (rows := rows[rows["load"] > 1.0].sort_values("load")).empty:
        return C3.unmeasured(f"completion.csv: suite=unseen_load, load>1, method={settings.method}")
    return _every_lead(C3, rows, "load", "unseen_load")


def held_out_claim(completion: pd.DataFrame, settings: EvaluationSettings) -> Verdict:
    """C4, from ``completion.csv``, suite held_out_family, all of its workloads but the reader's own logs."""
    rows = rows_where(completion, suite="held_out_family", method=settings.method, train_seed=POOLED)
    if "workload" in rows:
        rows = rows[rows["workload"].isin(HELD_OUT_FAMILIES)]
    if rows.empty:
        return C4.unmeasured(f"completion.csv: suite=held_out_family, method={settings.method}")
    return _every_lead(C4, rows.sort_values(["workload", "load"]), "workload", "held_out_family")


def attribution_claim(effects: pd.DataFrame, settings: EvaluationSettings) -> Verdict:
    """C5, from ``effects.csv``, the effects that make MARA out of LARA on the main workload at load 1."""
    place = f"workload={settings.main_workload}, base_method={settings.reference}, method={settings.method}"
    rows = rows_where(
        effects,
        workload=settings.main_workload,
        load=1.0,
        base_method=settings.reference,
        method=settings.method,
    )
    wanted = ("total", "predictor", "allocator", "interaction", "predictor_minus_allocator")
    if any(len(rows_where(rows, effect=name)) != 1 for name in wanted):
        return C5.unmeasured(f"effects.csv: {place}")
    rows = rows.set_index("effect")
    value = {name: Interval(*rows.loc[name, ["value", "low", "high"]].astype(float)) for name in wanted}
    note = _listed([name.replace("_", " ") for name in wanted], list(value.values()))
    size = rows.loc["predictor"]
    return C5.verdict(
        value["predictor"],
        all(above_zero(value[name]) for name in ("total", "predictor", "predictor_minus_allocator")),
        f"{size['n_episodes']} episodes, {size['n_groups']} groups",
        f"effects.csv: {place}, effect=predictor",
        note,
    )


def shaping_claim(shaping: pd.DataFrame, ablation: pd.DataFrame, settings: EvaluationSettings) -> Verdict:
    """C6, from ``shaping.csv`` (the identity, one row) and ``ablation.csv`` (trained with and without shaping).

    ``shaping.csv`` has columns episodes, identity_error (largest |shaped return - (return - potential of
    the first state)| over episodes), control_error (the same with a non-zero terminal potential),
    feedback_shaped and feedback_plain (shares of slots whose reward is not zero).
    """
    rows = rows_where(ablation, method=settings.unshaped, train_seed=POOLED)
    twins = rows_where(ablation, method=settings.shaped, train_seed=POOLED)
    if len(shaping) != 1:
        return C6.unmeasured("shaping.csv")
    for name, found in ((settings.shaped, twins), (settings.unshaped, rows)):
        if len(found) != 1:
            return C6.unmeasured(f"ablation.csv: method={name}")
    check, row, twin = shaping.iloc[0], rows.iloc[0], twins.iloc[0]
    gain = Interval(*(float(row[c]) for c in ("shaped_minus_unshaped", "shaped_low", "shaped_high")))
    exact = float(check["identity_error"]) <= settings.identity_tolerance
    sensitive = float(check["control_error"]) > settings.identity_tolerance
    shaped, plain = float(check["feedback_shaped"]), float(check["feedback_plain"])
    note = (
        f"largest error of the identity {float(check['identity_error']):.1e} in {int(check['episodes'])} "
        f"episodes (with a non-zero terminal potential {float(check['control_error']):.2g}); feedback in "
        f"{shaped:.1%} of slots, without shaping in {plain:.1%}; from nothing the same training reaches "
        f"{float(twin['completion_rate']):.4f} with shaping, {float(row['completion_rate']):.4f} without: "
        f"{_feedback(gain)}"
    )
    return C6.verdict(
        gain,
        exact and sensitive and shaped > plain and not (np.isfinite(gain.high) and gain.high < 0.0),
        f"{int(check['episodes'])} episodes for the identity; {_size(rows)} for completion",
        f"shaping.csv; ablation.csv: method={settings.unshaped}",
        note,
    )


def _feedback(gain: Interval) -> str:
    if above_zero(gain):
        return "the feedback helps learning"
    if np.isfinite(gain.high) and gain.high < 0.0:
        return "the feedback harms learning"
    return "no effect on learning beyond chance"


def losses(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Every comparison in which MARA completes less than a baseline, largest loss first.

    ``comparisons`` carries ``p_holm``; ``resolved`` says whether the loss stands after Holm's correction
    at 5 %, so that a loss within chance is listed but told apart.
    """
    if comparisons.empty:
        return comparisons.assign(resolved=False)
    table = comparisons[comparisons["difference"] < 0.0].copy()
    table["resolved"] = table["p_holm"] < 0.05
    return table.sort_values("difference", kind="stable").reset_index(drop=True)
