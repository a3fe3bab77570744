"""The description of prefixes as the numbers that a network reads.

Differences of log-losses come twice: on an absolute log scale and in units of the prior's scale, both
squeezed, so that flat and steep curves are told apart as finely as each needs.

Shapes: B prefixes, F inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mara.predictors.flow.features import BEST, SCHEDULE_FEATURES, Description
from mara.predictors.flow.prior import PathPrior, slope_mean

FINE = 0.02
"""Log-losses that differ by less than about this are shown on a linear scale."""
_PROBED = np.array([0, 4, 11, 17, 24, 34])
"""Knots, near to far, at which prior and filter are shown: 1, 5, 12, 24, 48 and 120 units ahead."""
_MIDDLE = 14
"""Knot, 18 units ahead, whose prior scale measures the differences."""
FARTHEST = 6.0
"""Standardised inputs are clipped here."""


def raw_inputs(description: Description, prior: PathPrior) -> NDArray[np.float32]:
    """Unstandardised inputs (B, F); the schedule comes last."""
    scale = prior.scale(description)
    mean = slope_mean(description)
    return np.column_stack(
        [
            np.arcsinh(description.shape / FINE),
            np.arcsinh(description.shape / scale[:, [_MIDDLE]]),
            description.plain,
            np.arcsinh(mean[:, _PROBED] / FINE),
            np.log(scale[:, _PROBED]),
            np.arcsinh(description.trend[:, _PROBED] / FINE),
            np.arcsinh(description.trend[:, _PROBED] / scale[:, [_MIDDLE]]),
            np.log(description.spread[:, _PROBED] + 1e-4),
            description.schedule,
        ]
    ).astype(np.float32)


def target_inputs(description: Description, prior: PathPrior, log_target: NDArray) -> NDArray[np.float32]:
    """Where log targets (B,), relative to the levels, lie: (B, K + 2)."""
    scale = prior.scale(description)
    gap = np.maximum(log_target, -20.0)[:, None]
    return np.column_stack(
        [
            np.arcsinh((gap - slope_mean(description)) / scale),
            np.arcsinh(gap / FINE),
            np.arcsinh((gap[:, 0] - description.shape[:, BEST]) / FINE),
        ]
    ).astype(np.float32)


@dataclass(frozen=True)
class Standardizer:
    """Mean and spread of each input over the training prefixes.

    mean, spread: (F,) float32.
    """

    mean: NDArray[np.float32]
    spread: NDArray[np.float32]

    @classmethod
    def fit(cls, raw: NDArray[np.float32]) -> Standardizer:
        """Fit on raw inputs (B, F). The schedule is only scaled, so that unknown stays 0."""
        mean, spread = raw.mean(axis=0), raw.std(axis=0) + 1e-3
        mean[-SCHEDULE_FEATURES:] = 0.0
        return cls(mean, spread)

    def __call__(self, raw: NDArray[np.float32]) -> NDArray[np.float32]:
        """Standardised inputs (B, F), clipped to six spreads."""
        return np.clip((raw - self.mean) / self.spread, -FARTHEST, FARTHEST)
