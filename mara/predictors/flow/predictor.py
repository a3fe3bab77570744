"""The flow predictor: futures sampled by conditional flow matching, and the first passage on them.

One set of starting points serves all prefixes, in antithetic pairs. So a forecast depends on nothing but its
own prefix and target, neighbouring units see the same noise, and the order of a batch does not matter.

Shapes: B prefixes, R questions (each about one prefix), P paths, K knots, F inputs, H horizon.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mara.config.flow import FlowSettings
from mara.curves.corpus import Corpus
from mara.predictors.examples import Examples, draw_examples
from mara.predictors.flow.calibration import Recalibration, context, mean_ncrps
from mara.predictors.flow.examples import Prefixes, draw_prefixes, draw_trials, training_corpus
from mara.predictors.flow.features import Description, describe_query
from mara.predictors.flow.inputs import Standardizer, raw_inputs
from mara.predictors.flow.network import FlowNetwork, Velocity, initialise
from mara.predictors.flow.passage import cut, interval_shares, lowest_so_far, passage_cdf
from mara.predictors.flow.path import draw_times, independent_source, straight_line
from mara.predictors.flow.pool import pooled
from mara.predictors.flow.prior import PathPrior
from mara.predictors.flow.solver import midpoint
from mara.predictors.flow.training import Run, train
from mara.predictors.flow.trajectory import KNOTS
from mara.predictors.flow.window import WindowRatio, draw_tasks
from mara.predictors.forecast import HORIZON, BasePredictor, Forecast, Query
from mara.predictors.trend import log_target

_CHUNK = 16
"""Prefixes that go through the solver together: their activations stay in the processor's cache."""
_PRIOR_PREFIXES = 60_000
"""Most training prefixes that the prior is fitted on: evenly spaced ones, 50,000 of 300,000."""
_WATCHED = 1000
"""Trials behind each line of the training log."""


