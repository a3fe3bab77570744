"""The probability path from prior to data, and how its ends are paired.

x_t = (1 - t) x_0 + t x_1 with velocity u_t = x_1 - x_0: conditional flow matching with straight lines
(Lipman et al., arXiv 2210.02747, eq. 23 with sigma_min = 0; Tong et al., arXiv 2302.00482, independent
coupling). The ends are paired independently: a minibatch transport plan would tie x_0 to the condition,
which it is not when sampling.

Shapes: B examples, K knots.
"""

from __future__ import annotations

import torch
from torch import Tensor


def independent_source(target: Tensor, generator: torch.Generator) -> Tensor:
    """Standard normal x_0 (B, K), independent of the data x_1 = ``target`` (B, K) and of any condition."""
    return torch.randn(target.shape, generator=generator, dtype=target.dtype)


def draw_times(count: int, generator: torch.Generator) -> Tensor:
    """Times (count, 1) in [0, 1): one in each of ``count`` equal strata, in random order."""
    place = torch.randperm(count, generator=generator)
    return ((place + torch.rand(count, generator=generator)) / count)[:, None]


def straight_line(source: Tensor, target: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
    """The point x_t (B, K) at ``time`` (B, 1) and the velocity (B, K)."""
    return (1.0 - time) * source + time * target, target - source
