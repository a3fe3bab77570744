"""Where networks are trained: what a setting asks for, and that a device changes neither randomness nor results."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from mara.config.flow import TrainingSettings
from mara.errors import InputError
from mara.predictors.flow import training
from mara.predictors.flow.training import Run, train, usable_device

SETTINGS = TrainingSettings(steps=6, batch=4, warm_up=2, checkpoint_every=3, half_precision=False)


def test_auto_falls_back_to_the_processor_and_cuda_is_refused_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert usable_device("auto") == usable_device("cpu") == torch.device("cpu")
    with pytest.raises(InputError, match=r"^study\.device: cuda, but this machine has no GPU"):
        usable_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert usable_device("auto").type == usable_device("cuda").type == "cuda"


class Elsewhere:
    """A device that is said not to be the processor, though it is."""

    type = "elsewhere"


def test_a_network_elsewhere_is_trained_as_one_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = nn.Linear(3, 1)
    data = torch.randn(20, 3, generator=torch.Generator().manual_seed(1))

    def objective(network: nn.Linear, index: Tensor, generator: torch.Generator) -> Tensor:
        seen = data[index] + 0.1 * torch.randn(len(index), 3, generator=generator)
        return (network(seen) - 1.0).square().mean()

    def weights(run: Run) -> list[Tensor]:
        network = copy.deepcopy(made)
        generator = torch.Generator().manual_seed(2)
        return list(train(network, objective, len(data), SETTINGS, generator, run).parameters())

    here = weights(Run())
    real_call = training.called_on
    calls = []

    def called_on(device: torch.device, network: nn.Module) -> nn.Module:
        moved = real_call(Elsewhere(), network)  # type: ignore[arg-type]
        assert moved is not network
        calls.append(device)
        return moved

    monkeypatch.setattr(Tensor, "to", lambda self, *_: self)
    monkeypatch.setattr(training, "called_on", called_on)
    for one, other in zip(here, weights(Run()), strict=True):
        assert torch.equal(one, other)
    assert calls == [torch.device("cpu")]
