"""A linear pool of a learned forecast with the Kalman filter's.

The filter has learnt from no curve, so no kind of curve is foreign to it: where the learned forecast is led
astray the two disagree, and the pool is as wide as their disagreement (Stone, 1961; Gneiting & Ranjan, 2013).
It counts more on prefixes rougher than nearly all that the learned one has seen, which show little but a trend.

Shapes: R questions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mara.predictors.flow.trajectory import KNOT
from mara.predictors.forecast import Query
from mara.predictors.kalman import Kalman

_ROUGH = (-1.0, 0.0)
"""Log roughness of a prefix from which on the filter's weight rises, and up to which."""


def kalman_weight(roughness: NDArray[np.floating], share: float, rough_share: float) -> NDArray[np.float64]:
    """The filter's weight (R,) for log roughnesses (R,): ``share``, rising to ``rough_share`` where it is high."""
    return np.interp(roughness, _ROUGH, (share, rough_share))


def pooled(cdf: NDArray[np.floating], questions: Query, weight: NDArray[np.floating]) -> NDArray[np.float32]:
    """The Kalman filter's distributions with ``weight`` (R,), and for the rest cdf (R, 181)."""
    if not weight.any():
        return cdf.astype(np.float32)
    filtered = Kalman().forecast(questions, int(KNOT[-1])).cdf
    return (cdf + weight[:, None] * (filtered - cdf)).astype(np.float32)
