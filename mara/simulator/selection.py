"""What most policies end with: pick the tasks with the best scores, and seat them on nodes.

Legend: n active tasks, M nodes; positions index the n active tasks.
"""

from __future__ import annotations

import numpy as np

from mara.simulator.jit import jit_lean


@jit_lean
def _sift(score: np.ndarray, heap: np.ndarray, size: int, root: int) -> None:
    """Restore the heap below ``root``; on top is what to drop first: lowest score, then highest position."""
    entry = heap[root]
    while True:
        child = 2 * root + 1
        if child >= size:
            break
        a = heap[child]
        if child + 1 < size:
            b = heap[child + 1]
            if score[b] < score[a] or (score[b] == score[a] and b > a):
                child += 1
                a = b
        if score[entry] < score[a] or (score[entry] == score[a] and entry > a):
            break
        heap[root] = a
        root = child
    heap[root] = entry


@jit_lean
def select_top(score: np.ndarray, count: int, chosen: np.ndarray) -> int:
    """Write the positions of the ``count`` highest scores to ``chosen``, best first; return their number.

    Ties go to the lower position (the earlier arrival). A score of -inf is never chosen; NaN is not
    allowed. Costs O(n log count).
    """
    if count == 0:
        return 0
    size = 0
    for position in range(score.shape[0]):
        if score[position] == -np.inf:
            continue
        if size < count:
            chosen[size] = position
            size += 1
            if size == count:
                for root in range(size // 2 - 1, -1, -1):
                    _sift(score, chosen, size, root)
        elif score[position] > score[chosen[0]]:
            chosen[0] = position
            _sift(score, chosen, size, 0)
    if size < count:
        for root in range(size // 2 - 1, -1, -1):
            _sift(score, chosen, size, root)
    for end in range(size - 1, 0, -1):
        top = chosen[0]
        chosen[0] = chosen[end]
        _sift(score, chosen[:end], end, 0)
        chosen[end] = top
    return size


@jit_lean
def seat(view, chosen: np.ndarray, count: int, assignment: np.ndarray) -> None:  # type: ignore[no-untyped-def]
    """Give the chosen tasks, best first, to the working nodes, fastest first.

    Among nodes of one speed a task stays on the node that trained it last. Nodes left over join the
    chosen tasks in the same order, as far as ``view.max_nodes`` allows. Costs O(n + M).
    """
    nodes = assignment.shape[0]
    wanted = view.tally
    entry, start = 0, 0
    while start < nodes and entry < count * view.max_nodes:
        end, free = start, 0
        while end < nodes and view.speed[view.fastest[end]] == view.speed[view.fastest[start]]:
            free += view.up[view.fastest[end]]
            end += 1
        stop = min(entry + free, count * view.max_nodes)
        for k in range(entry, stop):
            wanted[chosen[k % count]] += 1
        for k in range(start, end):
            node = view.fastest[k]
            position = view.last_position[node]
            if position >= 0 and view.up[node] and wanted[position] > 0:
                assignment[node] = position
                wanted[position] -= 1
        k = start
        for rank in range(count):
            position = chosen[rank]
            while wanted[position] > 0:
                while assignment[view.fastest[k]] >= 0 or not view.up[view.fastest[k]]:
                    k += 1
                assignment[view.fastest[k]] = position
                wanted[position] -= 1
        entry, start = stop, end
