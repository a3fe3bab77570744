"""The synthetic prior over learning-curve shapes: what a predictor may believe before it sees a real curve.

Rationale. Predictors fitted on recorded supervised curves alone learn the habits of those curves. Curves of
other families (reinforcement learning, image models) wait on plateaus, fall in steps, or wander in strong
noise. This prior covers such behaviour in general terms, with parameters drawn over decades, so that no
particular task is imitated:

- power law, stretched exponential, a fast phase followed by a slow one, a sigmoid drop after a plateau,
  a staircase of sigmoid drops with passing relapses, and convex mixtures of these;
- progress runs with the learning rate where a schedule falls (constant, cosine, linear, exponential, steps,
  warm-up), and part of the loss is noise that falls with it, so that a step of the rate shows in the curve;
- noise that is autocorrelated, heavy-tailed or not, multiplicative or additive, largest early, late, or in
  transit; isolated spikes; losses read on a coarse grid;
- an upturn by over-fitting, and divergence, to infinity or to a high plateau;
- any scale: the loss is multiplied by 10**u, u uniform in -3..3.

Frozen on 2026-11-30 with commit 18d4465ea45720566fd375fc26f549324034f895, before any result on the held-out
families (vision, RL) of this corpus was looked at, and before these families were recorded. The list of
shapes is older: a pilot experiment on a small sample of all three families had shown that adding such
curves helps out of distribution. Ranges were chosen by reasoning alone, and no parameter was tuned on a
prediction error. Do not change what is drawn: that would make results on the held-out families in-sample.

Shapes: B curves, N = 200 points. Point n is the loss after n units; point 0 is the loss before training.
``progress`` (B, N) starts at 0 and never falls. A *shape* (B, N) is the excess loss still left: 1 at point 0,
near 0 when learned.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mara.curves.corpus import POINTS, Corpus
from mara.errors import InputError

SCHEDULES = ("constant", "cosine", "linear", "exponential", "step", "warmup_cosine")
_SCHEDULE_WEIGHTS = (0.5, 0.12, 0.1, 0.08, 0.12, 0.08)
_SHAPE_WEIGHTS = {
    "power": 0.2,
    "exponential": 0.16,
    "two_phase": 0.14,
    "sigmoid_drop": 0.14,
    "staircase": 0.2,
    "mixture": 0.16,
}

Array = NDArray[np.float64]


def draw_curves(count: int, rng: np.random.Generator) -> Corpus:
    """Draw ``count`` independent curves from the frozen prior.

    Every curve is a group of its own, of family "synthetic" and split "train"; ``config`` names its shape and
    its schedule. Losses are positive and finite before ``diverged_at`` and NaN from there. The same generator
    state and count give the same curves. Raises :class:`mara.errors.InputError` when ``count`` is below 1.
    """
    if count < 1:
        raise InputError(f"synthetic curves: count is {count}; it must be at least 1")
    schedule_kind, schedule = _draw_schedules(count, rng)
    progress = _progress(schedule, rng)
    shape_kind, shape = _draw_shapes(progress, rng)

    start_over_floor = _start_over_floor(count, rng)
    clean = 1.0 / start_over_floor + (1.0 - 1.0 / start_over_floor) * shape
    clean = clean + _annealed_floor(schedule, progress, rng)
    upturn = _overfit_upturn(progress, rng)
    validation = _observe(clean + upturn, shape, rng)
    train = _observe(clean, shape, rng)
    validation, train, diverged_at = _diverge(validation, train, rng)
    validation = _coarsen(validation, rng)

    scale = 10.0 ** rng.uniform(-3.0, 3.0, (count, 1))
    names = np.array([f"synthetic-{row:06d}" for row in range(count)])
    rate = schedule * 10.0 ** rng.uniform(-4.0, 0.0, (count, 1))
    return Corpus(
        id=names,
        family=np.full(count, "synthetic"),
        dataset=np.full(count, "synthetic"),
        group=names,
        split=np.full(count, "train"),
        seed=np.arange(count, dtype=np.int64),
        config=[
            {"shape": str(shape_name), "schedule": str(schedule_name)}
            for shape_name, schedule_name in zip(shape_kind, schedule_kind, strict=True)
        ],
        loss=_blank(validation * scale, diverged_at),
        train_loss=_blank(train * scale, diverged_at),
        schedule=rate.astype(np.float32),
        diverged_at=diverged_at,
    )


def _log_uniform(low: float, high: float, count: int, rng: np.random.Generator) -> Array:
    """Return (count, 1) numbers, uniform in the logarithm between ``low`` and ``high``."""
    return np.exp(rng.uniform(np.log(low), np.log(high), (count, 1)))


def _with_chance(chance: float, count: int, rng: np.random.Generator) -> Array:
    """Return (count, 1) zeros and ones, one with probability ``chance``."""
    return (rng.random((count, 1)) < chance).astype(np.float64)


# Progress


def _draw_schedules(count: int, rng: np.random.Generator) -> tuple[NDArray[np.str_], Array]:
    """Return the kinds (B,) and the learning rate relative to its peak (B, N), in (0, 1]."""
    kind = rng.choice(SCHEDULES, count, p=_SCHEDULE_WEIGHTS)
    unit = np.linspace(0.0, 1.0, POINTS)[None, :]
    last = _log_uniform(1e-3, 0.3, count, rng)
    cosine = last + (1.0 - last) * 0.5 * (1.0 + np.cos(np.pi * unit))
    drops = np.sort(rng.uniform(0.15, 0.95, (count, 3)), axis=1)
    used = np.arange(3)[None, :] < rng.integers(1, 4, (count, 1))
    passed = ((unit[:, :, None] >= drops[:, None, :]) & used[:, None, :]).sum(axis=2)
    ramp = np.minimum(1.0, (unit + 0.005) / _log_uniform(0.01, 0.25, count, rng))
    choices = {
        "constant": np.ones((count, POINTS)),
        "cosine": cosine,
        "linear": 1.0 - (1.0 - last) * unit,
        "exponential": last**unit,
        "step": _log_uniform(0.08, 0.5, count, rng) ** passed,
        "warmup_cosine": ramp * cosine,
    }
    return kind, np.select([(kind == name)[:, None] for name in choices], list(choices.values()))


def _progress(schedule: Array, rng: np.random.Generator) -> Array:
    """Return the progress (B, N) made at each point, in units of a run at the peak rate; 0 at point 0."""
    power = rng.uniform(0.0, 1.2, (len(schedule), 1))
    step = schedule**power
    step[:, 0] = 0.0
    return np.cumsum(step, axis=1)


# Shapes


def _power(progress: Array, rng: np.random.Generator) -> Array:
    """Return (1 + n / c)**-b: from an early knee (c << 1: most of the fall before point 1) to a late one."""
    knee = _log_uniform(0.02, 300.0, len(progress), rng)
    return (1.0 + progress / knee) ** -_log_uniform(0.08, 4.0, len(progress), rng)


def _exponential(progress: Array, rng: np.random.Generator) -> Array:
    """Return exp(-(n / c)**k), stretched (k < 1) or compressed (k > 1: a slow start)."""
    time = _log_uniform(0.5, 600.0, len(progress), rng)
    return np.exp(-((progress / time) ** rng.uniform(0.35, 1.6, (len(progress), 1))))


def _two_phase(progress: Array, rng: np.random.Generator) -> Array:
    """Return a fast exponential that leaves a share to a slower exponential or power law."""
    count = len(progress)
    fast = np.exp(-progress / _log_uniform(0.2, 15.0, count, rng))
    slow_time = _log_uniform(15.0, 800.0, count, rng)
    slow = np.where(
        _with_chance(0.5, count, rng) > 0,
        np.exp(-progress / slow_time),
        (1.0 + progress / slow_time) ** -rng.uniform(0.3, 3.0, (count, 1)),
    )
    share = rng.uniform(0.05, 0.95, (count, 1))
    return share * fast + (1.0 - share) * slow


def _one_drop(progress: Array, latest: float, rng: np.random.Generator) -> Array:
    """Return a sigmoid in time or in log time, 1 at point 0; the middle may lie beyond the last point."""
    count = len(progress)
    middle = _log_uniform(2.0, latest, count, rng)
    sharpness = _log_uniform(1.5, 40.0, count, rng)
    in_log = _with_chance(0.4, count, rng) > 0
    exponent = np.where(
        in_log, 0.5 * sharpness * np.log((progress + 1.0) / middle), sharpness * (progress / middle - 1.0)
    )
    drop = 1.0 / (1.0 + np.exp(np.clip(exponent, -50.0, 50.0)))
    return drop / drop[:, :1]


def _sigmoid_drop(progress: Array, rng: np.random.Generator) -> Array:
    """Return a plateau, in part sloping a little or reached after a first small fall, and then one drop."""
    count = len(progress)
    share = _with_chance(0.6, count, rng) * rng.uniform(0.0, 0.5, (count, 1))
    return share * _two_phase(progress, rng) + (1.0 - share) * _one_drop(progress, 400.0, rng)


def _staircase(progress: Array, rng: np.random.Generator) -> Array:
    """Return up to four drops between plateaus, some with relapses that pass or stay."""
    count = len(progress)
    weight = rng.gamma(0.8, 1.0, (4, count, 1))
    weight *= np.arange(4)[:, None, None] < rng.integers(1, 5, (1, count, 1))
    weight = (weight + 1e-9) / (weight + 1e-9).sum(axis=0)
    shape = np.zeros_like(progress)
    for level in range(4):
        shape += weight[level] * _one_drop(progress, 300.0, rng)
    point = np.arange(POINTS)[None, :]
    for _ in range(3):
        since = point - rng.uniform(5.0, POINTS, (count, 1))
        depth = _with_chance(0.25, count, rng) * rng.uniform(0.1, 1.0, (count, 1))
        fades = np.exp(-np.maximum(since, 0.0) / _log_uniform(3.0, 1000.0, count, rng))
        shape += (1.0 - shape) * depth * fades * (since >= 0.0)
    return shape


def _mixture(progress: Array, rng: np.random.Generator) -> Array:
    """Return a convex mixture of three of the other shapes."""
    count = len(progress)
    parts = np.stack([draw(progress, rng) for draw in (_power, _exponential, _one_late_drop)])
    weight = rng.dirichlet(np.full(3, 0.9), count).T[:, :, None]
    return (weight * parts).sum(axis=0)


def _one_late_drop(progress: Array, rng: np.random.Generator) -> Array:
    return _one_drop(progress, 300.0, rng)


_DRAW: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "power": _power,
    "exponential": _exponential,
    "two_phase": _two_phase,
    "sigmoid_drop": _sigmoid_drop,
    "staircase": _staircase,
    "mixture": _mixture,
}


def _draw_shapes(progress: Array, rng: np.random.Generator) -> tuple[NDArray[np.str_], Array]:
    """Return the kinds (B,) and the shapes (B, N)."""
    kind = rng.choice(list(_SHAPE_WEIGHTS), len(progress), p=list(_SHAPE_WEIGHTS.values()))
    shape = np.empty_like(progress)
    for name, draw in _DRAW.items():
        rows = np.flatnonzero(kind == name)
        if len(rows):
            shape[rows] = draw(progress[rows], rng)
    return kind, shape


# Level, noise and accidents


def _start_over_floor(count: int, rng: np.random.Generator) -> Array:
    """Return the ratio (B, 1) of the loss before training to the loss at the end of all training, above 1.

    Its logarithm is spread over decades: some runs learn next to nothing, some gain four decades.
    """
    return np.exp(_log_uniform(0.08, 9.0, count, rng) * rng.uniform(0.5, 1.0, (count, 1)))


def _annealed_floor(schedule: Array, progress: Array, rng: np.random.Generator) -> Array:
    """Return loss (B, N) that comes from the size of the steps: it sets in at once, falls with the rate."""
    count = len(schedule)
    height = _with_chance(0.6, count, rng) * _log_uniform(1e-3, 0.25, count, rng)
    return height * schedule ** rng.uniform(0.5, 2.0, (count, 1)) * (1.0 - np.exp(-progress))


def _overfit_upturn(progress: Array, rng: np.random.Generator) -> Array:
    """Return loss (B, N) that is added after some point by over-fitting; most curves have none."""
    count = len(progress)
    since = np.maximum(progress - _log_uniform(5.0, 250.0, count, rng), 0.0) / POINTS
    height = _with_chance(0.15, count, rng) * _log_uniform(0.02, 1.5, count, rng)
    return height * since ** rng.uniform(0.5, 1.5, (count, 1))


def _autocorrelated(count: int, rng: np.random.Generator) -> Array:
    """Return noise (B, N) of unit variance: first-order autoregression, a third with heavy tails."""
    keep = np.where(rng.random(count) < 0.4, 0.0, rng.uniform(0.0, 0.97, count))
    shock = rng.standard_normal((count, POINTS))
    heavy = _with_chance(0.33, count, rng) > 0
    shock = np.where(heavy, shock / np.sqrt(rng.chisquare(5.0, (count, POINTS)) / 5.0) * np.sqrt(0.6), shock)
    noise = np.empty((POINTS, count))
    noise[0] = shock[:, 0]
    fresh = np.sqrt(1.0 - keep**2)
    for point in range(1, POINTS):
        noise[point] = keep * noise[point - 1] + fresh * shock[:, point]
    return noise.T


def _observe(clean: Array, shape: Array, rng: np.random.Generator) -> Array:
    """Return the noisy, positive loss (B, N) that is recorded of a clean one.

    Multiplicative noise changes in size along the curve; additive noise, a share of the whole fall, is for a
    part of the curves largest in transit between the levels. Spikes come alone and pass within a few points.
    """
    count = len(clean)
    point = np.arange(POINTS)[None, :]
    drift = np.exp(rng.normal(0.0, 0.8, (count, 1)) * (point / POINTS - 0.5))
    relative = _log_uniform(3e-4, 0.25, count, rng) * drift
    loss = clean * np.exp(relative * _autocorrelated(count, rng))

    transit = np.where(
        _with_chance(0.5, count, rng) > 0, 1.0, 4.0 * np.clip(shape * (1.0 - shape), 0.0, 0.25) + 0.1
    )
    additive = _with_chance(0.5, count, rng) * _log_uniform(1e-3, 0.3, count, rng)
    fall = np.abs(clean[:, :1] - clean.min(axis=1, keepdims=True))
    loss = loss + additive * fall * transit * _autocorrelated(count, rng)

    spiky = _with_chance(0.15, count, rng) * _log_uniform(0.05, 2.0, count, rng)
    spike = (rng.random((count, POINTS)) < 0.02) * rng.exponential(1.0, (count, POINTS))
    spike[:, 1:] += 0.4 * spike[:, :-1]
    loss = loss * (1.0 + spiky * spike)
    lowest = clean.min(axis=1, keepdims=True) * rng.uniform(0.05, 0.8, (count, 1))
    return np.maximum(loss, lowest)


def _diverge(
    validation: Array, train: Array, rng: np.random.Generator
) -> tuple[Array, Array, NDArray[np.int32]]:
    """Let a few runs grow from some point on, without limit or up to a plateau.

    Returns both losses (B, N) and the first point (B,) at which a run counts as diverged, N where none.
    """
    count = len(validation)
    since = np.maximum(np.arange(POINTS)[None, :] - rng.uniform(1.0, POINTS, (count, 1)), 0.0)
    growth = since * _log_uniform(0.02, 3.0, count, rng)
    fate = rng.random((count, 1))
    limited = np.log1p(_log_uniform(0.3, 30.0, count, rng) * (1.0 - np.exp(-growth)))
    factor = np.exp(np.where(fate < 0.02, np.minimum(growth, 60.0), np.where(fate < 0.05, limited, 0.0)))
    lost = factor > np.exp(12.0)
    diverged_at = np.where(lost.any(axis=1), lost.argmax(axis=1), POINTS).astype(np.int32)
    return validation * factor, train * factor, diverged_at


def _coarsen(loss: Array, rng: np.random.Generator) -> Array:
    """Read a tenth of the curves on a grid of 20 to 1,000 steps of their first loss, never below one step."""
    count = len(loss)
    step = loss[:, :1] / np.round(_log_uniform(20.0, 1000.0, count, rng))
    coarse = np.maximum(np.round(loss / step), 1.0) * step
    return np.where(_with_chance(0.1, count, rng) > 0, coarse, loss)


def _blank(loss: Array, diverged_at: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the loss as float32 with NaN from the point of divergence on."""
    return np.where(np.arange(POINTS)[None, :] < diverged_at[:, None], loss, np.nan).astype(np.float32)
