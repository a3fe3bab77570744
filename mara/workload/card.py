"""What a workload is like, in figures: shares, loads, and how much the visible numbers give away.

Shapes: J templates, T tasks of a trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from mara.curves.corpus import Corpus
from mara.curves.smoothing import NEVER
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def workload_card(pool: TaskPool, corpus: Corpus) -> dict[str, Any]:
    """Figures of a task pool; ``corpus`` holds its curves.

    ``tells`` are areas under the ROC curve (0.5 = no tell) of what is visible at arrival, against being
    feasible and against being reachable at all; a workload whose tells are strong needs no prediction.
    """
    start = corpus.loss[pool.rows_in(corpus), 0].astype(np.float64)
    fall = np.log(start / pool.target)
    feasible, reached = pool.feasible, pool.demand != NEVER
    visible = {
        "log_fall": fall,
        "window": pool.window.astype(np.float64),
        "log_fall_by_log_window": fall / np.log1p(pool.window),
        "start_loss": start,
        "target": pool.target.astype(np.float64),
    }
    both = np.log(pool.demand[reached]), np.log(pool.window[reached])
    return {
        "templates": len(pool),
        "curves": len(np.unique(pool.curve_id)),
        "groups": len(np.unique(pool.group)),
        "share_feasible": float(feasible.mean()),
        "share_too_late": float((reached & ~feasible).mean()),
        "share_unreachable": float((~reached).mean()),
        "natural_shares": dict(pool.natural),
        "demand_quantiles": _quantiles(pool.demand[feasible]),
        "window_quantiles": _quantiles(pool.window),
        "work_per_task": float(_work(pool).mean()),
        "correlation_log_demand_log_window": float(np.corrcoef(*both)[0, 1])
        if reached.sum() > 1
        else float("nan"),
        "correlation_log_demand_log_window_feasible": (
            float(np.corrcoef(np.log(pool.demand[feasible]), np.log(pool.window[feasible]))[0, 1])
            if feasible.sum() > 1
            else float("nan")
        ),
        "tells": {
            name: {"feasible": _auc(value, feasible), "reachable": _auc(value, reached)}
            for name, value in visible.items()
        },
    }


def trace_card(trace: Trace, pool: TaskPool, capacity: float) -> dict[str, Any]:
    """Figures of a trace on a cluster that gives ``capacity`` units a slot.

    ``offered_load`` is rate * E[work] / capacity with work = min(demand, window): what training every
    task to its end or its deadline takes; ``feasible_load`` counts only tasks that can be completed.
    """
    if len(trace) == 0:
        return {
            **trace.meta,
            "episodes": trace.episodes,
            "tasks": 0,
            "offered_load": 0.0,
            "feasible_load": 0.0,
        }
    work, feasible = _work(pool)[trace.template], pool.feasible[trace.template]
    per_slot = trace.meta["rate"] / capacity
    return {
        **trace.meta,
        "episodes": trace.episodes,
        "tasks": len(trace),
        "scored_tasks": int(trace.scored.sum()),
        "offered_load": per_slot * float(work.mean()),
        "feasible_load": per_slot * float((work * feasible).mean()),
    }


def _work(pool: TaskPool) -> np.ndarray:
    """Units that a task takes up if it is trained to its end or its deadline at speed 1: (J,) float64."""
    return np.minimum(pool.demand, pool.window).astype(np.float64)


def _quantiles(value: np.ndarray) -> dict[str, float]:
    if len(value) == 0:
        return {}
    return {f"{q:g}": float(v) for q, v in zip(_QUANTILES, np.quantile(value, _QUANTILES), strict=True)}


def _auc(value: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve, the better of the two directions; ties count half."""
    n, m = int(positive.sum()), int((~positive).sum())
    if n == 0 or m == 0:
        return float("nan")
    area = (rankdata(value)[positive].sum() - n * (n + 1) / 2) / (n * m)
    return float(max(area, 1 - area))
