"""Kalman filters of a local linear trend of the log loss, averaged over how fast the trend may turn.

Every model is a line in log-log or semi-log coordinates whose slope does a random walk: the idea of LaiRA's
filter on the parameters of a power law, without its acceleration, which runs away over a long horizon. The
observation noise is estimated along the prefix, the models are averaged by how well they have predicted the
next point lately (dynamic model averaging; Raftery, Kárný & Ettler, 2010), and the demand is read off as the
chance that the smoothed loss is below the target at some unit up to b.

Shape legend: B questions, K newest points, M models, H horizon. All variances are in units of the observation
noise.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mara.config.predictors import KalmanSettings
from mara.curves.smoothing import SMOOTHING_POINTS
from mara.predictors.forecast import HORIZON, BasePredictor, Forecast, Query
from mara.predictors.trend import log_target, newest

Floats = NDArray[np.float64]

UNKNOWN = 100.0
"""Variance of the level before the first point, in squared log losses."""
STATE = 7
"""Columns of a filter's state: level, slope, their variances p11, p12, p22, noise sum, noise count."""


class Kalman(BasePredictor):
    """Averaged local linear trends; nothing is fitted on other curves."""

    name = "kalman"

    def __init__(self, settings: KalmanSettings | None = None) -> None:
        self.settings = settings or KalmanSettings()
        turning = [(True, q) for q in self.settings.turning_loglog]
        turning += [(False, q) for q in self.settings.turning_semilog]
        self.over_log_units = np.array([over_log for over_log, _ in turning])
        self.turning = np.array([q for _, q in turning])

    def filtered(self, unit: Floats, log_loss: Floats, known: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Run the models over points (B, K), oldest first: states (B, M, STATE) and weights (B, M)."""
        s = self.settings
        prior = np.array([s.prior_noise, s.prior_slope, s.prior_evidence, s.noise_memory, s.model_memory])
        return _filter(unit, log_loss, known, self.over_log_units, self.turning, prior)

    def moments(
        self, unit: Floats, log_loss: Floats, known: NDArray[np.bool_], units: Floats, ahead: NDArray
    ) -> tuple[Floats, Floats]:
        """Mean and deviation (B, A) of the log loss ``ahead`` (A,) units after ``units`` (B,) ones."""
        state, weight = self.filtered(unit, log_loss, known)
        return _moments(state, weight, units, self.over_log_units, self.turning, ahead.astype(np.float64))

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """Mixture of the models' chances to have been below the target."""
        s = self.settings
        points = newest(query, s.memory)
        state, weight = self.filtered(points.unit, points.log_loss, points.known)
        cdf = _mixture(
            state,
            weight,
            points.log_loss[:, -(SMOOTHING_POINTS - 1) :],
            points.known[:, -(SMOOTHING_POINTS - 1) :],
            query.length.astype(np.float64) - 1,
            log_target(query),
            self.over_log_units,
            self.turning,
            s.widening,
            horizon,
        )
        return Forecast.from_cdf(cdf).settled(query)


@njit(cache=True)
def _ahead(state: Floats, turning: float, step: float) -> tuple[float, float, float, float]:
    """Level, p11, p12, p22 after ``step``; the slope walks with variance ``turning`` per unit of it."""
    level, slope, p11, p12, p22 = state[0], state[1], state[2], state[3], state[4]
    return (
        level + slope * step,
        p11 + 2 * step * p12 + step**2 * p22 + turning * step**3 / 3,
        p12 + step * p22 + turning * step**2 / 2,
        p22 + turning * step,
    )


@njit(cache=True)
def _filter(
    unit: Floats,
    log_loss: Floats,
    known: NDArray[np.bool_],
    over_log_units: NDArray[np.bool_],
    turning: Floats,
    prior: Floats,
) -> tuple[Floats, Floats]:
    """Run M models over the points (B, K), skipping unknown ones: states (B, M, STATE) and weights (B, M)."""
    count, newest_points = unit.shape
    models = len(turning)
    prior_noise, prior_slope, prior_evidence, noise_memory, model_memory = prior
    states = np.zeros((count, models, STATE))
    weights = np.zeros((count, models))
    for b in range(count):
        for m in range(models):
            state = states[b, m]
            state[2] = UNKNOWN / prior_noise**2
            state[4] = (prior_slope / prior_noise) ** 2
            state[5] = prior_evidence * prior_noise**2
            state[6] = prior_evidence
            started = False
            for k in range(newest_points):
                if not known[b, k]:
                    continue
                step = math.log((unit[b, k] + 1) / unit[b, k]) if over_log_units[m] and started else 1.0
                level, p11, p12, p22 = _ahead(state, turning[m], step if started else 0.0)
                innovation = log_loss[b, k] - level
                spread = p11 + 1
                scaled = innovation**2 / spread
                noise, evidence = state[5] / state[6], state[6]
                if started:
                    score = -0.5 * math.log(spread * noise)
                    score -= 0.5 * (evidence + 1) * math.log1p(scaled / (noise * evidence))
                    weights[b, m] = model_memory * weights[b, m] + score
                    state[5] = noise_memory * state[5] + scaled
                    state[6] = noise_memory * state[6] + 1
                state[0] = level + p11 / spread * innovation
                state[1] += p12 / spread * innovation
                state[2] = p11 / spread
                state[3] = p12 / spread
                state[4] = p22 - p12**2 / spread
                started = True
        weights[b] = np.exp(weights[b] - weights[b].max())
        weights[b] /= weights[b].sum()
    return states, weights


@njit(cache=True)
def _moments(
    states: Floats,
    weights: Floats,
    units: Floats,
    over_log_units: NDArray[np.bool_],
    turning: Floats,
    ahead: Floats,
) -> tuple[Floats, Floats]:
    """Mean and deviation (B, A) of the mixture of the models' log losses, without the observation noise."""
    count, models = weights.shape
    mean = np.zeros((count, ahead.size))
    deviation = np.zeros((count, ahead.size))
    for b in range(count):
        for a in range(ahead.size):
            first, second = 0.0, 0.0
            log_step = math.log((units[b] + 1 + ahead[a]) / (units[b] + 1))
            for m in range(models):
                step = log_step if over_log_units[m] else ahead[a]
                level, variance, _, _ = _ahead(states[b, m], turning[m], step)
                first += weights[b, m] * level
                second += weights[b, m] * (level**2 + variance * states[b, m, 5] / states[b, m, 6])
            mean[b, a] = first
            deviation[b, a] = math.sqrt(max(second - first**2, 0.0))
    return mean, deviation


@njit(cache=True)
def _mixture(
    states: Floats,
    weights: Floats,
    past: Floats,
    past_known: NDArray[np.bool_],
    units: Floats,
    target: Floats,
    over_log_units: NDArray[np.bool_],
    turning: Floats,
    widening: float,
    horizon: int,
) -> Floats:
    """Weighted chances (B, H+1) to have been below the log target (B,) within b units.

    past: (B, up to 4) newest log losses, which the smoothed loss of the first units ahead still contains. A
    logistic distribution of the right variance stands for the forecast error: its tails are heavier than the
    normal's, as those of real errors are.
    """
    count, models = weights.shape
    span = SMOOTHING_POINTS
    cdf = np.zeros((count, horizon + 1))
    path = np.empty(horizon + span)
    sharpness = math.pi / math.sqrt(3.0) / widening
    for b in range(count):
        for m in range(models):
            if weights[b, m] < 1e-4:
                continue
            state = states[b, m]
            path[:span] = state[0]
            for k in range(past.shape[1]):
                if past_known[b, k]:
                    path[span - past.shape[1] + k] = past[b, k]
            noise = state[5] / state[6]
            best = 0.0
            for h in range(1, horizon + 1):
                step = math.log((units[b] + 1 + h) / (units[b] + 1)) if over_log_units[m] else float(h)
                level, variance, _, _ = _ahead(state, turning[m], step)
                path[span - 1 + h] = level
                smoothed = path[h : h + span].mean()
                deviation = math.sqrt(noise * (variance + 1 / span))
                z = sharpness * (target[b] - smoothed) / deviation
                if z > -40.0:
                    best = max(best, 1 / (1 + math.exp(-z)))
                cdf[b, h] += weights[b, m] * best
    return cdf
