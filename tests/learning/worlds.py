"""A small world for tests of learning: parametric curves, noisy forecasts of their true remaining demand."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from mara.config.allocators import MatchingWeights
from mara.config.workload import ArrivalSettings
from mara.learning.rollout import Course
from mara.simulator.cluster import Cluster
from mara.workload.forecast_table import ForecastTable, row_offsets
from mara.workload.tasks import TaskPool
from mara.workload.trace import make_trace

HORIZON = 120


def make_pool(templates: int, rng: np.random.Generator) -> TaskPool:
    """Tasks with log-uniform demands, some of which cannot be met."""
    demand = np.exp(rng.uniform(np.log(3), np.log(80), templates)).astype(np.int32)
    window = np.clip(demand * np.exp(rng.uniform(-0.3, 1.2, templates)), 2, 120).astype(np.int32)
    names = np.array([f"t{k}" for k in range(templates)])
    family = np.full(templates, "supervised")
    return TaskPool(
        curve=np.arange(templates, dtype=np.int32),
        curve_id=names,
        group=names,
        family=family,
        target=np.ones(templates, np.float32),
        window=window,
        demand=demand,
        reference_units=window,
        natural={},
    )


def make_forecasts(pool: TaskPool, spread: float, rng: np.random.Generator) -> ForecastTable:
    """Lognormal around a noisy estimate of what remains; the noise is a task's own."""
    offset = row_offsets(pool.demand)
    template = np.repeat(np.arange(len(pool)), np.diff(offset))
    remaining = pool.demand[template] - (np.arange(offset[-1]) - offset[template])
    estimate = remaining * np.exp(spread * rng.standard_normal(len(pool)))[template]
    units = np.log(np.arange(1, HORIZON + 1))
    cdf = ndtr((units - np.log(estimate)[:, None]) / spread)
    cdf = np.concatenate([np.zeros((len(cdf), 1)), cdf], axis=1).astype(np.float32)
    return ForecastTable("noisy", offset, cdf, estimate.astype(np.float32))


def make_course(
    episodes: int = 4,
    rate: float = 0.25,
    seed: int = 0,
    arrivals: ArrivalSettings | None = None,
    cluster: Cluster | None = None,
) -> Course:
    """A setting of a few short episodes on three nodes."""
    rng = np.random.default_rng(seed)
    pool = make_pool(60, rng)
    forecasts = make_forecasts(pool, 0.5, rng)
    arrivals = arrivals or ArrivalSettings(warm_up=10, scored=30, cool_down=5)
    trace = make_trace(pool, arrivals, rate, episodes, rng)
    cluster = cluster or Cluster(speeds=np.array([0.5, 2.0, 1.0]))
    progress = np.minimum(np.arange(200) / pool.demand[:, None], 1.0).astype(np.float32)
    return Course(trace, pool, cluster, forecasts, MatchingWeights(horizon=1.3, sticky=0.2), progress)
