"""The decoder compiled, for acting greedily: what `decode` with the chooser `greedy` does, without its overhead.

A step of the decoder is some 10,000 multiplications for one node, far less than the calls of the three dozen tensor
operations that it takes. Training and sampling stay with `decoding.py`; a test holds the two equal.

B batch, K candidate tasks, M nodes in decoding order, D width, h heads, F hidden width; action K idles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mara.allocators.mat.mask import MaskState
from mara.allocators.mat.network import Encoded, MatNetwork
from mara.simulator.jit import jit_lean


class Weights(NamedTuple):
    """The decoder's weights; matrices are (inputs, outputs), so that the inner loop runs over outputs."""

    norm1: np.ndarray
    """(2, D) scale and shift; the same for the other norms."""
    qkv: np.ndarray
    qkv_bias: np.ndarray
    out: np.ndarray
    out_bias: np.ndarray
    norm2: np.ndarray
    first: np.ndarray
    first_bias: np.ndarray
    second: np.ndarray
    second_bias: np.ndarray
    norm3: np.ndarray
    query: np.ndarray
    query_bias: np.ndarray
    start: np.ndarray


class Room(NamedTuple):
    """Scratch of one lane."""

    x: np.ndarray
    normed: np.ndarray
    qkv: np.ndarray
    mixed: np.ndarray
    hidden: np.ndarray
    change: np.ndarray
    weight: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    used: np.ndarray


def decoder_weights(network: MatNetwork) -> Weights:
    """Take the decoder's weights out of a network."""
    block = network.decoder

    def norm(layer: torch.nn.LayerNorm) -> np.ndarray:
        return _plain(torch.stack([layer.weight, layer.bias]))

    def linear(layer: torch.nn.Module) -> tuple[np.ndarray, np.ndarray]:
        assert isinstance(layer, torch.nn.Linear)
        return _plain(layer.weight.T), _plain(layer.bias)

    return Weights(
        norm(block.norm1), *linear(block.attention.qkv), *linear(block.attention.out),
        norm(block.norm2), *linear(block.mlp[0]), *linear(block.mlp[2]),
        norm(network.decoder_norm), *linear(network.query), _plain(network.start),
    )  # fmt: skip


def _plain(value: Tensor) -> np.ndarray:
    array: np.ndarray = np.ascontiguousarray(value.detach().numpy(), np.float32)
    return array


class GreedyDecoder:
    """Decodes by the greatest logits with the weights that the network has now."""

    def __init__(self, network: MatNetwork) -> None:
        self.network, self.weights = network, decoder_weights(network)

    def __call__(self, encoded: Encoded, state: MaskState) -> Tensor:
        """Let the nodes pick one after the other: (B, M) int64."""
        network, weights = self.network, self.weights
        batch, nodes = state.up.shape
        width, candidates = network.width, state.present.shape[1]
        picks = np.empty((batch, nodes), np.int64)
        shapes = ((width,), (width,), (3 * width,), (width,), (weights.first.shape[1],), (width,), (nodes,))
        parts: list[np.ndarray] = [
            np.empty(shape, np.float32) for shape in (*shapes, (nodes, width), (nodes, width))
        ]
        parts.append(np.empty(candidates, np.int32))
        room = Room(*parts)
        after = network.picked(encoded.memory) if network.autoregressive else encoded.memory
        _decode_all(
            _plain(encoded.node), _plain(after), _plain(encoded.key / np.sqrt(width)), _plain(encoded.static),
            state.present.numpy(), state.up.numpy(), state.cap if state.exclusive else nodes,
            network.autoregressive, network.decoder.attention.heads, weights, room, picks,
        )  # fmt: skip
        return torch.from_numpy(picks)