class FlowPredictor(BasePredictor):
    """Conditional flow matching over the future log-loss trajectory given the observed prefix.

    With ``deadline`` set, crossing times are reweighted by what the window says; see :mod:`.window`.
    """

    learned = "network"

    def __init__(self, settings: FlowSettings | None = None, deadline: bool = False) -> None:
        self.name = "flow_deadline" if deadline else "flow"
        self.deadline = deadline
        self.settings = settings if settings is not None else FlowSettings()
        self.prior: PathPrior
        self.standardizer: Standardizer
        self.network: FlowNetwork
        self.velocity: Velocity
        self.start: NDArray[np.float32]
        self.ratio: WindowRatio | None = None
        self.recalibration: Recalibration | None = None

    def fit(self, corpus: Corpus, rng: np.random.Generator, run: Run | None = None) -> Self:
        """Fit on the training split's predictor part and synthetic curves, calibrate on its own split.

        ``run`` says where to keep the checkpoint and the training log.
        """
        settings = self.settings
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        curves, recorded = training_corpus(corpus, settings.examples, rng)
        examples = draw_prefixes(curves, recorded, settings.examples, settings.examples.examples, rng)
        watched = draw_examples(corpus.of(split="calibration"), _WATCHED, False, rng)
        some = np.arange(0, len(examples), 1 + len(examples) // _PRIOR_PREFIXES)
        self.prior = PathPrior.fit(examples.description.rows(some), examples.future[some])
        white, inputs = self._prepared(examples)
        missing = np.isnan(white)
        white[missing] = rng.standard_normal(int(missing.sum()))
        self.standardizer = Standardizer.fit(inputs)
        half = torch.randn(settings.paths // 2, KNOTS, generator=generator)
        self.start = torch.cat([half, -half]).numpy()
        data = torch.from_numpy(white)
        features = torch.from_numpy(self.standardizer(inputs))
        more = self._more_conditions(curves, examples, rng)
        network = self._build(features.shape[1])
        initialise(network, generator)
        noise = settings.training.input_noise

        def objective(network: FlowNetwork, index: Tensor, generator: torch.Generator) -> Tensor:
            target, seen = data[index], features[index]
            seen = seen + noise * torch.randn(seen.shape, generator=generator)
            source = independent_source(target, generator)
            time = draw_times(len(index), generator)
            point, velocity = straight_line(source, target, time)
            predicted = network(point, time, seen, *(part[index] for part in more))
            return (predicted.float() - velocity).square().mean()

        def watch(averaged: FlowNetwork) -> dict[str, float]:
            self._adopt(averaged)
            return {"calibration_ncrps": mean_ncrps(self._trial_cdf(watched)[0], watched)}

        averaged = train(network, objective, len(examples), settings.training, generator, run or Run(), watch)
        self._adopt(averaged)
        return self.calibrate(corpus, rng)

    def _prepared(self, examples: Prefixes) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Normalised innovations (B, K), NaN where a future has ended, and raw inputs (B, F)."""
        parts = []
        for rows in np.array_split(np.arange(len(examples)), 1 + len(examples) // 16384):
            description = examples.description.rows(rows)
            white = self.prior.to_white(description, examples.future[rows]).astype(np.float32)
            parts.append((white, raw_inputs(description, self.prior)))
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def calibrate(self, corpus: Corpus, rng: np.random.Generator) -> Self:
        """Fit what stands on the trained network: the window's ratio if asked for, and the calibration."""
        settings, self.ratio, self.recalibration = self.settings, None, None
        if self.deadline:
            tasks = draw_tasks(corpus.of(split="train", part="predictor"), settings.window.tasks, rng)
            share = interval_shares(self._trial_cdf(tasks)[0])
            generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
            self.ratio = WindowRatio.fit(share, tasks, settings.window, generator)
        trials = draw_trials(corpus, settings.examples, self.deadline, rng)
        cdf, where = self._trial_cdf(trials)
        self.recalibration = Recalibration.fit(cdf, trials, where)
        return self

    def with_deadline(self, corpus: Corpus, rng: np.random.Generator) -> Self:
        """The same network with the window as an input; only what stands on the network is fitted anew."""
        other = copy.copy(self)
        other.name, other.deadline = f"{self.name}_deadline", True
        return other.calibrate(corpus, rng)

    def variant(
        self,
        corpus: Corpus,
        rng: np.random.Generator,
        paths: int | None = None,
        solver_steps: int | None = None,
        kalman_share: float | None = None,
    ) -> Self:
        """The same network with fewer paths, other solver steps or another share, calibrated anew."""
        other = copy.copy(self)
        asked = {
            "paths": paths,
            "solver_steps": solver_steps,
            "kalman_share": kalman_share,
            "rough_kalman_share": kalman_share,
        }
        other.settings = self.settings.model_copy(update={k: v for k, v in asked.items() if v is not None})
        half = other.settings.paths // 2
        first, second = np.split(self.start, 2)
        other.start = np.concatenate([first[:half], second[:half]])
        return other.calibrate(corpus, rng)

    def _build(self, features: int) -> FlowNetwork:
        """An untrained network."""
        return FlowNetwork(features, KNOTS, self.settings.hidden, self.settings.width, self.settings.depth)

    def _more_conditions(
        self, curves: Corpus, examples: Prefixes, rng: np.random.Generator
    ) -> tuple[Tensor, ...]:
        """What the encoder reads of each training example (B, ...) besides its prefix: nothing."""
        return ()

    def _adopt(self, network: FlowNetwork) -> None:
        """Forecast with a copy of ``network`` from now on."""
        self.network = copy.deepcopy(network)
        self.velocity = copy.deepcopy(network.velocity).to(self._kind())

    def _kind(self) -> torch.dtype:
        return torch.bfloat16 if self.settings.training.half_precision else torch.float32

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "velocity"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "network" in state:
            self._adopt(state["network"])

    def paths(self, description: Description, *more: Tensor) -> NDArray[np.float32]:
        """Sampled knots (B, P, K) relative to the levels; ``more`` is what else the encoder reads."""
        self.check_fitted()
        inputs = self.standardizer(raw_inputs(description, self.prior))
        white = np.empty((len(description), *self.start.shape), dtype=np.float32)
        start = torch.from_numpy(self.start)
        kind = self._kind()
        with torch.inference_mode():
            shifts = self.network.encoder(torch.from_numpy(inputs), *more).to(kind)
            for first in range(0, len(description), _CHUNK):
                steer = shifts[first : first + _CHUNK]

                def field(x: Tensor, time: float, steer: Tensor = steer) -> Tensor:
                    return self.velocity(x.to(kind), torch.full((1, 1), time, dtype=kind), steer).float()

                begin = start.expand(len(steer), -1, -1)
                white[first : first + _CHUNK] = midpoint(field, begin, self.settings.solver_steps).numpy()
        return self.prior.to_future(description, white)

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """Distributions on 0..horizon; beyond the last knot, 180 units, nothing more is reached."""
        return self.forecast_many_targets(query, np.arange(len(query)), query.target, query.window, horizon)

    def forecast_many_targets(
        self,
        prefixes: Query,
        owner: NDArray[np.integer],
        target: NDArray[np.floating],
        window: NDArray[np.floating],
        horizon: int = HORIZON,
    ) -> Forecast:
        """R forecasts that share the paths of B prefixes, question r about prefix ``owner[r]`` (R,) of them.

        See :class:`..forecast.ManyTargets`.
        """
        questions = prefixes.rows(owner, target, window)
        return self.finish(*self._crossed(prefixes, questions, owner), questions, horizon)

    def finish(
        self, cdf: NDArray[np.float32], where: NDArray[np.float64], questions: Query, horizon: int
    ) -> Forecast:
        """Apply window, calibration and what the prefix decides to pooled distributions (R, 181).

        ``where`` (R, 2) is the context of each question, see :func:`.calibration.context`.
        """
        cdf = self._reweighted(cdf, questions)
        if self.recalibration is not None:
            cdf = self.recalibration(cdf, questions.window, where)
        return Forecast.from_cdf(cut(cdf, horizon)).settled(questions)

    def _reweighted(self, cdf: NDArray[np.float32], questions: Query) -> NDArray[np.float32]:
        return cdf if self.ratio is None else self.ratio(cdf, questions.length - 1, questions.window)

    def _trial_cdf(self, trials: Examples) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Uncalibrated distributions (B, 181) of examples, and their contexts (B, 2)."""
        query = trials.query
        cdf, where = self._crossed(query, query, np.arange(len(query)))
        return self._reweighted(cdf, query), where

    def _crossed(
        self, prefixes: Query, questions: Query, owner: NDArray[np.integer]
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Pooled distributions (R, 181) of questions about prefixes ``owner`` (R,) of B; contexts (R, 2)."""
        description = describe_query(prefixes)
        return self.crossings(description, self.paths(description), questions, owner)

    def crossings(
        self,
        description: Description,
        paths: NDArray[np.float32],
        questions: Query,
        owner: NDArray[np.integer],
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Pooled distributions (R, 181) and contexts (R, 2) of questions about prefixes ``owner`` (R,) of B.

        The shares of a prefix's paths (B, P, K) that have crossed the target, pooled with the Kalman filter's
        forecast; see :func:`.pool.pooled`.
        """
        lowest = lowest_so_far(description, paths)
        cdf = passage_cdf(lowest, owner, log_target(questions) - description.level[owner])
        where = context(description)[owner]
        return pooled(cdf, questions, where, self.settings), where
