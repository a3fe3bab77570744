"""The flow that also knows the run's configuration and a few finished runs of the same group.

A cluster keeps the curves of earlier runs. Each becomes a token: its own future after as many units as the
present run has had, how its past differs from the present one's, and how its configuration does. One more
token holds the present configuration. The encoder of the prefix attends to the tokens (cross-attention),
once, before the solver. Everything is relative to the present prefix, so scale still changes nothing.

Shapes: B prefixes, R earlier runs, S = R + 1 tokens, T numbers a token, W width, K knots, N points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from mara.config.flow import FlowSettings
from mara.curves.corpus import Corpus
from mara.predictors.flow.examples import Prefixes
from mara.predictors.flow.features import (
    LAG,
    PLAIN_FEATURES,
    SCHEDULE_FEATURES,
    Description,
    describe,
    describe_query,
)
from mara.predictors.flow.inputs import FINE
from mara.predictors.flow.network import FlowNetwork
from mara.predictors.flow.predictor import FlowPredictor
from mara.predictors.flow.trajectory import KNOTS, future_knots
from mara.predictors.forecast import HORIZON, Forecast, Query

RUNS = 3
"""Most earlier runs that are looked at."""
_LAGS = len(LAG) - 1
_SETTINGS = ("learning_rate", "batch_size", "steps_per_unit", "weight_decay", "label_noise", "dropout")
_KINDS = ("optimizer", "schedule")
_OPTIMIZERS = ("sgd", "momentum", "nesterov", "rmsprop", "adam")
_CONFIGURATION = len(_SETTINGS) + len(_OPTIMIZERS) + 1
_KINSHIP = len(_SETTINGS) + len(_KINDS) + 1
TOKEN = KNOTS + _LAGS + 1 + PLAIN_FEATURES + SCHEDULE_FEATURES + _KINSHIP + _CONFIGURATION
HEADS = 4
_CHOICE = 7
"""Seed of the choice among more runs than are looked at."""


@dataclass(frozen=True)
class Earlier:
    """Up to R finished runs for each of B prefixes.

    loss, schedule: (B, R, N); rows of NaN where there are fewer runs.
    kinship: (B, R, 9) how their configurations differ; configuration: (B, 12) the present one.
    """

    loss: NDArray[np.float32]
    schedule: NDArray[np.float32]
    kinship: NDArray[np.float32]
    configuration: NDArray[np.float32]

    @classmethod
    def nothing(cls, count: int, points: int) -> Earlier:
        """No runs and an unknown configuration for ``count`` prefixes."""
        blank = np.full((count, RUNS, points), np.nan, dtype=np.float32)
        kinship = np.zeros((count, RUNS, _KINSHIP), dtype=np.float32)
        return cls(blank, blank, kinship, np.zeros((count, _CONFIGURATION), dtype=np.float32))

    @classmethod
    def of(cls, corpus: Corpus, curve: NDArray[np.integer], runs: NDArray[np.integer]) -> Earlier:
        """The runs (B, R), rows of ``corpus`` or -1 for none, for prefixes of its curves ``curve`` (B,)."""
        none = (runs < 0)[:, :, None]
        kinship = np.zeros((*runs.shape, _KINSHIP), dtype=np.float32)
        pair, which = np.unique(
            np.stack([np.broadcast_to(curve[:, None], runs.shape)[runs >= 0], runs[runs >= 0]]),
            axis=1,
            return_inverse=True,
        )
        apart = [_differences(corpus.config[run], corpus.config[own]) for own, run in pair.T]
        kinship[runs >= 0] = np.reshape(apart, (-1, _KINSHIP))[which.reshape(-1)]
        own, place = np.unique(curve, return_inverse=True)
        configuration = np.array([_configuration(corpus.config[row]) for row in own], dtype=np.float32)
        return cls(
            np.where(none, np.nan, corpus.loss[runs]).astype(np.float32),
            np.where(none, np.nan, corpus.schedule[runs]).astype(np.float32),
            kinship,
            configuration.reshape(-1, _CONFIGURATION)[place],
        )

    def rows(self, chosen: NDArray) -> Earlier:
        """The prefixes at indices or a mask."""
        return Earlier(**{field.name: getattr(self, field.name)[chosen] for field in fields(self)})


def choose_runs(
    group: NDArray[np.str_],
    curve: NDArray[np.integer],
    count: NDArray[np.integer],
    rng: np.random.Generator,
    barred: NDArray[np.integer] | None = None,
) -> NDArray[np.int64]:
    """Earlier runs (B, R) of the same group, at most ``count`` (B,) each, -1 where there are no more.

    R is the largest count, and at least RUNS.

    Args:
        group: (C,) group of every curve of the corpus.
        curve: (B,) row of each present run, which is never chosen.
        count: (B,) how many to choose.
        rng: source of the choice.
        barred: (B,) another run that must not be chosen: the one that set the target.
    """
    order = np.argsort(group, kind="stable")
    names, start, size = np.unique(group[order], return_index=True, return_counts=True)
    of_group = np.searchsorted(names, group[curve])
    runs = np.full((len(curve), count.max(initial=RUNS)), -1, dtype=np.int64)
    for row, which in enumerate(of_group):
        members = order[start[which] : start[which] + size[which]]
        barrier = -1 if barred is None else barred[row]
        free = members[(members != curve[row]) & (members != barrier)]
        chosen = rng.permutation(free)[: count[row]]
        runs[row, : len(chosen)] = chosen
    return runs


def _number(config: Mapping[str, Any], name: str) -> float | None:
    value = config.get(name)
    if not isinstance(value, int | float):
        return None
    return float(np.log(value)) if name in _SETTINGS[:3] and value > 0 else float(np.sqrt(max(value, 0.0)))


def _differences(other: Mapping[str, Any], own: Mapping[str, Any]) -> list[float]:
    """Differences of numbers (logs or roots), which kinds are equal, and whether all is."""
    numbers = [(_number(other, name), _number(own, name)) for name in _SETTINGS]
    apart = [0.0 if a is None or b is None else a - b for a, b in numbers]
    equal = [float(other.get(name) == own.get(name)) for name in _KINDS]
    return [*apart, *equal, float(other == own)]


def _configuration(config: Mapping[str, Any]) -> list[float]:
    """The configuration itself; 0 where it has no such setting."""
    numbers = [_number(config, name) or 0.0 for name in _SETTINGS]
    kinds = [float(config.get("optimizer") == name) for name in _OPTIMIZERS]
    return [*numbers, *kinds, 1.0]


def tokens(description: Description, earlier: Earlier) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Tokens (B, S, T) and which of them there are (B, S); the first is the configuration, always there."""
    count, runs = earlier.loss.shape[:2]
    known = np.isfinite(earlier.loss[:, :, 0])
    at = KNOTS + _LAGS + 1 + PLAIN_FEATURES + SCHEDULE_FEATURES
    out = np.zeros((count, runs + 1, TOKEN), dtype=np.float32)
    out[:, 0, at + _KINSHIP :] = earlier.configuration
    owner, which = np.nonzero(known)
    if len(owner):
        loss, schedule = earlier.loss[owner, which], earlier.schedule[owner, which]
        ended = np.isfinite(loss).sum(axis=1)
        length = np.minimum(description.units[owner] + 1, ended)
        theirs = describe(loss, length, schedule)
        apart = theirs.shape[:, :_LAGS] - description.shape[owner, :_LAGS]
        parts = [
            np.arcsinh(np.nan_to_num(future_knots(loss, length)) / FINE) / 2.0,
            np.arcsinh(apart / FINE) / 2.0,
            np.arcsinh((theirs.level - description.level[owner]) / FINE)[:, None] / 2.0,
            (theirs.plain - description.plain[owner]) / 2.0,
            theirs.schedule,
            earlier.kinship[owner, which],
        ]
        out[owner, which + 1, : at + _KINSHIP] = np.concatenate(parts, axis=1)
    return out, np.concatenate([np.ones((count, 1), dtype=bool), known], axis=1)


