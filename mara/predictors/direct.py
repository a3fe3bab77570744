"""The direct head: one pass from prefix and target to the distribution of the crossing time, no flow.

It reads what the flow reads and, besides, where the target lies in the flow's prior at every knot. Its
categories are the intervals between knots and "beyond". It is the control that the flow has to beat.

Shapes: B prefixes, R questions, K knots, F inputs, H horizon.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from mara.config.flow import DirectSettings
from mara.curves.corpus import Corpus
from mara.predictors.examples import draw_examples
from mara.predictors.flow.calibration import Recalibration, mean_ncrps
from mara.predictors.flow.examples import draw_prefixes, training_corpus
from mara.predictors.flow.features import BEST, Description, describe_query
from mara.predictors.flow.inputs import Standardizer, raw_inputs
from mara.predictors.flow.network import PlainModule, initialise
from mara.predictors.flow.passage import cut
from mara.predictors.flow.prior import PathPrior, slope_mean
from mara.predictors.flow.training import Run, train
from mara.predictors.flow.trajectory import KNOT, KNOTS
from mara.predictors.flow.window import crossing_loss
from mara.predictors.forecast import HORIZON, BasePredictor, Forecast, Query

_PRIOR_PREFIXES = 40_000
"""Prefixes on which the prior is fitted that the target is compared with."""
_START = np.concatenate([[0], KNOT[:-1]])


def target_inputs(description: Description, prior: PathPrior, log_target: NDArray) -> NDArray[np.float32]:
    """Where log targets (B,), relative to the levels, lie: (B, K + 2)."""
    scale = prior.scale(description)
    gap = np.maximum(log_target, -20.0)[:, None]
    return np.column_stack(
        [
            np.arcsinh((gap - slope_mean(description)) / scale),
            np.arcsinh(gap / 0.02),
            np.arcsinh((gap[:, 0] - description.shape[:, BEST]) / 0.02),
        ]
    ).astype(np.float32)


def window_inputs(units: NDArray[np.int64], window: NDArray[np.floating]) -> NDArray[np.float32]:
    """What a window (B,) says beside the units trained (B,): (B, 3), all 0 where it is not given."""
    given = np.isfinite(window)
    known = np.where(given, window, 1.0)
    columns = [np.log(known), (known - units) / 60.0, np.ones_like(known)]
    return np.where(given[:, None], np.column_stack(columns), 0.0).astype(np.float32)


class CrossingHead(PlainModule):
    """Residual network with one logit an interval: (B, F) -> (B, K + 1)."""

    def __init__(self, inputs: int, hidden: int, depth: int) -> None:
        super().__init__(inputs, hidden, depth)
        self.enter = nn.Linear(inputs, hidden)
        self.widen = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(depth))
        self.narrow = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(depth))
        self.leave = nn.Linear(hidden, KNOTS + 1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (B, K + 1); the last one is of a crossing beyond the last knot or never."""
        state = self.enter(inputs)
        for widen, narrow in zip(self.widen, self.narrow, strict=True):
            state = state + narrow(functional.silu(widen(functional.silu(state))))
        return self.leave(functional.silu(state))


def interval_cdf(share: NDArray[np.float32]) -> NDArray[np.float32]:
    """cdf (B, 181) of shares (B, K + 1) of the intervals, even inside each."""
    at_knot = np.concatenate([np.zeros((len(share), 1)), share[:, :KNOTS].cumsum(axis=1)], axis=1)
    unit = np.arange(KNOT[-1] + 1)
    after = np.searchsorted(KNOT, unit)
    part = (unit - _START[after]) / (KNOT - _START)[after]
    return (at_knot[:, after] * (1.0 - part) + at_knot[:, after + 1] * part).astype(np.float32)


class DirectPredictor(BasePredictor):
    """One-pass categorical forecast of the crossing time; ``deadline`` makes the window an input."""

    def __init__(self, settings: DirectSettings | None = None, deadline: bool = False) -> None:
        self.name = "direct_deadline" if deadline else "direct"
        self.settings = settings if settings is not None else DirectSettings()
        self.deadline = deadline
        self.prior: PathPrior
        self.standardizer: Standardizer
        self.head: CrossingHead
        self.recalibration: Recalibration | None = None

    def fit(self, corpus: Corpus, rng: np.random.Generator, run: Run | None = None) -> Self:
        """Fit and calibrate on the same curves, and as many examples, as the flow."""
        settings = self.settings
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        curves, recorded = training_corpus(corpus, settings.examples, rng)
        prefixes = draw_prefixes(curves, recorded, settings.examples, _PRIOR_PREFIXES, rng)
        self.prior = PathPrior.fit(prefixes.description, prefixes.future)
        examples = draw_examples(curves, settings.examples.examples, self.deadline, rng)
        examples.query.schedule[rng.random(len(examples)) < settings.examples.schedule_dropped] = np.nan
        inputs = self._inputs(describe_query(examples.query), examples.query)
        self.standardizer = Standardizer.fit(inputs)
        data = torch.from_numpy(self.standardizer(inputs))
        interval = torch.from_numpy(np.searchsorted(KNOT, examples.remaining))
        last = torch.from_numpy(np.searchsorted(KNOT, examples.left, side="right"))
        trials = draw_examples(corpus.of(split="calibration"), settings.examples.trials, self.deadline, rng)
        head = CrossingHead(inputs.shape[1], settings.hidden, settings.depth)
        initialise(head, generator)
        noise = settings.training.input_noise

        def objective(network: CrossingHead, index: Tensor, generator: torch.Generator) -> Tensor:
            features = data[index]
            features = features + noise * torch.randn(features.shape, generator=generator)
            return crossing_loss(network(features), interval[index], last[index])

        def watch(averaged: CrossingHead) -> dict[str, float]:
            self.head = copy.deepcopy(averaged)
            return {"calibration_ncrps": mean_ncrps(self._cdf(trials.query), trials)}

        self.head = train(head, objective, len(examples), settings.training, generator, run or Run(), watch)
        self.recalibration = Recalibration.fit(self._cdf(trials.query), trials)
        return self

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """Distributions on 0..horizon; nothing is forecast beyond the last knot."""
        assert self.recalibration is not None
        return Forecast.from_cdf(cut(self.recalibration(self._cdf(query), query.window), horizon)).settled(
            query
        )

    def _inputs(self, description: Description, query: Query) -> NDArray[np.float32]:
        """Unstandardised inputs (B, F)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_target = np.nan_to_num(np.log(query.target.astype(np.float64)), nan=-np.inf)
        columns = [target_inputs(description, self.prior, log_target - description.level)]
        if self.deadline:
            columns.append(window_inputs(description.units, query.window))
        return np.concatenate([*columns, raw_inputs(description, self.prior)], axis=1)

    def _cdf(self, query: Query) -> NDArray[np.float32]:
        inputs = self.standardizer(self._inputs(describe_query(query), query))
        half = self.settings.training.half_precision
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=half):
            share = self.head(torch.from_numpy(inputs)).float().softmax(dim=1).numpy()
        return interval_cdf(share)