@jit_lean
def _decode_all(
    node: np.ndarray, after: np.ndarray, key: np.ndarray, static: np.ndarray, present: np.ndarray, up: np.ndarray,
    cap: int, autoregressive: bool, heads: int, weights: Weights, room: Room, picks: np.ndarray,
) -> None:  # fmt: skip
    candidates = present.shape[1]
    for b in range(picks.shape[0]):
        room.used[:] = 0
        for m in range(picks.shape[1]):
            for d in range(room.x.shape[0]):
                before = after[b, picks[b, m - 1], d] if m > 0 and autoregressive else weights.start[d]
                room.x[d] = node[b, m, d] + before
            place = m if autoregressive else 0
            _step(room, weights, place, heads)
            best, most = candidates, static[b, m, candidates] + _dot(room.normed, key[b, candidates])
            for k in range(candidates - 1, -1, -1):
                if present[b, k] and up[b, m] and room.used[k] < cap:
                    logit = static[b, m, k] + _dot(room.normed, key[b, k])
                    if logit >= most:
                        best, most = k, logit
            picks[b, m] = best
            if best < candidates:
                room.used[best] += 1


@jit_lean
def _step(room: Room, weights: Weights, place: int, heads: int) -> None:
    """Process the token in ``room.x``, the ``place``-th of its lane; leave its query in ``room.normed``."""
    width = room.x.shape[0]
    _norm(room.x, weights.norm1, room.normed)
    _linear(room.normed, weights.qkv, weights.qkv_bias, room.qkv)
    for d in range(width):
        room.keys[place, d] = room.qkv[width + d]
        room.values[place, d] = room.qkv[2 * width + d]
    _attend(room, place + 1, heads)
    _linear(room.mixed, weights.out, weights.out_bias, room.change)
    for d in range(width):
        room.x[d] += room.change[d]
    _norm(room.x, weights.norm2, room.normed)
    _linear(room.normed, weights.first, weights.first_bias, room.hidden)
    for f in range(room.hidden.shape[0]):
        room.hidden[f] = max(room.hidden[f], np.float32(0.0))
    _linear(room.hidden, weights.second, weights.second_bias, room.change)
    for d in range(width):
        room.x[d] += room.change[d]
    _norm(room.x, weights.norm3, room.mixed)
    _linear(room.mixed, weights.query, weights.query_bias, room.normed)


@jit_lean
def _attend(room: Room, seen: int, heads: int) -> None:
    size = room.x.shape[0] // heads
    scale = np.float32(1.0 / np.sqrt(size))
    for h in range(heads):
        first = h * size
        most = np.float32(-np.inf)
        for t in range(seen):
            value = np.float32(0.0)
            for d in range(first, first + size):
                value += room.qkv[d] * room.keys[t, d]
            room.weight[t] = value * scale
            most = max(most, room.weight[t])
        total = np.float32(0.0)
        for t in range(seen):
            room.weight[t] = np.exp(room.weight[t] - most)
            total += room.weight[t]
        for d in range(first, first + size):
            room.mixed[d] = 0.0
        for t in range(seen):
            share = room.weight[t] / total
            for d in range(first, first + size):
                room.mixed[d] += share * room.values[t, d]


@jit_lean
def _norm(x: np.ndarray, weight: np.ndarray, out: np.ndarray) -> None:
    mean, square = np.float32(0.0), np.float32(0.0)
    for d in range(x.shape[0]):
        mean += x[d]
    mean /= np.float32(x.shape[0])
    for d in range(x.shape[0]):
        square += (x[d] - mean) ** 2
    factor = np.float32(1.0) / np.sqrt(square / np.float32(x.shape[0]) + np.float32(1e-5))
    for d in range(x.shape[0]):
        out[d] = (x[d] - mean) * factor * weight[0, d] + weight[1, d]


@jit_lean
def _linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
    for o in range(out.shape[0]):
        out[o] = bias[o]
    for i in range(x.shape[0]):
        for o in range(out.shape[0]):
            out[o] += x[i] * weight[i, o]


@jit_lean
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    total = np.float32(0.0)
    for d in range(a.shape[0]):
        total += a[d] * b[d]
    return float(total)
