"""Allocators by name: their weights, what they tabulate, and the policy that the simulator runs.

To add an allocator: write its ``allocate_x`` and ``run_x``, give it a section of weights and add a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mara.allocators import fair, heuristics, index, laira, lara
from mara.allocators.edf import allocate_edf, run_edf
from mara.config.allocators import (
    AllocatorSettings,
    EstimateWeights,
    FairWeights,
    GittinsWeights,
    IndexWeights,
    LairaWeights,
    LaraDeadlineWeights,
    LaraWeights,
    MatchingWeights,
    NoWeights,
)
from mara.config.base import Section
from mara.curves.corpus import Corpus
from mara.errors import InputError
from mara.simulator.cluster import Cluster
from mara.simulator.simulate import Policy
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool


@dataclass(frozen=True)
class Allocator:
    """What is known of an allocator before it has forecasts and weights."""

    weights: type[Section]
    allocate: Callable[..., Any]
    run: Callable[..., Any]
    needs_forecasts: bool = True
    memory_width: int = 0
    scratch_width: int = 0
    rule: int | None = None
    """Which of the simple rules, where several share one policy."""


_RANKED = (heuristics.allocate_ranked, heuristics.run_ranked)
_LARA = (lara.allocate_lara, lara.run_lara)

ALLOCATORS: dict[str, Allocator] = {
    "random": Allocator(NoWeights, *_RANKED, needs_forecasts=False, rule=heuristics.RANDOM),
    "fifo": Allocator(NoWeights, *_RANKED, needs_forecasts=False, rule=heuristics.FIFO),
    "edf": Allocator(NoWeights, allocate_edf, run_edf, needs_forecasts=False),
    "srpt": Allocator(EstimateWeights, *_RANKED, rule=heuristics.SRPT),
    "least_laxity": Allocator(EstimateWeights, *_RANKED, rule=heuristics.LEAST_LAXITY),
    "moore_hodgson": Allocator(
        EstimateWeights, heuristics.allocate_moore_hodgson, heuristics.run_moore_hodgson
    ),
    "gittins": Allocator(GittinsWeights, index.allocate_gittins, index.run_gittins),
    "index": Allocator(IndexWeights, index.allocate_index, index.run_index),
    "index_matching": Allocator(MatchingWeights, index.allocate_index_matching, index.run_index_matching),
    "fair_index": Allocator(
        FairWeights,
        fair.allocate_fair,
        fair.run_fair,
        memory_width=fair.MEMORY_WIDTH,
        scratch_width=fair.SCRATCH_WIDTH,
    ),
    "lara": Allocator(LaraWeights, *_LARA, memory_width=lara.MEMORY_WIDTH, scratch_width=lara.SCRATCH_WIDTH),
    "lara_deadline": Allocator(
        LaraDeadlineWeights, *_LARA, memory_width=lara.MEMORY_WIDTH, scratch_width=lara.SCRATCH_WIDTH
    ),
    "laira": Allocator(
        LairaWeights,
        laira.allocate_laira,
        laira.run_laira,
        needs_forecasts=False,
        memory_width=laira.MEMORY_WIDTH,
    ),
}


def allocator(name: str) -> Allocator:
    """Look an allocator up; InputError with the known names when there is none."""
    if name not in ALLOCATORS:
        raise InputError(f"allocator {name}: unknown; known are {', '.join(ALLOCATORS)}")
    return ALLOCATORS[name]


def default_weights(name: str, settings: AllocatorSettings | None = None) -> Section:
    """Weights of an allocator before tuning."""
    settings = settings or AllocatorSettings()
    kind = allocator(name).weights
    if kind is NoWeights:
        return NoWeights()
    return next(v for v in vars(settings).values() if type(v) is kind)


def make_policy(
    name: str,
    weights: Section | None = None,
    forecasts: ForecastTable | None = None,
    cluster: Cluster | None = None,
    pool: TaskPool | None = None,
    corpus: Corpus | None = None,
) -> Policy:
    """Build the policy of an allocator.

    Args:
        name: key of ALLOCATORS.
        weights: section of the allocator's kind; its defaults where None.
        forecasts: table of the predictor it reads, where it reads one.
        cluster: where it is to run; only its switching cost and speeds are used, in the index's table.
        pool: the tasks' families; with ``corpus``, what LaiRA fits its own models on.
        corpus: the curves of ``pool``.

    Raises:
        InputError: for an unknown name, weights of another allocator, or missing forecasts or curves.
    """
    kind = allocator(name)
    if weights is None:
        weights = default_weights(name)
    if type(weights) is not kind.weights:
        found = type(weights).__name__
        raise InputError(f"allocator {name}: its weights are {kind.weights.__name__}, not {found}")
    if kind.needs_forecasts and forecasts is None:
        raise InputError(f"allocator {name}: needs a forecast table")
    params = np.array([float(v) for v in weights.model_dump().values()], dtype=np.float64)
    table = None
    if isinstance(weights, EstimateWeights) and forecasts is not None:
        table = heuristics.remaining_table(forecasts, weights.quantile)
        params = params[:0]
    elif isinstance(weights, GittinsWeights | IndexWeights) and forecasts is not None:
        setup = 0.0
        if cluster is not None and isinstance(weights, IndexWeights):
            setup = cluster.switching_cost * float(cluster.speeds.mean())
        table = index.gittins_table(forecasts, setup)
        if isinstance(weights, FairWeights):
            if pool is None:
                raise InputError(f"allocator {name}: needs the task pool, for the tasks' families")
            table = fair.with_family(table, forecasts, pool)
    elif isinstance(weights, LairaWeights):
        if pool is None or corpus is None:
            raise InputError("allocator laira: needs the task pool and its curves")
        table = laira.laira_table(pool, corpus)
        params = np.concatenate([params, laira.constants(corpus.loss.shape[1])])
    if kind.rule is not None:
        params = np.array([float(kind.rule)])
    return Policy(
        name=name,
        allocate=kind.allocate,
        run=kind.run,
        params=params,
        memory_width=kind.memory_width,
        scratch_width=kind.scratch_width,
        table=table,
        needs_forecasts=kind.needs_forecasts,
    )


def reweighted(policy: Policy, weights: Section) -> Policy:
    """The same policy with other weights and the same table; not for weights that shape the table."""
    if isinstance(weights, EstimateWeights):
        raise TypeError("the quantile is part of the table; make the policy anew")
    values = [float(v) for v in weights.model_dump().values()]
    params = policy.params.copy()
    params[: len(values)] = values
    return Policy(**{**vars(policy), "params": params})
