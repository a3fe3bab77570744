"""Generalised advantage estimation (Schulman et al., 2016) without discount.

T steps, E episodes side by side.
"""

from __future__ import annotations

import numpy as np


def advantages(
    reward: np.ndarray, value: np.ndarray, last_value: np.ndarray, ended: np.ndarray, gae_lambda: float
) -> np.ndarray:
    """Return A_t = sum_k λ^k δ_{t+k} with δ_t = r_t + V(s_{t+1}) - V(s_t), up to the end of the episode.

    Args:
        reward: (T, E) reward of each step.
        value: (T, E) value of the state before the step.
        last_value: (E,) value of the state after the last step (the episode goes on there).
        ended: (T, E) bool, the step ended its episode: a true end, after which all values are 0.
        gae_lambda: λ.

    Returns:
        (T, E) float64; the return to regress the value on is ``advantages + value``.
    """
    result = np.zeros(reward.shape)
    running = np.zeros(reward.shape[1])
    following = np.asarray(last_value, np.float64)
    for t in range(reward.shape[0] - 1, -1, -1):
        going = ~ended[t]
        delta = reward[t] + going * following - value[t]
        running = delta + gae_lambda * going * running
        result[t] = running
        following = value[t]
    return result
