"""Potential-based shaping (Ng, Harada and Russell, 1999) for the undiscounted team reward.

Φ(s) is the summed log-progress of the active tasks (see ``mara.simulator.progress``); tasks that left count 0, and
so does the terminal state. Added to the reward is F = Φ(s') - Φ(s). Along an episode F telescopes, so that the shaped
return is the return less Φ(s_0), whatever the policy does: the objective's optimum stays where it is. Exactly this
fails if the terminal state keeps a potential.

T steps, E episodes.
"""

from __future__ import annotations

import numpy as np


def shaped(reward: np.ndarray, potential: np.ndarray, last_potential: np.ndarray) -> np.ndarray:
    """Add F to rewards.

    Args:
        reward: (T, E).
        potential: (T, E), Φ of the state before each step.
        last_potential: (E,), Φ of the state after the last step; 0 where the episode is over.

    Returns:
        (T, E) float64. Where an episode ended earlier, the later states' potentials are 0 as well.
    """
    following = np.concatenate([potential[1:], np.asarray(last_potential)[None]])
    return np.asarray(reward, np.float64) + following - potential