class HistoryEncoder(nn.Module):
    """Encoder of a prefix (B, F) that attends to tokens (B, S, T): shifts (B, D + 1, W)."""

    def __init__(self, features: int, hidden: int, width: int, depth: int) -> None:
        super().__init__()
        self.depth = depth
        self.enter = nn.Linear(features, hidden)
        self.read = nn.Linear(TOKEN, hidden)
        self.digest = nn.Linear(hidden, hidden)
        self.ask = nn.Linear(hidden, hidden)
        self.offer = nn.Linear(hidden, 2 * hidden)
        self.join = nn.Linear(2 * hidden, hidden)
        self.leave_shifts = nn.Linear(hidden, (depth + 1) * width)

    def forward(self, features: Tensor, token: Tensor, known: Tensor) -> Tensor:
        """Shifts (B, D + 1, W)."""
        state = functional.silu(self.enter(features))
        memory = functional.silu(self.digest(functional.silu(self.read(token.to(features.dtype)))))
        query = self.ask(state).unflatten(-1, (HEADS, 1, -1))
        key, value = self.offer(memory).unflatten(-1, (2 * HEADS, -1)).transpose(1, 2).chunk(2, dim=1)
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=known[:, None, None, :])
        state = functional.silu(self.join(torch.cat([state, seen.flatten(1)], dim=1)))
        return self.leave_shifts(state).unflatten(-1, (self.depth + 1, -1))


