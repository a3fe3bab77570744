"""Where networks are trained: what a setting asks for, and that a device changes neither randomness nor results."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from mara.config.flow import TrainingSettings
from mara.errors import InputError
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


def test_a_network_elsewhere_is_trained_as_one_here() -> None:
    made = nn.Linear(3, 1)
    data = torch.randn(20, 3, generator=torch.Generator().manual_seed(1))
    called = []

    def objective(network: nn.Linear, index: Tensor, generator: torch.Generator) -> Tensor:
        called.append(network)
        seen = data[index] + 0.1 * torch.randn(len(index), 3, generator=generator)
        return (network(seen) - 1.0).square().mean()

    def trained(device: str) -> dict[str, Tensor]:
        network, generator = copy.deepcopy(made), torch.Generator().manual_seed(2)
        run = Run(device=torch.device(device))
        return train(network, objective, len(data), SETTINGS, generator, run).state_dict()

    here, elsewhere = trained("cpu"), trained("cpu:0")  # the same processor, but by another name
    assert isinstance(called[0], nn.Linear)
    assert not isinstance(called[-1], nn.Linear)
    assert here.keys() == elsewhere.keys()
    assert all(torch.equal(here[name], elsewhere[name]) for name in here)
