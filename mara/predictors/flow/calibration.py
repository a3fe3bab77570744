"""Conformal calibration: a monotone map of probabilities that makes forecasts uniform in PIT.

If u = F(truth) on calibration cases has the distribution function g, then g(F) is calibrated on exchangeable
cases (Kuleshov et al., arXiv 1807.00263; with the n + 1 of split conformal prediction, Vovk et al., 2005).

Shapes: B cases, H horizon, L levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mara.predictors.examples import Examples

LEVELS = np.linspace(0.0, 1.0, 41)


@dataclass(frozen=True)
class PlainRecalibration:
    """The map g on the grid ``LEVELS``.

    value: (L,) from 0 to 1, non-decreasing.
    """

    value: NDArray[np.float64]

    @classmethod
    def fit(cls, cdf: NDArray[np.floating], examples: Examples) -> PlainRecalibration:
        """Fit on forecasts cdf (B, H+1) of ``examples``, whose demands are seen up to ``left`` units.

        A forecast with jumps, or a demand beyond what was seen, spreads its case evenly over the jump.
        """
        left = np.minimum(examples.left, cdf.shape[1] - 1)
        truth = examples.remaining
        row = np.arange(len(cdf))
        capped = np.minimum(truth, left + 1).astype(np.int64)
        seen = capped <= left
        upper = np.where(seen, cdf[row, np.minimum(capped, left)], 1.0)
        lower = cdf[row, np.maximum(capped - 1, 0)]
        width = np.maximum(upper - lower, 1e-9)
        below = np.clip((LEVELS[:, None] - lower) / width, 0.0, 1.0).sum(axis=1)
        value = below / (len(cdf) + 1)
        value[0], value[-1] = 0.0, 1.0
        return cls(np.maximum.accumulate(value))

    def __call__(self, cdf: NDArray[np.floating]) -> NDArray[np.float32]:
        """Calibrated cdf of the same shape."""
        return np.interp(cdf, LEVELS, self.value).astype(np.float32)


@dataclass(frozen=True)
class Recalibration:
    """One map for questions with a window and one for those without: they are different populations."""

    windowed: PlainRecalibration
    plain: PlainRecalibration

    @classmethod
    def fit(cls, cdf: NDArray[np.floating], examples: Examples) -> Recalibration:
        """Fit each map on its kind of examples; without any, forecasts stay as they are."""
        given = np.isfinite(examples.query.window)
        maps = []
        for chosen in (given, ~given):
            rows = np.flatnonzero(chosen)
            some = Examples(examples.query.rows(rows), examples.remaining[rows], examples.left[rows])
            maps.append(PlainRecalibration.fit(cdf[rows], some) if len(rows) else PlainRecalibration(LEVELS))
        return cls(*maps)

    def __call__(self, cdf: NDArray[np.floating], window: NDArray[np.floating]) -> NDArray[np.float32]:
        """Calibrated cdf (B, H+1) of questions with windows (B,), NaN where not given."""
        return np.where(np.isfinite(window)[:, None], self.windowed(cdf), self.plain(cdf))


def mean_ncrps(cdf: NDArray[np.floating], examples: Examples) -> float:
    """Mean CRPS of the demand capped at what is left, over what is left, for forecasts cdf (B, H+1)."""
    grid = np.arange(cdf.shape[1])
    inside = grid < examples.left[:, None]
    score = ((cdf - (grid >= examples.remaining[:, None])) ** 2 * inside).sum(axis=1)
    return float((score / examples.left).mean())
