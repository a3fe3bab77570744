"""What a predictor is asked and what it answers: the remaining demand as a distribution over units.

A question is a prefix of a learning curve and a target; the answer is, for every number of units b on the
grid 0..H, the probability that b further units suffice.

Shape legend: B questions, N points a curve may have, H horizon in units, P prefixes, R rows (questions about
few prefixes).
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mara.curves.smoothing import smooth
from mara.errors import InputError
from mara.files import atomic_path

if TYPE_CHECKING:
    from mara.curves.corpus import Corpus

HORIZON = 120
"""Units that a forecast looks ahead unless told otherwise."""


@dataclass(frozen=True)
class Query:
    """Questions about the remaining demand.

    loss: (B, N) raw losses; the first ``length`` columns are the prefix, the rest is NaN. A non-finite or
        non-positive loss *inside* the prefix means that the run diverged there.
    length: (B,) number of points seen, at least 1; point 0 is the loss before training, so the units
        trained so far are ``length - 1``.
    schedule: (B, N) learning rate at every point, known in advance; NaN where there is none.
    target: (B,) smoothed loss to be reached.
    window: (B,) slots between arrival and deadline; NaN where not given.
    truth: (B,) the true remaining units (inf = never); only the oracle may look, and only for it is it set.
    """

    loss: NDArray[np.floating]
    length: NDArray[np.integer]
    schedule: NDArray[np.floating]
    target: NDArray[np.floating]
    window: NDArray[np.floating]
    truth: NDArray[np.floating] | None = None

    @classmethod
    def of(
        cls,
        loss: NDArray[np.floating],
        length: NDArray[np.integer],
        target: NDArray[np.floating],
        schedule: NDArray[np.floating] | None = None,
        window: NDArray[np.floating] | None = None,
    ) -> Self:
        """Ask about the first ``length`` points of each row of ``loss`` (B, N); blanks the future."""
        length = np.asarray(length, dtype=np.int64)
        if np.any(length < 1) or np.any(length > loss.shape[1]):
            raise InputError(f"prefix lengths {length.min()}..{length.max()}: must lie in 1..{loss.shape[1]}")
        seen = np.arange(loss.shape[1]) < length[:, None]
        unknown = np.full(len(length), np.nan, dtype=np.float32)
        return cls(
            loss=np.where(seen, loss, np.nan).astype(np.float32),
            length=length,
            schedule=np.full_like(loss, np.nan, dtype=np.float32) if schedule is None else schedule,
            target=np.asarray(target, dtype=np.float32),
            window=unknown if window is None else np.asarray(window, dtype=np.float32),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Query]) -> Query:
        """The questions of several queries with prefixes of equal width, in order; without truths."""
        names = ("loss", "length", "schedule", "target", "window")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def __len__(self) -> int:
        return len(self.length)

    def rows(
        self,
        owner: NDArray[np.integer],
        target: NDArray[np.floating] | None = None,
        window: NDArray[np.floating] | None = None,
        truth: NDArray[np.floating] | None = None,
    ) -> Query:
        """The R questions about prefixes ``owner`` (R,), with targets, windows and truths where given."""
        if truth is None and self.truth is not None:
            truth = self.truth[owner]
        return Query(
            loss=self.loss[owner],
            length=self.length[owner],
            schedule=self.schedule[owner],
            target=self.target[owner] if target is None else target,
            window=self.window[owner] if window is None else window,
            truth=truth,
        )

    def seen(self) -> NDArray[np.bool_]:
        """(B, N) which columns belong to the prefix."""
        return np.arange(self.loss.shape[1]) < self.length[:, None]

    def diverged(self) -> NDArray[np.bool_]:
        """(B,) whether the prefix holds a loss that is not a positive finite number."""
        return np.any(self.seen() & ~(np.isfinite(self.loss) & (self.loss > 0)), axis=1)

    def best_smoothed(self) -> NDArray[np.float64]:
        """(B,) lowest smoothed loss of the prefix up to its first bad point; inf where that is point 0."""
        width = int(self.length.max(initial=1))
        loss = self.loss[:, :width].astype(np.float64)
        good = np.logical_and.accumulate(np.isfinite(loss) & (loss > 0), axis=1) & self.seen()[:, :width]
        return np.where(good, smooth(np.where(good, loss, 0.0)), np.inf).min(axis=1)


@dataclass(frozen=True)
class Forecast:
    """Distributions of the remaining demand.

    cdf: (B, H+1) float32, ``cdf[:, b]`` = P(at most b further units suffice), non-decreasing along b.
    point: (B,) float32, the point estimate in units, not capped at H; inf = never. For a distribution it is
        the median, inf where that lies beyond H.
    samples: number of sampled paths behind ``cdf``; 0 where it is no sample. The fair CRPS needs it.
    """

    cdf: NDArray[np.float32]
    point: NDArray[np.float32]
    samples: int = 0

    @classmethod
    def from_point(cls, point: NDArray[np.floating], horizon: int = HORIZON) -> Self:
        """Step distributions at the first whole unit not before ``point`` (B,); NaN counts as never."""
        known = np.where(point < np.finfo(np.float32).max, point, np.inf)
        step = np.arange(horizon + 1) >= np.ceil(known)[:, None]
        return cls(step.astype(np.float32), known.astype(np.float32))

    @classmethod
    def from_cdf(cls, cdf: NDArray[np.floating], samples: int = 0) -> Self:
        """Take cdf (B, H+1) after clipping it to [0, 1] and making it monotone; the point is its median."""
        tidy = np.maximum.accumulate(np.clip(np.nan_to_num(cdf, nan=0.0), 0, 1), axis=1).astype(np.float32)
        return cls(tidy, _quantile(tidy, 0.5).astype(np.float32), samples)

    def __len__(self) -> int:
        return len(self.point)

    @property
    def horizon(self) -> int:
        """H, the last unit of the grid."""
        return self.cdf.shape[1] - 1

    def quantile(self, level: float) -> NDArray[np.float64]:
        """(B,) smallest b with ``cdf[:, b] >= level``; inf where there is none up to H."""
        return _quantile(self.cdf, level)

    def median(self) -> NDArray[np.float64]:
        """(B,) the 0.5 quantile on the grid."""
        return self.quantile(0.5)

    def probability_within(self, units: NDArray[np.floating] | float) -> NDArray[np.float32]:
        """(B,) P(remaining <= units); units beyond H count as H, negative ones give 0."""
        whole = np.floor(np.broadcast_to(np.asarray(units, dtype=np.float64), self.point.shape))
        column = np.clip(whole, 0, self.horizon).astype(np.int64)
        return np.where(whole >= 0, self.cdf[np.arange(len(self)), column], np.float32(0))

    def settled(self, query: Query) -> Forecast:
        """Put in what the prefix already decides, so that every predictor answers odd questions alike.

        Target already reached: remaining 0. Diverged before that, or a target that is not above 0: never.
        Else at least one unit is needed.
        """
        target = np.asarray(query.target, dtype=np.float64)
        possible = target > 0
        reached = possible & (query.best_smoothed() <= target)
        never = ~reached & (query.diverged() | ~possible)
        cdf = np.nan_to_num(self.cdf, nan=0.0)
        cdf[:, 0] = 0
        cdf[never] = 0
        cdf[reached] = 1
        point = np.where(np.isnan(self.point), np.inf, np.maximum(self.point, 1))
        point = np.where(reached, 0, np.where(never, np.inf, point))
        return Forecast(cdf, point.astype(np.float32), self.samples)


def _quantile(cdf: NDArray[np.floating], level: float) -> NDArray[np.float64]:
    enough = cdf >= np.float32(level)
    return np.where(enough[:, -1], enough.argmax(axis=1), np.inf)


@runtime_checkable
class Predictor(Protocol):
    """Forecasts the remaining demand.

    ``fit`` takes a whole corpus and uses of it the training part and, where it calibrates, the calibration
    split, never another split. Predictors that learn nothing accept it as a no-operation.
    """

    name: str

    def fit(self, corpus: Corpus, rng: np.random.Generator) -> Self:
        """Learn from the corpus; returns itself."""

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """Distributions on the grid 0..horizon, settled (see :meth:`Forecast.settled`)."""

    def save(self, path: Path) -> None:
        """Write all that ``load`` needs, under the final name only when complete."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what ``save`` wrote."""


