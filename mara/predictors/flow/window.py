"""What a deadline says about the demand: a density ratio that reweights the crossing times of sampled paths.

Paths know nothing of targets or windows. By Bayes' rule P(crossing in k | prefix, window) is proportional
to P(crossing in k | prefix) r_k, with r_k = p(window | crossing in k, units) up to a factor. The ratio r is
a small network of total demand, window and units trained, fitted by maximum likelihood of the reweighted
forecasts on tasks.
Questions without a window are left as they are.

Shapes: B questions, K knots, L = K + 1 intervals, the last one beyond the last knot or never, H horizon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from mara.config.flow import WindowSettings
from mara.curves.corpus import Corpus
from mara.predictors.examples import Examples, draw_examples
from mara.predictors.flow.network import PlainModule, initialise
from mara.predictors.flow.reweighting import RATIO_INPUTS, ratio_inputs, reweighted
from mara.predictors.flow.trajectory import KNOT, KNOTS

_TINY = 1e-4
"""Probability given to every interval besides its paths', so that no truth is impossible: far less than one path of 64.
Set by hand; on tasks of validation curves (CRPS .095, without the window .131) a tenth of it changes -.0001 [-.0002,
.0001], ten times +.0009 [-.0000, .0018]."""
_LEARNING_RATE = 3e-3
"""Of the first step; it falls to zero along a straight line. Set by hand; on the same tasks a third of it changes
+.0006 [-.0002, .0014], three times -.0001 [-.0005, .0003]; another seed +.0003 [.0000, .0006]."""
_WEIGHT_DECAY = 0.05
"""Set by hand; none at all changes less than .0001, ten times +.0003 [-.0002, .0008]."""


def draw_tasks(corpus: Corpus, count: int, rng: np.random.Generator) -> Examples:
    """About ``count`` examples with a window."""
    drawn = draw_examples(corpus, 2 * count, True, rng)
    return drawn.rows(np.isfinite(drawn.query.window))


class RatioNetwork(PlainModule):
    """Inputs (B, L, 6) to log ratios (B, L)."""

    def __init__(self, hidden: int) -> None:
        super().__init__(hidden)
        self.enter = nn.Linear(RATIO_INPUTS, hidden)
        self.middle = nn.Linear(hidden, hidden)
        self.leave = nn.Linear(hidden, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Log ratios (B, L)."""
        return self.leave(torch.tanh(self.middle(torch.tanh(self.enter(inputs)))))[..., 0]


@dataclass(frozen=True)
class WindowRatio:
    """The density ratio."""

    network: RatioNetwork

    @classmethod
    def fit(
        cls,
        share: NDArray[np.float32],
        tasks: Examples,
        settings: WindowSettings,
        generator: torch.Generator,
    ) -> WindowRatio:
        """Fit on B tasks and what was forecast for them without the window, ``share`` (B, L)."""
        network = RatioNetwork(settings.hidden)
        initialise(network, generator)
        data = torch.from_numpy(ratio_inputs(tasks.query.length - 1, tasks.query.window))
        log_share = torch.from_numpy(np.log((share + _TINY) / (1.0 + _TINY * share.shape[1])))
        interval = torch.from_numpy(np.searchsorted(KNOT, tasks.remaining))
        last = torch.from_numpy(np.searchsorted(KNOT, tasks.left, side="right"))
        optimizer = torch.optim.AdamW(network.parameters(), lr=_LEARNING_RATE, weight_decay=_WEIGHT_DECAY)
        for step in range(settings.steps):
            for group in optimizer.param_groups:
                group["lr"] = _LEARNING_RATE * (1.0 - step / settings.steps)
            rows = torch.randint(len(share), (settings.batch,), generator=generator)
            logits = log_share[rows] + network(data[rows])
            loss = crossing_loss(logits, interval[rows], last[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        return cls(network.eval())

    def __call__(
        self, cdf: NDArray[np.float32], units: NDArray[np.integer], window: NDArray[np.floating]
    ) -> NDArray[np.float32]:
        """Reweight cdf (B, H+1), H at the last knot; rows without a window (B,) stay as they are."""
        given = np.isfinite(window)
        if not given.any():
            return cdf
        with torch.inference_mode():
            inputs = torch.from_numpy(ratio_inputs(units[given], window[given]))
            log_ratio = self.network(inputs).double().numpy()
        out = cdf.copy()
        out[given] = reweighted(cdf[given], log_ratio)
        return out


def crossing_loss(logits: Tensor, interval: Tensor, last: Tensor) -> Tensor:
    """Mean negative log-likelihood of the crossing's interval (B,) under logits (B, L).

    ``last`` (B,) is the first interval not wholly seen: a crossing there or later counts as "any of these".
    """
    log_share = functional.log_softmax(logits.float(), dim=1)
    hidden = torch.arange(KNOTS + 1) < last[:, None]
    tail = log_share.masked_fill(hidden, -torch.inf).logsumexp(dim=1)
    exact = log_share.gather(1, interval[:, None])[:, 0]
    return -torch.where(interval >= last, tail, exact).mean()
