import numpy as np
import pytest
import torch

from mara.curves.corpus import POINTS
from mara.curves.optimizers import OPTIMIZERS, SCHEDULES, StackedOptimizer, draw_settings, learning_rates

REFERENCES = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.02),
    "momentum": lambda weights: torch.optim.SGD(weights, lr=0.02, momentum=0.9),
    "nesterov": lambda weights: torch.optim.SGD(weights, lr=0.02, momentum=0.9, nesterov=True),
    "rmsprop": lambda weights: torch.optim.RMSprop(weights, lr=0.02, alpha=0.99),
    "adam": lambda weights: torch.optim.Adam(weights, lr=0.02),
}


def test_runs_side_by_side_are_pytorchs_optimizers() -> None:
    generator = torch.Generator().manual_seed(0)
    gradients = torch.randn(25, len(OPTIMIZERS), 7, generator=generator, dtype=torch.float64)
    start = torch.randn(len(OPTIMIZERS), 7, generator=generator, dtype=torch.float64)
    ours = start.clone()
    stacked = StackedOptimizer(OPTIMIZERS, [0.0] * len(OPTIMIZERS), ours)
    for gradient in gradients:
        stacked.step(gradient, torch.full((len(OPTIMIZERS),), 0.02, dtype=torch.float64))
    for run, name in enumerate(OPTIMIZERS):
        weights = start[run].clone().requires_grad_()
        reference = REFERENCES[name]([weights])
        for gradient in gradients:
            weights.grad = gradient[run].clone()
            reference.step()
        # PyTorch keeps some constants in single precision, which the coefficients here do not share.
        torch.testing.assert_close(ours[run], weights.detach(), rtol=1e-6, atol=1e-8)


def test_weight_decay_is_decoupled_as_in_adamw() -> None:
    ours = torch.ones(1, 3, dtype=torch.float64)
    stacked = StackedOptimizer(["adam"], [0.1], ours)
    weights = torch.ones(3, dtype=torch.float64, requires_grad=True)
    reference = torch.optim.AdamW([weights], lr=0.02, weight_decay=0.1)
    for step in range(5):
        gradient = torch.tensor([1.0, -2.0, 0.5 * step], dtype=torch.float64)
        stacked.step(gradient[None], torch.tensor([0.02], dtype=torch.float64))
        weights.grad = gradient.clone()
        reference.step()
    torch.testing.assert_close(ours[0], weights.detach(), rtol=1e-6, atol=1e-8)


def test_a_run_without_finite_numbers_leaves_the_others_alone() -> None:
    ours = torch.ones(2, 3)
    stacked = StackedOptimizer(["sgd", "adam"], [0.0, 0.0], ours)
    stacked.step(torch.tensor([[torch.nan] * 3, [1.0] * 3]), torch.tensor([0.1, 0.1]))
    assert ours[0].isnan().all()
    assert ours[1].isfinite().all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules_stay_within_their_peak(schedule: str) -> None:
    rates = learning_rates(schedule, 0.3)
    assert rates.shape == (POINTS,)
    assert rates[0] == rates[1]
    assert (rates > 0).all()
    assert 0.29 < rates.max() < 0.302
    if schedule not in ("constant", "warmup"):
        assert (np.diff(rates) <= 0).all()
        assert rates[-1] < 0.02 * rates[1]


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown schedule 'sawtooth'"):
        learning_rates("sawtooth", 0.1)


def test_settings_cover_the_optimizers_over_two_decades() -> None:
    rng = np.random.default_rng(0)
    drawn = [draw_settings(rng) for _ in range(1000)]
    for optimizer in OPTIMIZERS:
        rates = [settings["learning_rate"] for settings in drawn if settings["optimizer"] == optimizer]
        assert np.ptp(np.log10(rates)) > 2