@runtime_checkable
class ManyTargets(Protocol):
    """A predictor that answers several questions about one prefix for little more than one."""

    def forecast_many_targets(
        self,
        prefixes: Query,
        owner: NDArray[np.integer],
        target: NDArray[np.floating],
        window: NDArray[np.floating],
        horizon: int = HORIZON,
    ) -> Forecast:
        """R forecasts: row r asks about prefix ``owner[r]`` of P with ``target[r]`` and ``window[r]``.

        The targets and windows in ``prefixes`` itself are to be ignored.
        """


@runtime_checkable
class KnowsHistory(Protocol):
    """A predictor that can look at finished runs of the same group, rows of a corpus."""

    def choose(
        self, corpus: Corpus, curve: NDArray[np.integer], barred: NDArray[np.integer] | None = None
    ) -> NDArray[np.int64]:
        """Earlier runs (B, R) for curves (B,), -1 for none; never the curve itself nor the barred one."""

    def forecast_among(
        self,
        query: Query,
        corpus: Corpus,
        curve: NDArray[np.integer],
        runs: NDArray[np.integer],
        horizon: int = HORIZON,
    ) -> Forecast:
        """Forecasts (B,) for prefixes of the corpus's curves (B,) that know runs (B, R)."""


class BasePredictor:
    """Default ``fit``, ``save`` and ``load`` of predictors whose state is plain arrays and settings."""

    name: str
    learned: ClassVar[str | None] = None
    """The last attribute that ``fit`` makes; None for predictors that learn nothing."""
    sees_truth: ClassVar[bool] = False
    """Whether ``Query.truth`` is to be filled in (the oracle only)."""

    def fit(self, corpus: Corpus, rng: np.random.Generator) -> Self:
        """Learn nothing."""
        return self

    def check_fitted(self) -> None:
        """Raise an :class:`InputError` if there is nothing yet to forecast with or to save."""
        if self.learned is not None and getattr(self, self.learned, None) is None:
            raise InputError(f"{self.name}: not fitted")

    def save(self, path: Path) -> None:
        """Write the predictor to one file; an :class:`InputError` if it is not fitted."""
        self.check_fitted()
        with atomic_path(path) as part:
            part.write_bytes(pickle.dumps(self))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the predictor back; an :class:`InputError` names a file that holds another one."""
        try:
            loaded: Any = pickle.loads(Path(path).read_bytes())
        except (OSError, pickle.UnpicklingError, EOFError, AttributeError) as error:
            raise InputError(f"{path}: not a saved predictor ({error}); make it with the fit stage") from None
        if not isinstance(loaded, cls):
            raise InputError(f"{path}: holds {type(loaded).__name__}, expected {cls.__name__}")
        return loaded
