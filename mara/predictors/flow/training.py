"""The training loop of all learned predictors: AdamW, warm-up and cosine, averaged weights, resumable.

All randomness of a run comes from one torch.Generator whose state is part of the checkpoint, so a run that
was stopped and resumed ends with the same bytes as one that was not.
"""

from __future__ import annotations

import copy
import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from mara.config.flow import TrainingSettings
from mara.errors import InputError
from mara.files import UNREADABLE, atomic_path, why_unreadable
from mara.tensor_files import save_tensors

PROCESSOR = torch.device("cpu")
Network = TypeVar("Network", bound=nn.Module)
Objective = Callable[[Network, Tensor, torch.Generator], Tensor]
"""(network, indices (B,) of the batch, generator) -> scalar loss."""


@dataclass
class Run:
    """Where a training run keeps what it writes; either may be None.

    checkpoint: file to resume from and to save to; its owner calls :meth:`finished` when all that follows the
        training is done and saved too, so that a stop in between costs no training.
    log: CSV with one row per checkpoint interval: step, loss, learning_rate and what ``watch`` returns.
    device: where the network is trained. Data and random numbers stay on the processor, and so does all that
        is made of the trained network.
    """

    checkpoint: Path | None = None
    log: Path | None = None
    device: torch.device = PROCESSOR

    def finished(self) -> None:
        """Remove the checkpoint."""
        if self.checkpoint is not None:
            self.checkpoint.unlink(missing_ok=True)


def usable_device(name: str) -> torch.device:
    """The device that a setting names; ``auto`` is a GPU where there is one, else the processor.

    Raises:
        InputError: ``cuda`` is asked for, and there is none.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(
            "study.device: cuda, but this machine has no GPU that torch can use; set cpu or auto"
        )
    return torch.device(name)


def called_on(device: torch.device, network: Network) -> Network:
    """Let a network on ``device`` be called with tensors of the processor, and answer with such."""
    if device == PROCESSOR:
        return network

    def call(*inputs: Tensor) -> Tensor:
        return network(*(part.to(device) for part in inputs)).to("cpu")

    return cast(Network, call)


def train(
    network: Network,
    objective: Objective[Network],
    examples: int,
    settings: TrainingSettings,
    generator: torch.Generator,
    run: Run,
    watch: Callable[[Network], dict[str, float]] | None = None,
) -> Network:
    """Train ``network`` in place on ``examples`` many examples; returns a copy with averaged weights.

    Args:
        network: what to train.
        objective: the loss of a batch.
        examples: how many examples there are; each batch draws from them with replacement.
        settings: see :class:`TrainingSettings`.
        generator: source of all randomness from here on.
        run: where to resume from and what to write.
        watch: called with the averaged network at every log row; must draw nothing from ``generator``.
    """
    network.to(run.device)
    called = called_on(run.device, network)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, betas=(0.9, 0.98)
    )
    averaged = copy.deepcopy(network).requires_grad_(False).to(run.device)
    rows: list[dict[str, float]] = []
    first, total = 0, 0.0
    if run.checkpoint is not None and run.checkpoint.exists():
        try:
            state = torch.load(run.checkpoint, map_location="cpu", weights_only=True)
            network.load_state_dict(state["network"])
            averaged.load_state_dict(state["averaged"])
            optimizer.load_state_dict(state["optimizer"])
            generator.set_state(state["generator"])
            first, rows = state["step"], state["rows"]
        except UNREADABLE as error:
            raise InputError(
                f"{run.checkpoint}: not a checkpoint of this training ({why_unreadable(error)}); delete it"
            ) from None
        _write_log(run.log, rows)
    network.train()
    for step in range(first, settings.steps):
        rate = settings.learning_rate * _schedule(step, settings)
        for group in optimizer.param_groups:
            group["lr"] = rate
        index = torch.randint(examples, (settings.batch,), generator=generator)
        with torch.autocast(run.device.type, torch.bfloat16, enabled=settings.half_precision):
            loss = objective(called, index, generator)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        decay = min(settings.average, (step + 1) / (step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(list(averaged.parameters()), list(network.parameters()), 1.0 - decay)
        total += loss.item()
        if (step + 1) % settings.checkpoint_every == 0 or step + 1 == settings.steps:
            done = (step % settings.checkpoint_every) + 1
            row = {"step": float(step + 1), "loss": total / done, "learning_rate": rate}
            rows.append(row | (watch(copy.deepcopy(averaged).cpu()) if watch is not None else {}))
            total = 0.0
            _write_log(run.log, rows)
            _write_checkpoint(run.checkpoint, step + 1, network, averaged, optimizer, generator, rows)
    return averaged.cpu().eval()


def _schedule(step: int, settings: TrainingSettings) -> float:
    rise = min(1.0, (step + 1) / max(settings.warm_up, 1))
    return rise * 0.5 * (1.0 + math.cos(math.pi * step / settings.steps))


def _write_log(path: Path | None, rows: list[dict[str, float]]) -> None:
    if path is None:
        return
    with atomic_path(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _write_checkpoint(
    path: Path | None,
    step: int,
    network: nn.Module,
    averaged: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    rows: list[dict[str, float]],
) -> None:
    if path is None:
        return
    state: dict[str, Any] = {
        "step": step,
        "network": network.state_dict(),
        "averaged": averaged.state_dict(),
        "optimizer": optimizer.state_dict(),
        "generator": generator.get_state(),
        "rows": rows,
    }
    save_tensors(path, state)
