"""Counter-based random numbers: a number is a hash of what it is for, so no order of calls matters."""

from __future__ import annotations

import numpy as np

from mara.simulator.jit import jit_lean

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


@jit_lean
def scramble(word: np.uint64) -> np.uint64:
    """Return the next value of the SplitMix64 generator after the state ``word`` (Steele et al., 2014)."""
    word = np.uint64(word) + _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * _MIX1
    word = (word ^ (word >> np.uint64(27))) * _MIX2
    return word ^ (word >> np.uint64(31))


@jit_lean
def uniform(seed: np.uint64, slot: int, subject: int) -> float:
    """Return a number in [0, 1) that depends on the three arguments alone (subject: a task or a node)."""
    word = scramble(scramble(np.uint64(seed) ^ np.uint64(slot)) ^ np.uint64(subject))
    return np.float64(word >> np.uint64(11)) * 2.0**-53
