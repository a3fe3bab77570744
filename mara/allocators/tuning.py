"""Tuning of an allocator's weights on training episodes, on the same budget for all; the training load.

The search is an evolution strategy with covariance adaptation (Hansen, 2016) in the box that the weights'
limits span. All candidates play the same episodes, so differences are not drowned by the luck of arrivals.

Legend: D weights, P candidates a generation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from pydantic.fields import FieldInfo

from mara.allocators.registry import make_policy, reweighted
from mara.config.allocators import LOG_SCALE, EstimateWeights, TunerSettings
from mara.config.base import Section
from mara.config.workload import ArrivalSettings
from mara.curves.corpus import Corpus
from mara.simulator.cluster import Cluster
from mara.simulator.simulate import simulate
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace, make_trace


class Space:
    """The box of a section's weights, scaled to [0, 1]^D."""

    def __init__(self, section: Section) -> None:
        self.section = section
        self.names = list(type(section).model_fields)
        fields = [type(section).model_fields[name] for name in self.names]
        self.low = np.array([_limit(field, "ge") for field in fields])
        self.high = np.array([_limit(field, "le") for field in fields])
        self.log = np.array([field.json_schema_extra == LOG_SCALE for field in fields])
        self.whole = np.array([field.annotation is int for field in fields])

    @property
    def size(self) -> int:
        """D."""
        return len(self.names)

    def point(self) -> np.ndarray:
        """The section's own weights as a point (D,)."""
        value = np.array([float(getattr(self.section, name)) for name in self.names])
        low, high, value = (self._scale(v) for v in (self.low, self.high, value))
        return (value - low) / (high - low)

    def weights(self, point: np.ndarray) -> Section:
        """The weights at a point (D,), which is clipped to the box."""
        low, high = self._scale(self.low), self._scale(self.high)
        value = low + np.clip(point, 0, 1) * (high - low)
        value = np.where(self.log, np.exp(value), value)
        value = np.clip(np.where(self.whole, np.rint(value), value), self.low, self.high)
        plain = {
            name: int(v) if whole else float(v)
            for name, v, whole in zip(self.names, value, self.whole, strict=True)
        }
        return type(self.section)(**plain)

    def _scale(self, value: np.ndarray) -> np.ndarray:
        return np.where(self.log, np.log(np.where(self.log, value, 1.0)), value)


def _limit(field: FieldInfo, kind: str) -> float:
    return next(float(getattr(m, kind)) for m in field.metadata if hasattr(m, kind))


@dataclass(frozen=True)
class Tuned:
    """What a tuning found."""

    weights: Section
    default_rate: float
    """Completion of the start on the held-back episodes."""
    tuned_rate: float
    """Completion of the weights on the same episodes (the best of the finalists: optimistic by selection)."""
    history: list[float]
    """Mean completion of the candidates of each generation on the search episodes."""


def search(
    score: Callable[[Section], float], start: Section, settings: TunerSettings, rng: np.random.Generator
) -> tuple[list[Section], list[float]]:
    """Search the box of ``start``'s kind for weights of high ``score``.

    Returns the finalists (the last mean first, then the best by the search's own scores) and the mean score
    of each generation. A section without weights comes back as it is.
    """
    space = Space(start)
    if space.size == 0:
        return [start], []
    d, count = space.size, settings.population
    parents = count // 2
    weight = np.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
    weight /= weight.sum()
    effective = 1 / (weight**2).sum()
    c_path, c_sigma = (4 + effective / d) / (d + 4 + 2 * effective / d), (effective + 2) / (d + effective + 5)
    c_one = 2 / ((d + 1.3) ** 2 + effective)
    c_rank = min(1 - c_one, 2 * (effective - 2 + 1 / effective) / ((d + 2) ** 2 + effective))
    damping = 1 + 2 * max(0.0, np.sqrt((effective - 1) / (d + 1)) - 1) + c_sigma
    normal = np.sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d))
    mean, sigma, cov = space.point(), settings.step, np.eye(d)
    path, path_sigma = np.zeros(d), np.zeros(d)
    seen: dict[Section, float] = {start: score(start)}
    history = []
    for generation in range(settings.generations):
        values, vectors = np.linalg.eigh(cov)
        root = np.sqrt(np.maximum(values, 1e-12))
        step = (rng.standard_normal((count, d)) * root) @ vectors.T
        points = _reflect(mean + sigma * step)
        candidates = [space.weights(p) for p in points]
        for candidate in candidates:
            if candidate not in seen:
                seen[candidate] = score(candidate)
        scores = np.array([seen[c] for c in candidates])
        history.append(float(scores.mean()))
        best = np.argsort(-scores, kind="stable")[:parents]
        chosen = (points[best] - mean) / sigma
        move = weight @ chosen
        mean = np.clip(mean + sigma * move, 0, 1)
        path_sigma = (1 - c_sigma) * path_sigma + np.sqrt(c_sigma * (2 - c_sigma) * effective) * (
            vectors @ ((vectors.T @ move) / root)
        )
        length = np.linalg.norm(path_sigma) / normal
        alive = length / np.sqrt(1 - (1 - c_sigma) ** (2 * (generation + 1))) < 1.4 + 2 / (d + 1)
        path = (1 - c_path) * path + alive * np.sqrt(c_path * (2 - c_path) * effective) * move
        cov = (1 - c_one - c_rank) * cov + c_one * np.outer(path, path)
        cov += c_rank * (chosen.T * weight) @ chosen
        sigma = min(sigma * np.exp((c_sigma / damping) * (length - 1)), 0.5)
    finalists = sorted(seen, key=lambda w: -seen[w])[: settings.finalists]
    centre = space.weights(mean)
    return [centre, *(f for f in finalists if f != centre)], history


