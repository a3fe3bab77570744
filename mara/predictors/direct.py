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
from mara.predictors.flow.calibration import Recalibration, context, mean_ncrps
from mara.predictors.flow.examples import draw_prefixes, draw_questions, draw_trials, training_corpus
from mara.predictors.flow.features import Description, describe_query
from mara.predictors.flow.inputs import Standardizer, raw_inputs, target_inputs
from mara.predictors.flow.network import PlainModule, initialise
from mara.predictors.flow.passage import cut, interval_cdf
from mara.predictors.flow.pool import pooled
from mara.predictors.flow.prior import PathPrior
from mara.predictors.flow.training import Run, train
from mara.predictors.flow.trajectory import KNOT, KNOTS
from mara.predictors.flow.window import crossing_loss
from mara.predictors.forecast import HORIZON, BasePredictor, Forecast, Query
from mara.predictors.trend import log_target

_PRIOR_PREFIXES = 40_000
"""Prefixes on which the prior is fitted that the target is compared with. It only makes inputs here, so fewer do
than in the flow, which starts from it."""


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


class DirectPredictor(BasePredictor):
    """One-pass categorical forecast of the crossing time; ``deadline`` makes the window an input."""

    learned = "recalibration"

    def __init__(self, settings: DirectSettings | None = None, deadline: bool = False) -> None:
        self.name = "direct_deadline" if deadline else "direct"
        self.settings = settings if settings is not None else DirectSettings()
        self.deadline = deadline
        self.prior: PathPrior
        self.standardizer: Standardizer
        self.head: CrossingHead
        self.recalibration: Recalibration | None = None

    def fit(self, corpus: Corpus, rng: np.random.Generator, run: Run | None = None) -> Self:
        """Fit on as many examples as the flow, from the same mix of curves, and calibrate on the same trials."""
        settings = self.settings
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        curves, recorded = training_corpus(corpus, settings.examples, rng)
        prefixes = draw_prefixes(curves, recorded, settings.examples, _PRIOR_PREFIXES, rng)
        self.prior = PathPrior.fit(prefixes.description, prefixes.future)
        examples = draw_questions(curves, recorded, settings.examples, self.deadline, rng)
        inputs = self._prepared(examples.query)
        self.standardizer = Standardizer.fit(inputs)
        data = torch.from_numpy(self.standardizer(inputs))
        interval = torch.from_numpy(np.searchsorted(KNOT, examples.remaining))
        last = torch.from_numpy(np.searchsorted(KNOT, examples.left, side="right"))
        trials = draw_trials(corpus, settings.examples, self.deadline, rng)
        head = CrossingHead(inputs.shape[1], settings.hidden, settings.depth)
        initialise(head, generator)
        noise = settings.training.input_noise

        def objective(network: CrossingHead, index: Tensor, generator: torch.Generator) -> Tensor:
            features = data[index]
            features = features + noise * torch.randn(features.shape, generator=generator)
            return crossing_loss(network(features), interval[index], last[index])

        def watch(averaged: CrossingHead) -> dict[str, float]:
            self.head = copy.deepcopy(averaged)
            return {"calibration_ncrps": mean_ncrps(self._cdf(trials.query)[0], trials)}

        self.head = train(head, objective, len(examples), settings.training, generator, run or Run(), watch)
        cdf, where = self._cdf(trials.query)
        self.recalibration = Recalibration.fit(cdf, trials, where)
        return self

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """Distributions on 0..horizon; nothing is forecast beyond the last knot."""
        self.check_fitted()
        assert self.recalibration is not None
        cdf, where = self._cdf(query)
        cdf = self.recalibration(cdf, query.window, where)
        return Forecast.from_cdf(cut(cdf, horizon)).settled(query)

    def _prepared(self, query: Query) -> NDArray[np.float32]:
        """Unstandardised inputs (B, F) of many questions, a bounded number at a time."""
        parts = []
        for rows in np.array_split(np.arange(len(query)), 1 + len(query) // 16384):
            some = query.rows(rows)
            parts.append(self._inputs(describe_query(some), some))
        return np.concatenate(parts)

    def _inputs(self, description: Description, query: Query) -> NDArray[np.float32]:
        """Unstandardised inputs (B, F)."""
        columns = [target_inputs(description, self.prior, log_target(query) - description.level)]
        if self.deadline:
            columns.append(window_inputs(description.units, query.window))
        return np.concatenate([*columns, raw_inputs(description, self.prior)], axis=1)

    def _cdf(self, query: Query) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Pooled, uncalibrated distributions (B, 181), and the contexts (B, 2) of the questions."""
        description = describe_query(query)
        inputs = self.standardizer(self._inputs(description, query))
        half = self.settings.training.half_precision
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=half):
            share = self.head(torch.from_numpy(inputs)).float().softmax(dim=1).numpy()
        where = context(description)
        return pooled(interval_cdf(share), query, where, self.settings), where
