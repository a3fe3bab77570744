"""The multi-agent transformer: an encoder over task and node tokens and a pointer decoder over nodes.

B batch (slots of episodes), K candidate tasks, M nodes in decoding order (fastest first), D width, T = K + M tokens,
F, G, P, S numbers of task, node, pair and setting features (see features.py). Action k < K trains task k, action
K idles. Nothing depends on K or M: one set of weights serves every cluster and queue.

    logits[m, k] = gain * prior[m, k]  +  bias(pair[m, k])  +  query_m · key_k / sqrt(D)
                   the index, given       of the pair alone    of all tasks, nodes and earlier picks
                                          (both learned, both zero before training)

Only the first term is hand-made: the index's log-score of task k on node m relative to the best one. The learned terms
start at exactly zero, so that an untrained network *is* the index policy; without the prior they have to learn all.
Architecture after Wen et al. 2022 (Multi-Agent Transformer): encoder over observations, decoder over agents that is
fed the action of the agent before it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from mara.config.mat import NetworkSettings


class Observation(NamedTuple):
    """What the network sees of B slots.

    Attributes:
        task: (B, K, F) float, task features; rows of absent candidates are zero.
        node: (B, M, G) float, node features in decoding order.
        pair: (B, M, K, P) float, features of each task on each node.
        prior: (B, M, K) float, the index's log-score less the greatest of the node's row (<= 0).
        setting: (B, S) float, the global setting.
        present: (B, K) bool, whether the candidate exists.
        up: (B, M) bool, whether the node works.
    """

    task: Tensor
    node: Tensor
    pair: Tensor
    prior: Tensor
    setting: Tensor
    present: Tensor
    up: Tensor

    def rows(self, index: Tensor) -> Observation:
        """Select slots."""
        return Observation(*(value[index] for value in self))


class Encoded(NamedTuple):
    """The encoder's result: node tokens (B, M, D), keys (B, K + 1, D), static logits (B, M, K + 1), pool (B, D)."""

    node: Tensor
    memory: Tensor
    key: Tensor
    static: Tensor
    pool: Tensor


class Attention(nn.Module):
    """Multi-head self-attention over (B, T, D); ``mask`` (broadcastable to (B, heads, T, T)) is True where allowed."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Project to queries, keys and values, each (B, heads, T, D / heads)."""
        batch, tokens, width = x.shape
        qkv = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        return q, k, v

    def join(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Attend and project back to (B, T, D)."""
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Attend from (B, T, D) to itself under a mask."""
        return self.join(*self.split(x), mask)


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, settings: NetworkSettings) -> None:
        super().__init__()
        width, hidden = settings.width, settings.width * settings.feedforward
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, settings.heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Transform (B, T, D) under a mask."""
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))

    def step(self, x: Tensor, cache: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Process the newest token (B, 1, D) against cached keys and values; return it and the grown cache."""
        q, k, v = self.attention.split(self.norm1(x))
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        # The newest token may see all cached ones, so no mask: `is_causal` would align at the wrong corner.
        x = x + self.attention.join(q, k, v, None)
        return x + self.mlp(self.norm2(x)), (k, v)


