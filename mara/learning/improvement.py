"""Regression of the advantages that look-ahead found: the network's logits become (scaled) advantages.

With logits z of the parallel pass along the index's own picks, the predicted advantage of "task k on node m" is
(z[m, k] - z[m, index's pick]) / scale. Minimised is the squared error to single samples with a free constant for each
state: all labels of a state share the noise of the same roll-out of the index, which would otherwise be learned by
heart. The minimum is the expected advantage given the observation. Acting greedily on z is then one step of
policy improvement over the index, and the softmax of z the policy that a penalty on the divergence from the index
would give.

S states, D deviations, M nodes, K candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from mara.allocators.mat.network import MatNetwork
from mara.config.mat import LookaheadSettings
from mara.learning.rollout import Labelled

Log = Callable[[dict[str, float | int | str]], None]


def predicted(network: MatNetwork, states: Labelled, scale: float, pairs_only: bool = False) -> Tensor:
    """Predicted advantages (S, D) of the labelled deviations; ``pairs_only`` leaves the pointer out."""
    if pairs_only:
        logits = network.static(states.observation)
    else:
        logits = network.logits(network.encode(states.observation), states.base)
    rows = torch.arange(len(states))[:, None]
    own = states.base.gather(1, states.node)
    gap: Tensor = logits[rows, states.node, states.action] - logits[rows, states.node, own]
    return gap / scale


def centred(values: Tensor) -> Tensor:
    """Take the index's own action, whose advantage is 0, in as one more column, and the state's mean off."""
    whole = torch.nn.functional.pad(values, (0, 1))
    return whole - whole.mean(dim=1, keepdim=True)


def regress(
    network: MatNetwork,
    data: list[Labelled],
    settings: LookaheadSettings,
    generator: torch.Generator,
    log: Log,
    pairs_only: bool = False,
) -> None:
    """Fit the network to the labels; each entry of ``data`` holds the states of one cluster.

    With ``pairs_only`` just the prior's gain and the pair bias are fitted, some hundred weights for a noisy signal;
    the pointer must be zero then.

    A twentieth of the states is held back; logged is by how much the squared error there falls below that of
    predicting no advantage at all, as a share of the labels' variance (``explained_variance``).
    """
    held = [max(1, len(d) // 20) for d in data]
    orders = [torch.randperm(len(d), generator=generator) for d in data]
    train = [order[h:] for order, h in zip(orders, held, strict=True)]
    kept = [order[:h] for order, h in zip(orders, held, strict=True)]
    decay: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for name, parameter in network.named_parameters():
        if pairs_only and not name.startswith(("bias.", "gain")):
            continue
        (plain if parameter.ndim < 2 or name == "idle" else decay).append(parameter)
    groups = [
        {"params": decay, "weight_decay": settings.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate if pairs_only else settings.pointer_rate)
    batches = [math.ceil(len(order) / settings.batch) for order in train]
    total = settings.epochs * sum(batches)
    warm = max(1, total // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * min(1.0, step / total))) + 1e-3),
    )
    step = 0
    for epoch in range(settings.epochs):
        plan = torch.tensor([which for which, count in enumerate(batches) for _ in range(count)])
        plan = plan[torch.randperm(len(plan), generator=generator)]
        shuffled = [order[torch.randperm(len(order), generator=generator)] for order in train]
        at, loss_sum = [0] * len(data), 0.0
        for which in plan.tolist():
            index = shuffled[which][at[which] : at[which] + settings.batch]
            at[which] += settings.batch
            batch = data[which].rows(index)
            loss = (
                centred(predicted(network, batch, settings.scale, pairs_only) - batch.advantage)
                .square()
                .mean()
            )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            loss_sum += float(loss.detach())
            step += 1
        found = [
            held_back_score(network, d.rows(k), settings.scale, pairs_only)
            for d, k in zip(data, kept, strict=True)
        ]
        log(
            {
                "phase": "pairs" if pairs_only else "lookahead",
                "step": epoch,
                "loss": loss_sum / len(plan),
                "gradient": float(norm),
                "explained_variance": sum(found) / len(found),
                "gain": float(network.gain.detach()),
            }
        )


def held_back_score(
    network: MatNetwork, states: Labelled, scale: float, pairs_only: bool = False, batch: int = 512
) -> float:
    """1 - squared error / squared labels on states that were not trained on: above 0 if anything was learned."""
    error, square = 0.0, 0.0
    with torch.no_grad():
        for index in torch.arange(len(states)).split(batch):
            rows = states.rows(index)
            error += float(
                centred(predicted(network, rows, scale, pairs_only) - rows.advantage).square().sum()
            )
            square += float(centred(rows.advantage).square().sum())
    return 1 - error / max(square, 1e-12)
