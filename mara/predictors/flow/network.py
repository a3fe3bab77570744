"""The velocity network: an encoder of the prefix, run once, and a residual network, run at every solver step.

Shapes: B prefixes, P paths, K knots, F features, W width, D depth.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

TIME_FEATURES = 16


class Encoder(nn.Module):
    """Turns what is known of a prefix into shifts that steer the residual blocks: (B, F) -> (B, D + 1, W)."""

    def __init__(self, features: int, hidden: int, width: int, depth: int) -> None:
        super().__init__()
        self.depth = depth
        self.layers = nn.Sequential(
            nn.Linear(features, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, (depth + 1) * width),
        )

    def forward(self, features: Tensor) -> Tensor:
        """Shifts (B, D + 1, W) of features (B, F)."""
        return self.layers(features).unflatten(-1, (self.depth + 1, -1))


class Velocity(nn.Module):
    """Velocity of paths (B, P, K) at times (B or 1, 1), given the encoded prefix (B, D + 1, W)."""

    frequency: Tensor

    def __init__(self, knots: int, width: int, depth: int) -> None:
        super().__init__()
        self.enter = nn.Linear(knots, width)
        self.time = nn.Linear(TIME_FEATURES, (depth + 1) * width)
        self.widen = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.narrow = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.leave = nn.Linear(width, knots)
        self.register_buffer("frequency", math.pi * torch.arange(1, TIME_FEATURES // 2 + 1) / 2)

    def forward(self, path: Tensor, time: Tensor, shifts: Tensor) -> Tensor:
        """Velocity (B, P, K)."""
        angle = time * self.frequency
        waves = torch.cat([angle.sin(), angle.cos()], dim=-1)
        steer = shifts + self.time(waves).unflatten(-1, shifts.shape[-2:])
        state = self.enter(path) + steer[:, None, 0]
        for block, (widen, narrow) in enumerate(zip(self.widen, self.narrow, strict=True), start=1):
            inner = widen(functional.silu(state))
            if torch.is_grad_enabled():
                state = state + narrow(functional.silu(inner + steer[:, None, block]))
            else:  # the same in place, a fifth faster
                inner += steer[:, None, block]
                state += narrow(functional.silu(inner, inplace=True))
        return self.leave(state)


class PlainModule(nn.Module):
    """A module pickled as its constructor's arguments and plain arrays: equal weights, equal bytes."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self.sizes = sizes

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = {name: value.detach().cpu().numpy().copy() for name, value in self.state_dict().items()}
        return _rebuild, (type(self), self.sizes, arrays)


def _rebuild(kind: type[PlainModule], sizes: tuple[int, ...], arrays: dict[str, NDArray]) -> PlainModule:
    module = kind(*sizes)
    module.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in arrays.items()})
    return module.eval()


class FlowNetwork(PlainModule):
    """Encoder and velocity."""

    def __init__(self, features: int, knots: int, hidden: int, width: int, depth: int) -> None:
        super().__init__(features, knots, hidden, width, depth)
        self.encoder = Encoder(features, hidden, width, depth)
        self.velocity = Velocity(knots, width, depth)

    def forward(self, path: Tensor, time: Tensor, *condition: Tensor) -> Tensor:
        """Velocity (B, K) of paths (B, K) at times (B, 1) given what the encoder reads."""
        return self.velocity(path[:, None, :], time, self.encoder(*condition))[:, 0]


def initialise(network: nn.Module, generator: torch.Generator) -> None:
    """Draw all linear weights and biases from +-1/sqrt(inputs); the layer called ``leave`` starts at zero."""
    for name, layer in network.named_modules():
        if isinstance(layer, nn.Linear):
            bound = 0.0 if name.endswith("leave") else layer.in_features**-0.5
            for parameter in (layer.weight, layer.bias):
                with torch.no_grad():
                    parameter.uniform_(-bound, bound, generator=generator)
