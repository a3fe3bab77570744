"""The distilled head: one forward pass that gives the distribution that the sampled flow would give.

The teacher's paths are drawn once for many prefixes and crossed with many targets; the head of
:mod:`..direct` learns the shares of its intervals. What is lost against the teacher is measured on questions
from the calibration split and kept with the predictor.

Shapes: B questions, K knots, L = K + 1 intervals, F inputs, H horizon.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from mara.config.flow import DistilledSettings
from mara.curves.corpus import Corpus
from mara.predictors.direct import CrossingHead
from mara.predictors.examples import draw_examples
from mara.predictors.flow.calibration import context
from mara.predictors.flow.examples import hide_schedules, training_corpus
from mara.predictors.flow.features import Description, describe_query
from mara.predictors.flow.inputs import FARTHEST, Standardizer, raw_inputs, target_inputs
from mara.predictors.flow.lightweight import fields_of, prefixed, save_arrays
from mara.predictors.flow.network import initialise
from mara.predictors.flow.passage import interval_cdf, interval_shares
from mara.predictors.flow.predictor import FlowPredictor
from mara.predictors.flow.training import Run, train
from mara.predictors.forecast import HORIZON, BasePredictor, Forecast, Query
from mara.predictors.trend import log_target

_BATCH = 1024
"""Questions that are answered together: their activations stay in the processor's cache."""
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


class DistilledPredictor(BasePredictor):
    """One pass in place of the flow's 64 paths; the window and the calibration are the teacher's own."""

    learned = "head"

    def __init__(self, teacher: FlowPredictor, settings: DistilledSettings | None = None) -> None:
        self.name = teacher.name.replace("flow", "flow_distilled")
        self.teacher = teacher
        self.settings = settings if settings is not None else DistilledSettings()
        self.standardizer: Standardizer
        self.head: CrossingHead
        self.lost: dict[str, float] = {}

    def fit(self, corpus: Corpus, rng: np.random.Generator, run: Run | None = None) -> Self:
        """Fit the teacher if it is not, then the head to it; ``run`` is the head's."""
        if self.teacher.recalibration is None:
            self.teacher.fit(corpus, rng)
        settings, teacher = self.settings, self.teacher
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        curves, _ = training_corpus(corpus, teacher.settings.examples, rng)
        asked = draw_examples(curves, settings.prefixes, False, rng).query
        asked = hide_schedules(asked, teacher.settings.examples.schedule_dropped, rng)
        description = describe_query(asked)
        owner = np.repeat(np.arange(len(asked)), settings.targets)
        best = np.log(asked.best_smoothed())[owner] - description.level[owner]
        log_target = best - np.exp(rng.uniform(np.log(0.003), np.log(3.0), len(owner)))
        share = torch.from_numpy(self._taught(asked, description, owner, log_target))
        prefix = raw_inputs(description, teacher.prior)
        target = target_inputs(description.rows(owner), teacher.prior, log_target)
        first = np.concatenate([target[:: settings.targets], prefix], axis=1)
        self.standardizer = Standardizer.fit(first)
        data = torch.from_numpy(prefix), torch.from_numpy(target)
        mean, spread = torch.from_numpy(self.standardizer.mean), torch.from_numpy(self.standardizer.spread)
        head = CrossingHead(first.shape[1], settings.hidden, settings.depth)
        initialise(head, generator)

        def objective(network: CrossingHead, index: Tensor, generator: torch.Generator) -> Tensor:
            raw = torch.cat([data[1][index], data[0][index // settings.targets]], dim=1)
            inputs = ((raw - mean) / spread).clip(-FARTHEST, FARTHEST)
            return functional.cross_entropy(network(inputs).float(), share[index])

        self.head = train(head, objective, len(owner), settings.training, generator, run or Run())
        self.lost = self._compare(
            draw_examples(corpus.of(split="calibration"), settings.compared, False, rng).query
        )
        return self

    def _taught(
        self,
        asked: Query,
        description: Description,
        owner: NDArray[np.int64],
        log_target: NDArray[np.float64],
    ) -> NDArray[np.float32]:
        """The teacher's shares (B, L) of the intervals for log targets (B,), relative to the levels."""
        target = np.exp(log_target + description.level[owner])
        parts = []
        for rows in np.array_split(np.arange(len(owner)), 1 + len(owner) // 16384):
            first, last = owner[rows[0]], owner[rows[-1]] + 1
            some = description.rows(np.arange(first, last))
            questions = asked.rows(owner[rows], target[rows])
            cdf, _ = self.teacher.crossings(some, self.teacher.paths(some), questions, owner[rows] - first)
            parts.append(interval_shares(cdf))
        return np.concatenate(parts)

    def _compare(self, query: Query) -> dict[str, float]:
        """Mean distance of the cdfs and of quantiles to the teacher's, as fractions of the horizon."""
        mine, teachers = self.forecast(query), self.teacher.forecast(query)
        lost = {"cdf": float(np.abs(mine.cdf - teachers.cdf).mean())}
        for level in QUANTILES:
            ends = [np.minimum(forecast.quantile(level), HORIZON) for forecast in (mine, teachers)]
            lost[f"quantile {level}"] = float(np.abs(ends[0] - ends[1]).mean() / HORIZON)
        return lost

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """Distributions on 0..horizon, calibrated as the teacher's."""
        self.check_fitted()
        parts = [
            self._forecast(query.rows(rows), horizon)
            for rows in np.array_split(np.arange(len(query)), 1 + len(query) // _BATCH)
        ]
        return Forecast(np.concatenate([p.cdf for p in parts]), np.concatenate([p.point for p in parts]))

    def _forecast(self, query: Query, horizon: int) -> Forecast:
        description = describe_query(query)
        cdf = interval_cdf(self._shares(description, log_target(query) - description.level))
        return self.teacher.finish(cdf, context(description), query, horizon)

    def _shares(self, description: Description, log_target: NDArray[np.float64]) -> NDArray[np.float32]:
        prior = self.teacher.prior
        raw = [target_inputs(description, prior, log_target), raw_inputs(description, prior)]
        inputs = self.standardizer(np.concatenate(raw, axis=1))
        with torch.inference_mode():
            return self.head(torch.from_numpy(inputs)).softmax(dim=1).numpy()

    def export(self, path: Path) -> None:
        """Write all that a forecast needs as plain arrays, for :mod:`.lightweight`."""
        self.check_fitted()
        teacher = self.teacher
        assert teacher.recalibration is not None
        arrays = {
            "name": np.array(self.name),
            **prefixed("prior", fields_of(teacher.prior)),
            **prefixed("standardizer", fields_of(self.standardizer)),
            **prefixed("head", _weights(self.head)),
            **prefixed("windowed", fields_of(teacher.recalibration.windowed)),
            **prefixed("plain", fields_of(teacher.recalibration.plain)),
        }
        if teacher.ratio is not None:
            arrays |= prefixed("ratio", _weights(teacher.ratio.network))
        save_arrays(path, arrays)


def _weights(network: nn.Module) -> dict[str, NDArray]:
    return {name: value.numpy() for name, value in network.state_dict().items()}
