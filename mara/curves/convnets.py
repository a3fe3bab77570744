"""Small convolutional networks, several runs in one: their layers, and a forward pass over stacked weights.

A network is a tuple of layers. All runs of a batch share the architecture and keep their own weights; the
runs lie side by side on the channel axis, so that a convolution of all runs is one grouped convolution.

Shapes: R runs, B images, C channels, H x W pixels, P parameters of one run, K outputs. Activations are
(B, R * C, H, W), run by run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Conv:
    """A convolution, padded to keep the size; ``depthwise`` sees each channel by itself."""

    channels: int
    kernel: int = 3
    stride: int = 1
    dilation: int = 1
    depthwise: bool = False


@dataclass(frozen=True)
class Activation:
    """An elementwise function: relu, tanh or gelu."""

    name: str = "relu"


@dataclass(frozen=True)
class Norm:
    """Normalises the channels and pixels of each image together, then scales and shifts each channel."""


@dataclass(frozen=True)
class Pool:
    """Halves the size by the largest value or the mean."""

    largest: bool = True


@dataclass(frozen=True)
class Upsample:
    """Doubles the size by repeating pixels."""


@dataclass(frozen=True)
class GlobalMean:
    """Replaces each channel by its mean."""


@dataclass(frozen=True)
class Residual:
    """Adds its input to what its layers make of it."""

    layers: tuple[Layer, ...]


Layer = Conv | Activation | Norm | Pool | Upsample | GlobalMean | Residual

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "tanh": torch.tanh, "gelu": F.gelu}


class StackedConvNet:
    """An architecture, closed by a linear layer (if ``dense``, one at each pixel), for R runs at once."""

    def __init__(
        self, layers: Sequence[Layer], image: tuple[int, int, int], outputs: int, dense: bool = False
    ) -> None:
        """Work out the weights' shapes for images (C, H, W)."""
        self._layers = tuple(layers)
        self._dense = dense
        self._shapes: list[tuple[int, ...]] = []
        self._fills: list[float | None] = []
        channels, height, width = self._measure(self._layers, image)
        self.last_channels = channels
        """C', the channels that dropout acts on."""
        self._add((outputs, channels, 1, 1) if dense else (outputs, channels * height * width), None)
        self._add((outputs,), 0.0)
        self._sizes = [math.prod(shape) for shape in self._shapes]
        self.size = sum(self._sizes)
        """P"""

    def _add(self, shape: tuple[int, ...], fill: float | None) -> None:
        """Note a weight; its ``fill`` is the value it starts with, None for random."""
        self._shapes.append(shape)
        self._fills.append(fill)

    def _measure(self, layers: Sequence[Layer], image: tuple[int, int, int]) -> tuple[int, int, int]:
        """Note the weights of the layers; return the shape of what leaves the last one."""
        channels, height, width = image
        for layer in layers:
            match layer:
                case Conv():
                    seen = 1 if layer.depthwise else channels
                    self._add((layer.channels, seen, layer.kernel, layer.kernel), None)
                    self._add((layer.channels,), 0.0)
                    channels = layer.channels
                    height, width = -(-height // layer.stride), -(-width // layer.stride)
                case Norm():
                    self._add((channels,), 1.0)
                    self._add((channels,), 0.0)
                case Pool():
                    height, width = height // 2, width // 2
                case Upsample():
                    height, width = height * 2, width * 2
                case GlobalMean():
                    height = width = 1
                case Residual():
                    self._measure(layer.layers, (channels, height, width))
        return channels, height, width

    def initial(self, gain: float, generator: torch.Generator) -> Tensor:
        """Draw the weights (P,) of one run: biases 0, a norm's scale 1, the rest normal.

        Their deviation is He's, sqrt(2 / fan in), times ``gain``; the closing layer's a third of it, so that
        first outputs are small.
        """
        parts = []
        for place, (shape, fill) in enumerate(zip(self._shapes, self._fills, strict=True)):
            if fill is None:
                deviation = gain * math.sqrt(2.0 / math.prod(shape[1:]))
                if place == len(self._shapes) - 2:
                    deviation /= 3.0
                parts.append(deviation * torch.randn(math.prod(shape), generator=generator))
            else:
                parts.append(torch.full(shape, fill))
        return torch.cat(parts)

    def forward(self, parameters: Tensor, images: Tensor, keep: Tensor | None = None) -> Tensor:
        """Return the outputs (R, B, K), or (R, B, K, H, W) if dense.

        Args:
            parameters: (R, P).
            images: (B, R * C, H, W), each run's own.
            keep: (B, R * C') factors of the channels before the closing layer, for dropout.
        """
        runs = len(parameters)
        parts = torch.split_with_sizes(parameters, self._sizes, dim=1)
        weights = iter(part.reshape(runs, *shape) for part, shape in zip(parts, self._shapes, strict=True))
        hidden = _apply(self._layers, images, weights, runs)
        if keep is not None:
            hidden = hidden * keep[:, :, None, None]
        weight, bias = next(weights), next(weights)
        batch = len(images)
        if self._dense:
            out = F.conv2d(hidden, weight.flatten(0, 1), bias.flatten(), groups=runs)
            return out.reshape(batch, runs, -1, *out.shape[2:]).transpose(0, 1)
        features = hidden.reshape(batch, runs, -1).transpose(0, 1)
        return torch.baddbmm(bias[:, None, :], features, weight.transpose(1, 2))


def _apply(layers: Sequence[Layer], hidden: Tensor, weights: Iterator[Tensor], runs: int) -> Tensor:
    """Run the layers on activations (B, R * C, H, W), taking weights in the order they were noted."""
    for layer in layers:
        match layer:
            case Conv():
                weight, bias = next(weights), next(weights)
                hidden = F.conv2d(
                    hidden,
                    weight.flatten(0, 1),
                    bias.flatten(),
                    stride=layer.stride,
                    padding=layer.dilation * ((layer.kernel - 1) // 2),
                    dilation=layer.dilation,
                    groups=hidden.shape[1] if layer.depthwise else runs,
                )
            case Activation():
                hidden = _ACTIVATIONS[layer.name](hidden)
            case Norm():
                scale, shift = next(weights).flatten(), next(weights).flatten()
                hidden = F.group_norm(hidden, runs, scale, shift)
            case Pool():
                hidden = F.max_pool2d(hidden, 2) if layer.largest else F.avg_pool2d(hidden, 2)
            case Upsample():
                hidden = F.interpolate(hidden, scale_factor=2.0, mode="nearest")
            case GlobalMean():
                hidden = hidden.mean(dim=(2, 3), keepdim=True)
            case Residual():
                hidden = hidden + _apply(layer.layers, hidden, weights, runs)
    return hidden
