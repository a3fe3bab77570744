"""A linear pool of a learned forecast with the Kalman filter's.

The filter has learnt from no curve, so no kind of curve is foreign to it: where the learned forecast is led
astray the two disagree, and the pool is as wide as their disagreement (Stone, 1961; Gneiting & Ranjan, 2013).

Shapes: R questions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mara.predictors.flow.trajectory import KNOT
from mara.predictors.forecast import Query
from mara.predictors.kalman import Kalman


def pooled(cdf: NDArray[np.floating], questions: Query, share: float) -> NDArray[np.float32]:
    """``share`` of the Kalman filter's distributions, the rest of cdf (R, 181)."""
    if not share:
        return cdf.astype(np.float32)
    filtered = Kalman().forecast(questions, int(KNOT[-1])).cdf
    return ((1.0 - share) * cdf + share * filtered).astype(np.float32)
