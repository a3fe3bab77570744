"""The linear assignment problem, compiled: rows matched to columns for the highest summed worth.

Legend: M rows (nodes), K columns (tasks).
"""

from __future__ import annotations

import numpy as np

from mara.simulator.jit import jit


@jit
def match(worth: np.ndarray) -> np.ndarray:
    """Column of each row, (M,) int64, -1 where there are fewer columns than rows and none is left.

    Shortest augmenting paths with potentials (Jonker and Volgenant, 1987), O(M^2 K). Worths (M, K) must be
    finite and >= 0; they are matched even where 0.
    """
    rows, columns = worth.shape[0], max(worth.shape[1], worth.shape[0])
    # Row r of the tree; columns count from 1, 0 is the root. Missing columns are worth nothing.
    u, v = np.zeros(rows + 1), np.zeros(columns + 1)
    owner = np.zeros(columns + 1, dtype=np.int64)
    way = np.zeros(columns + 1, dtype=np.int64)
    for r in range(1, rows + 1):
        owner[0] = r
        at = 0
        least = np.full(columns + 1, np.inf)
        used = np.zeros(columns + 1, dtype=np.bool_)
        while True:
            used[at] = True
            row, delta, following = owner[at], np.inf, 0
            for c in range(1, columns + 1):
                if used[c]:
                    continue
                cost = -worth[row - 1, c - 1] if c <= worth.shape[1] else 0.0
                reduced = cost - u[row] - v[c]
                if reduced < least[c]:
                    least[c] = reduced
                    way[c] = at
                if least[c] < delta:
                    delta = least[c]
                    following = c
            for c in range(columns + 1):
                if used[c]:
                    u[owner[c]] += delta
                    v[c] -= delta
                else:
                    least[c] -= delta
            at = following
            if owner[at] == 0:
                break
        while at != 0:
            owner[at] = owner[way[at]]
            at = way[at]
    partner = np.full(rows, -1, dtype=np.int64)
    for c in range(1, worth.shape[1] + 1):
        if owner[c] > 0:
            partner[owner[c] - 1] = c - 1
    return partner
