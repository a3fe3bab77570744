"""The transformer: three ways of evaluating it agree, padding and batch do not matter, the mask is as specified."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mara.allocators.mat.decoding import decode, evaluate, evaluate_naively, greedy, sampler
from mara.allocators.mat.greedy import GreedyDecoder
from mara.allocators.mat.mask import MaskState, feasible, feasible_all
from mara.allocators.mat.network import MatNetwork, Observation
from mara.config.mat import NetworkSettings

SIZES = (7, 4, 3, 2)


def make_network(seed=0, prior=True, autoregressive=True, trained=True, **shape):
    torch.manual_seed(seed)
    network = MatNetwork(NetworkSettings(width=16, heads=2, **shape), SIZES, prior, autoregressive).double()
    if trained:  # the zero-initialised layers would hide mistakes
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, dtype=torch.float64))
    return network


def make_observation(batch=5, candidates=9, nodes=4, seed=1):
    g = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    present = torch.rand(batch, candidates, generator=g) < 0.7
    present[0] = False
    task = draw(batch, candidates, SIZES[0]) * present[..., None]
    pair = draw(batch, nodes, candidates, SIZES[2]) * present[:, None, :, None]
    prior = -draw(batch, nodes, candidates).abs()
    up = torch.rand(batch, nodes, generator=g) < 0.8
    return Observation(task, draw(batch, nodes, SIZES[1]), pair, prior, draw(batch, SIZES[3]), present, up)


def mask_state(observation, cap=1):
    return MaskState(observation.present, observation.up, cap)


@pytest.mark.parametrize("autoregressive", [True, False])
@pytest.mark.parametrize("cap", [1, 2])
def test_cached_parallel_and_naive_evaluation_agree(autoregressive, cap):
    network, observation = make_network(autoregressive=autoregressive), make_observation()
    state = mask_state(observation, cap)
    with torch.no_grad():
        encoded = network.encode(observation)
        decoded = decode(network, encoded, state, sampler(torch.Generator().manual_seed(3)))
        parallel, entropy = evaluate(network, encoded, decoded.picks, decoded.mask)
        naive = evaluate_naively(network, encoded, decoded.picks, state)
    assert torch.equal(decoded.mask, feasible_all(state, decoded.picks))
    torch.testing.assert_close(decoded.log_prob, parallel, rtol=0, atol=1e-12)
    torch.testing.assert_close(decoded.log_prob, naive, rtol=0, atol=1e-12)
    assert (entropy >= -1e-12).all()


@pytest.mark.parametrize("autoregressive", [True, False])
@pytest.mark.parametrize(("cap", "exclusive"), [(1, True), (2, True), (1, False)])
def test_the_compiled_decoder_picks_what_the_other_does(autoregressive, cap, exclusive):
    network, observation = make_network(autoregressive=autoregressive), make_observation(batch=40, nodes=7)
    state = mask_state(observation, cap)._replace(exclusive=exclusive)
    with torch.no_grad():
        encoded = network.encode(observation)
        expected = decode(network, encoded, state, greedy).picks
        found = GreedyDecoder(network)(encoded, state)
    assert torch.equal(found, expected)
    assert found.unique().numel() > 4


def test_a_node_sees_the_picks_before_it_and_none_after():
    network, observation = make_network(), make_observation()
    encoded = network.encode(observation)
    picks = torch.zeros(5, 4, dtype=torch.int64)
    changed = picks.clone()
    changed[:, 1] = 5
    difference = (network.logits(encoded, picks) - network.logits(encoded, changed)).abs().amax(dim=(0, 2))
    assert (difference[:2] == 0).all()
    assert (difference[2:] > 1e-6).all()
    blind = make_network(autoregressive=False)
    encoded = blind.encode(observation)
    assert torch.equal(blind.logits(encoded, picks), blind.logits(encoded, changed))


def test_untrained_network_with_prior_is_the_index_policy():
    network, observation = make_network(trained=False), make_observation()
    with torch.no_grad():
        picks = decode(network, network.encode(observation), mask_state(observation), greedy).picks
    for b in range(5):
        free = [k for k in range(9) if observation.present[b, k]]
        for m in range(4):
            expected = 9
            if observation.up[b, m] and free:
                expected = max(free, key=lambda k: float(observation.prior[b, m, k]))
                free.remove(expected)
            assert picks[b, m] == expected


def test_absent_candidates_and_other_slots_do_not_matter():
    network, observation = make_network(), make_observation()
    state = mask_state(observation)
    with torch.no_grad():
        whole = decode(network, network.encode(observation), state, greedy)
        pad = torch.nn.functional.pad
        padded = observation._replace(
            task=pad(observation.task, (0, 0, 0, 3), value=1e3),
            pair=pad(observation.pair, (0, 0, 0, 3), value=1e3),
            prior=pad(observation.prior, (0, 3)),
            present=pad(observation.present, (0, 3)),
        )
        wide = decode(network, network.encode(padded), mask_state(padded), greedy)
        torch.testing.assert_close(wide.log_prob, whole.log_prob, rtol=0, atol=1e-12)
        for b in range(5):
            row = observation.rows(torch.tensor([b]))
            alone = decode(network, network.encode(row), mask_state(row), greedy)
            assert torch.equal(alone.picks[0], whole.picks[b])


def test_order_of_tasks_does_not_matter():
    network, observation = make_network(), make_observation()
    order = torch.randperm(9, generator=torch.Generator().manual_seed(4))
    permuted = observation._replace(
        task=observation.task[:, order],
        pair=observation.pair[:, :, order],
        prior=observation.prior[:, :, order],
        present=observation.present[:, order],
    )
    with torch.no_grad():
        a = decode(network, network.encode(observation), mask_state(observation), greedy).picks
        b = decode(network, network.encode(permuted), mask_state(permuted), greedy).picks
    back = torch.cat([order, torch.tensor([9])])
    assert torch.equal(back[b], a)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 5), st.integers(1, 3), st.booleans())
def test_mask_is_the_specification(seed, candidates, nodes, cap, exclusive):
    g = torch.Generator().manual_seed(seed)
    state = MaskState(
        torch.rand(3, candidates, generator=g) < 0.6, torch.rand(3, nodes, generator=g) < 0.7, cap, exclusive
    )
    picks = torch.randint(0, candidates + 1, (3, nodes), generator=g)
    before = picks.clone()
    parallel = feasible_all(state, picks)
    for m in range(nodes):
        mask = feasible(state, picks[:, :m])
        assert torch.equal(mask, parallel[:, m])
        assert mask[:, -1].all()
        for b in range(3):
            for k in range(candidates):
                count = int((picks[b, :m] == k).sum())
                allowed = state.present[b, k] and state.up[b, m] and (count < cap or not exclusive)
                assert mask[b, k] == allowed
    assert torch.equal(picks, before)


def test_sampler_follows_the_softmax():
    logits = torch.tensor([[0.0, 1.0, -torch.inf, -1.0]]).repeat(20_000, 1)
    picks = sampler(torch.Generator().manual_seed(0))(logits)
    frequency = torch.bincount(picks, minlength=4) / len(picks)
    torch.testing.assert_close(frequency, logits[0].softmax(0), atol=0.012, rtol=0)
