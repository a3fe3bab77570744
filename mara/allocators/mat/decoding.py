"""Decoding: from encoded tokens to one action per node, and the parallel pass that re-evaluates such actions.

B batch, K candidate tasks, M nodes in decoding order; action K idles. `decode` walks over the nodes with cached
keys and values (roll-outs, evaluation); `evaluate` takes complete picks and stored masks in one pass (training).
Both give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mara.allocators.mat.mask import MaskState, feasible, feasible_all
from mara.allocators.mat.network import Encoded, MatNetwork

Chooser = Callable[[Tensor], Tensor]
"""Takes masked logits (B, K + 1) to actions (B,)."""


class Decoded(NamedTuple):
    """Picks (B, M) int64, their log-probabilities (B, M) and the masks (B, M, K + 1) they were chosen under."""

    picks: Tensor
    log_prob: Tensor
    mask: Tensor


def greedy(logits: Tensor) -> Tensor:
    """Pick the greatest logit; of equal ones the first, so that the result does not depend on the batch."""
    return logits.argmax(dim=-1)


def sampler(generator: torch.Generator) -> Chooser:
    """Return a chooser that samples from the softmax by the Gumbel-max trick."""

    def choose(logits: Tensor) -> Tensor:
        uniform = torch.rand(logits.shape, generator=generator, dtype=logits.dtype)
        gumbel = -torch.log(-torch.log(uniform.clamp(1e-12, 1 - 1e-7)))
        return (logits + gumbel).argmax(dim=-1)

    return choose


def masked(logits: Tensor, mask: Tensor) -> Tensor:
    """Set infeasible logits to −inf; idle is always feasible, so every row keeps a finite entry."""
    return logits.masked_fill(~mask, -torch.inf)


def decode(network: MatNetwork, encoded: Encoded, state: MaskState, choose: Chooser) -> Decoded:
    """Let the nodes pick one after the other, each seeing the picks before it."""
    batch, nodes = state.up.shape
    rows = torch.arange(batch)
    picks = torch.empty(batch, nodes, dtype=torch.int64)
    after_pick = network.picked(encoded.memory) if network.autoregressive else None
    logits: list[Tensor] = []
    masks: list[Tensor] = []
    cache: tuple[Tensor, Tensor] | None = None
    for node in range(nodes):
        before = after_pick[rows, picks[:, node - 1]] if node and after_pick is not None else network.start
        x, grown = network.decoder.step((encoded.node[:, node] + before)[:, None], cache)
        cache = grown if network.autoregressive else None
        masks.append(feasible(state, picks[:, :node]))
        logits.append(masked(network.point(x, encoded.key)[:, 0] + encoded.static[:, node], masks[-1]))
        picks[:, node] = choose(logits[-1])
    log_p = torch.log_softmax(torch.stack(logits, 1), dim=-1)
    return Decoded(picks, log_p.gather(-1, picks[..., None]).squeeze(-1), torch.stack(masks, 1))


def evaluate(network: MatNetwork, encoded: Encoded, picks: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Re-evaluate picks (B, M) under stored masks: their log-probabilities (B, M) and the entropies (B, M)."""
    log_p = torch.log_softmax(masked(network.logits(encoded, picks), mask), dim=-1)
    chosen = log_p.gather(-1, picks[..., None]).squeeze(-1)
    entropy = -(log_p.exp() * log_p.masked_fill(~mask, 0.0)).sum(dim=-1)
    return chosen, entropy


def evaluate_naively(network: MatNetwork, encoded: Encoded, picks: Tensor, state: MaskState) -> Tensor:
    """Log-probabilities (B, M) by a full pass per node over its prefix: slow, the reference that tests compare with."""
    result = []
    for node in range(picks.shape[1]):
        head = encoded._replace(node=encoded.node[:, : node + 1], static=encoded.static[:, : node + 1])
        logits = network.logits(head, picks[:, : node + 1])[:, -1]
        mask = feasible_all(state, picks)[:, node]
        log_p = torch.log_softmax(masked(logits, mask), dim=-1)
        result.append(log_p.gather(-1, picks[:, node, None]))
    return torch.cat(result, dim=1)