class HistoryNetwork(FlowNetwork):
    """The flow's network with the attending encoder."""

    def __init__(self, features: int, knots: int, hidden: int, width: int, depth: int) -> None:
        super().__init__(features, knots, hidden, width, depth)
        self.encoder = HistoryEncoder(features, hidden, width, depth)  # type: ignore[assignment]


class HistoryFlowPredictor(FlowPredictor):
    """The flow with configuration and earlier runs; without them it forecasts from the prefix alone."""

    def __init__(self, settings: FlowSettings | None = None, deadline: bool = False) -> None:
        super().__init__(settings, deadline)
        self.name = self.name.replace("flow", "flow_history")

    def _build(self, features: int) -> FlowNetwork:
        return HistoryNetwork(features, KNOTS, self.settings.hidden, self.settings.width, self.settings.depth)

    def _more_conditions(
        self, curves: Corpus, examples: Prefixes, rng: np.random.Generator
    ) -> tuple[Tensor, ...]:
        """Tokens of 0 to 3 runs for every example; one in eight knows not even its configuration."""
        count = rng.integers(0, RUNS + 1, len(examples))
        runs = choose_runs(curves.group, examples.curve, count, rng)
        parts = []
        for rows in np.array_split(np.arange(len(examples)), 1 + len(examples) // 8192):
            earlier = Earlier.of(curves, examples.curve[rows], runs[rows])
            earlier.configuration[rng.random(len(rows)) < 0.125] = 0.0
            parts.append(tokens(examples.description.rows(rows), earlier))
        return (
            torch.from_numpy(np.concatenate([part[0].astype(np.float16) for part in parts])),
            torch.from_numpy(np.concatenate([part[1] for part in parts])),
        )

    def paths(self, description: Description, *more: Tensor) -> NDArray[np.float32]:
        """Sampled knots (B, P, K); ``more`` are tokens and which of them there are, by default none."""
        if not more:
            nothing = Earlier.nothing(len(description), 2)
            more = tuple(torch.from_numpy(part) for part in tokens(description, nothing))
        return super().paths(description, *more)

    def choose(
        self, corpus: Corpus, curve: NDArray[np.integer], barred: NDArray[np.integer] | None = None
    ) -> NDArray[np.int64]:
        """Up to three earlier runs (B, 3) of the same group; see :class:`...forecast.KnowsHistory`.

        All tasks of a curve draw on its group in one order, so that most of them know the same runs.
        """
        every, most = np.arange(len(corpus)), np.full(len(corpus), RUNS + 1)
        order = choose_runs(corpus.group, every, most, np.random.default_rng(_CHOICE))[curve]
        if barred is not None:
            order[order == barred[:, None]] = -1
        last = np.argsort(order < 0, axis=1, kind="stable")
        return np.take_along_axis(order, last, axis=1)[:, :RUNS]

    def forecast_among(
        self,
        query: Query,
        corpus: Corpus,
        curve: NDArray[np.integer],
        runs: NDArray[np.integer],
        horizon: int = HORIZON,
    ) -> Forecast:
        """Forecasts (B,) that know the configurations of curves (B,) and earlier runs (B, R).

        Questions about one prefix of a curve that know the same runs share its paths.
        """
        same = np.column_stack([curve, query.length, runs])
        _, first, owner = np.unique(same, axis=0, return_index=True, return_inverse=True)
        earlier = Earlier.of(corpus, curve[first], runs[first])
        return self._with_runs(query.rows(first), earlier, query, owner.reshape(-1), horizon)

    def forecast_with(self, query: Query, earlier: Earlier, horizon: int = HORIZON) -> Forecast:
        """Forecasts (B,) that know earlier runs."""
        return self._with_runs(query, earlier, query, np.arange(len(query)), horizon)

    def _with_runs(
        self,
        prefixes: Query,
        earlier: Earlier,
        questions: Query,
        owner: NDArray[np.integer],
        horizon: int,
    ) -> Forecast:
        """Forecasts of questions (R,) about prefixes ``owner`` (R,) of P, which know P sets of runs."""
        description = describe_query(prefixes)
        more = (torch.from_numpy(part) for part in tokens(description, earlier))
        crossed, where = self.crossings(description, self.paths(description, *more), questions, owner)
        return self.finish(crossed, where, questions, horizon)
