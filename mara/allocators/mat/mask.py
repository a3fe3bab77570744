"""The feasibility mask: what a node may pick, given what the nodes before it picked.

B batch (episodes), K candidate tasks, M nodes in decoding order. Action k < K is "train task k", action K is
"idle". Idle is always feasible, so no row of the mask is ever empty.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class MaskState(NamedTuple):
    """The part of the state that decides feasibility.

    Attributes:
        present: (B, K) bool, the candidate is a task that has arrived, is unfinished and has its deadline ahead.
        up: (B, M) bool, the node works.
        cap: nodes that may train one task in the same slot.
        exclusive: whether `cap` is enforced; False only in the ablation without the mask.
    """

    present: Tensor
    up: Tensor
    cap: int
    exclusive: bool = True


def taken(picks: Tensor, candidates: int) -> Tensor:
    """Count how often each candidate was picked: (B, m) actions to (B, K) int64; idle counts for nothing."""
    counts = picks.new_zeros(picks.shape[0], candidates + 1)
    counts.scatter_add_(1, picks, torch.ones_like(picks))
    return counts[:, :candidates]


def _join(state: MaskState, counts: Tensor, up: Tensor) -> Tensor:
    tasks = state.present & up
    if state.exclusive:
        tasks = tasks & (counts < state.cap)
    idle = torch.ones_like(tasks[..., :1])
    return torch.cat([tasks, idle], dim=-1)


def feasible(state: MaskState, partial_assignment: Tensor) -> Tensor:
    """Return the (B, K + 1) bool mask of node m, where ``partial_assignment`` (B, m) holds the picks before it."""
    node = partial_assignment.shape[1]
    counts = taken(partial_assignment, state.present.shape[1])
    return _join(state, counts, state.up[:, node : node + 1])


def feasible_all(state: MaskState, picks: Tensor) -> Tensor:
    """Return the masks of all nodes at once: (B, M) complete picks to (B, M, K + 1) bool.

    Entry m is ``feasible(state, picks[:, :m])``.
    """
    candidates = state.present.shape[1]
    one_hot = torch.nn.functional.one_hot(picks, candidates + 1)[..., :candidates]
    before = one_hot.cumsum(dim=1) - one_hot
    masked = MaskState(state.present[:, None], state.up, state.cap, state.exclusive)
    return _join(masked, before, state.up[:, :, None])