def _perceptron(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class MatNetwork(nn.Module):
    """Encoder, pointer decoder and value head.

    Args:
        settings: the network's shape.
        sizes: numbers (F, G, P, S) of task, node, pair and setting features.
        prior: whether the index stands in the logits.
        autoregressive: whether a node sees the picks before it; otherwise the heads are independent.
        hidden: task and pair features that the network does not see; with any, it does not see the prior either.
    """

    def __init__(
        self,
        settings: NetworkSettings,
        sizes: tuple[int, int, int, int],
        prior: bool,
        autoregressive: bool,
        hidden: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    ) -> None:
        super().__init__()
        tasks, nodes, pairs, setting = sizes
        width = settings.width
        self.width, self.prior, self.autoregressive, self.hidden = width, prior, autoregressive, hidden
        self.idle_margin = settings.idle_margin
        self.embed_task = _perceptron(tasks + setting, 2 * width, width)
        self.embed_node = _perceptron(nodes + setting, 2 * width, width)
        self.encoder = nn.ModuleList(Block(settings) for _ in range(settings.blocks))
        self.norm = nn.LayerNorm(width)
        self.idle = nn.Parameter(torch.randn(width) / math.sqrt(width))
        self.start = nn.Parameter(torch.zeros(width))
        self.key = nn.Linear(width, width)
        self.picked = nn.Linear(width, width)
        self.decoder = Block(settings)
        self.decoder_norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.bias = _perceptron(pairs + 1, 24, 1)
        self.gain = nn.Parameter(torch.ones(()))
        self.value_head = _perceptron(width + setting, 2 * width, 1)
        for layer in (self.query, self.bias[-1]):
            for parameter in layer.parameters():
                nn.init.zeros_(parameter)

    def static(self, observation: Observation) -> Tensor:
        """The part of the logits (B, M, K + 1) that depends on nothing but task and node: the prior and the bias."""
        pair = torch.cat([observation.pair, observation.prior[..., None]], dim=-1)
        if self.hidden[1]:
            pair[..., [*self.hidden[1], -1]] = 0.0
        logits = self.bias(pair).squeeze(-1)
        idle = logits.new_zeros(*logits.shape[:2], 1)
        if self.prior:
            logits, idle = logits + self.gain * observation.prior, idle - self.gain * self.idle_margin
        else:
            idle = idle - self.idle_margin
        return torch.cat([logits, idle], dim=-1)

    def encode(self, observation: Observation) -> Encoded:
        """Encode tasks and nodes together; padded candidates are attended to by no one."""
        batch, candidates = observation.present.shape
        nodes = observation.up.shape[1]
        setting = observation.setting[:, None]
        task = torch.cat([observation.task, setting.expand(-1, candidates, -1)], dim=-1)
        if self.hidden[0]:
            task[..., list(self.hidden[0])] = 0.0
        node = torch.cat([observation.node, setting.expand(-1, nodes, -1)], dim=-1)
        x = torch.cat([self.embed_task(task), self.embed_node(node)], dim=1)
        visible = functional.pad(observation.present, (0, nodes), value=True)
        # As an additive float mask: the bool form is converted anew in every block.
        mask = torch.zeros_like(visible, dtype=x.dtype).masked_fill_(~visible, -torch.inf)[:, None, None, :]
        for block in self.encoder:
            x = block(x, mask)
        x = self.norm(x)
        weight = visible.to(x.dtype)[..., None]
        pool = (x * weight).sum(dim=1) / weight.sum(dim=1)
        memory = torch.cat([x[:, :candidates], self.idle.expand(batch, 1, -1)], dim=1)
        return Encoded(x[:, candidates:], memory, self.key(memory), self.static(observation), pool)

    def value(self, encoded: Encoded, setting: Tensor) -> Tensor:
        """Return the normalised value (B,)."""
        return self.value_head(torch.cat([encoded.pool, setting], dim=-1)).squeeze(-1)

    def point(self, hidden: Tensor, key: Tensor) -> Tensor:
        """Learned pointer logits of decoder outputs (B, m, D) at keys (B, K + 1, D): (B, m, K + 1)."""
        query = self.query(self.decoder_norm(hidden))
        return query @ key.transpose(1, 2) / math.sqrt(self.width)

    def logits(self, encoded: Encoded, picks: Tensor) -> Tensor:
        """Logits (B, M, K + 1) of all nodes in one pass, teacher-forced on ``picks`` (B, M); not yet masked."""
        nodes = picks.shape[1]
        x = encoded.node
        if self.autoregressive:
            index = picks[:, :-1, None].expand(-1, -1, self.width)
            chosen = self.picked(torch.gather(encoded.memory, 1, index))
            first = self.start.expand(len(picks), 1, -1)
            x = x + torch.cat([first, chosen], dim=1)
            mask = torch.ones(nodes, nodes, dtype=torch.bool).tril()
        else:
            x = x + self.start
            mask = torch.eye(nodes, dtype=torch.bool)
        return self.point(self.decoder(x, mask), encoded.key) + encoded.static
