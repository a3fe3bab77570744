"""A linear pool of a learned forecast with the Kalman filter's.

The filter has learnt from no curve, so no kind of curve is foreign to it: where the learned forecast is led
astray the two disagree, and the pool is as wide as their disagreement (Stone, 1961; Gneiting & Ranjan, 2013).
It counts more on prefixes rougher than nearly all that the learned one has seen, which show little but a trend.

Shapes: R questions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mara.config.flow import DirectSettings, FlowSettings
from mara.predictors.flow.trajectory import KNOT
from mara.predictors.forecast import Query
from mara.predictors.kalman import Kalman

_ROUGH = (-1.0, 0.0)
"""Log roughness of a prefix from which on the filter's weight rises, and up to which."""


def pooled(
    cdf: NDArray[np.floating],
    questions: Query,
    where: NDArray[np.float64],
    settings: FlowSettings | DirectSettings,
) -> NDArray[np.float32]:
    """The Kalman filter's distributions with its weight, and for the rest cdf (R, 181).

    The weight is ``settings.kalman_share``, rising to ``rough_kalman_share`` where the log roughness is high, the
    second column of the contexts ``where`` (R, 2); see :func:`.calibration.context`.
    """
    weight = np.interp(where[:, 1], _ROUGH, (settings.kalman_share, settings.rough_kalman_share))
    if not weight.any():
        return cdf.astype(np.float32)
    filtered = Kalman().forecast(questions, int(KNOT[-1])).cdf
    return (cdf + weight[:, None] * (filtered - cdf)).astype(np.float32)