def _reflect(point: np.ndarray) -> np.ndarray:
    """Mirror points that left the box back into it."""
    folded = np.abs(point) % 2
    return np.where(folded > 1, 2 - folded, folded)


def tune(
    name: str,
    start: Section,
    trace: Trace,
    pool: TaskPool,
    cluster: Cluster,
    settings: TunerSettings,
    rng: np.random.Generator,
    forecasts: ForecastTable | None = None,
    corpus: Corpus | None = None,
) -> Tuned:
    """Tune an allocator's weights for the completion rate on the episodes of ``trace``.

    The search sees the first episodes; the start, the search's last mean and its best candidates then meet on
    the held-back ones, and the best there is returned.
    """
    held_back = max(1, round(settings.held_back * trace.episodes))
    searched = trace.select(np.arange(max(trace.episodes - held_back, 1)))
    kept = trace.select(np.arange(trace.episodes - held_back, trace.episodes))
    base = make_policy(name, start, forecasts, cluster, pool, corpus)

    def rate(weights: Section, episodes: Trace) -> float:
        if isinstance(weights, EstimateWeights):
            policy = make_policy(name, weights, forecasts, cluster, pool, corpus)
        else:
            policy = reweighted(base, weights)
        return simulate(episodes, pool, cluster, policy, forecasts).completion_rate

    finalists, history = search(lambda w: rate(w, searched), start, settings, rng)
    contest = [start, *(f for f in finalists if f != start)]
    rates = [rate(w, kept) for w in contest]
    best = int(np.argmax(rates))
    return Tuned(contest[best], rates[0], rates[best], history)


def calibrate_rate(
    target: float,
    pool: TaskPool,
    arrivals: ArrivalSettings,
    cluster: Cluster,
    forecasts: ForecastTable,
    episodes: int,
    seed: int,
    weights: Section | None = None,
    name: str = "lara",
    tolerance: float = 5e-4,
) -> tuple[float, float]:
    """Find the arrival rate at which an allocator completes the share ``target`` of the scored tasks.

    Bisection on the rate; every trial plays the same tasks and unit-rate arrivals, only pressed together.

    Returns the rate (arrivals a slot) and the completion there.
    """
    policy = make_policy(name, weights, forecasts, cluster)

    def completion(rate: float) -> float:
        trace = make_trace(pool, arrivals, rate, episodes, np.random.default_rng(seed))
        return simulate(trace, pool, cluster, policy, forecasts).completion_rate

    work = float(np.minimum(pool.demand, pool.window).mean())
    low = high = float(cluster.speeds.sum()) / work
    while completion(high) > target and high < 1e4:
        low, high = high, high * 2
    while completion(low) < target and low > 1e-4:
        low, high = low / 2, low
    for _ in range(40):
        middle = np.sqrt(low * high)
        found = completion(middle)
        if abs(found - target) <= tolerance:
            break
        if found > target:
            low = middle
        else:
            high = middle
    return float(middle), float(found)
