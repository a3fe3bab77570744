"""PPO: ratios begin at one, the loss moves probabilities the right way, runs repeat and resume exactly."""

import csv

import numpy as np
import pytest
import torch

from mara.allocators.mat.decoding import decode, greedy
from mara.allocators.mat.features import INDEX_IN_PAIR, INDEX_IN_TASK
from mara.allocators.mat.lanes import Lanes
from mara.allocators.mat.mask import MaskState
from mara.allocators.mat.policy import MatPolicy, build_network
from mara.config.mat import LookaheadSettings, MatSettings, NetworkSettings, PpoSettings
from mara.learning.ppo import ValueNorm, play, ratio, update
from mara.learning.train import Training, gain, sharpen, surely_better, train_mat
from tests.learning.worlds import make_course

SMALL = NetworkSettings(width=16, heads=2, blocks=1, candidates_min=6, candidates_per_node=2)
PPO = PpoSettings(updates=2, episodes=3, epochs=2, minibatch=32)


def roll_out(seed=0, **changes):
    settings = MatSettings(network=SMALL, ppo=PPO, **changes)
    course = make_course()
    policy = MatPolicy(build_network(settings, torch.Generator().manual_seed(seed)), settings, course.weights)
    world = Lanes(
        course.trace, course.pool, course.cluster, course.forecasts, course.weights, SMALL,
        course.progress, not settings.mask,
    )  # fmt: skip
    norm = ValueNorm()
    return policy, play(world, policy, norm, np.arange(3), PPO, torch.Generator().manual_seed(1))


@pytest.mark.parametrize("changes", [{}, {"autoregressive": False}, {"mask": False}, {"warm_start": "none"}])
def test_ratio_is_one_before_the_first_step(changes):
    policy, rollout = roll_out(**changes)
    with torch.no_grad():
        r, _, _ = ratio(policy.network, rollout, torch.arange(len(rollout.advantage)))
    assert r.shape == rollout.picks.shape
    torch.testing.assert_close(r, torch.ones_like(r), rtol=0, atol=2e-5)


def test_shaping_changes_the_return_by_nothing_when_episodes_start_empty():
    _, plain = roll_out(shaping=False)
    _, shaped = roll_out(shaping=True)
    assert torch.equal(plain.picks, shaped.picks)
    assert plain.total == plain.shaped_total == pytest.approx(shaped.shaped_total, abs=1e-6)
    assert not torch.allclose(plain.advantage, shaped.advantage)


def test_an_update_raises_the_probability_of_what_was_better_than_expected():
    policy, rollout = roll_out()
    optimizer = torch.optim.Adam(policy.network.parameters(), lr=1e-3)
    update(policy.network, optimizer, rollout, PPO, torch.Generator().manual_seed(0))
    with torch.no_grad():
        r, _, _ = ratio(policy.network, rollout, torch.arange(len(rollout.advantage)))
    gain = rollout.advantage - rollout.advantage.mean()
    assert float((r.log().mean(dim=1) * gain).mean()) > 0


def test_value_norm_gives_mean_and_deviation_of_all_returns():
    rng = np.random.default_rng(0)
    parts = [rng.normal(3, 2, n) for n in (5, 40, 1)]
    norm = ValueNorm()
    for part in parts:
        norm.update(part)
    whole = np.concatenate(parts)
    assert norm.mean == pytest.approx(whole.mean())
    assert norm.deviation == pytest.approx(whole.std())
    np.testing.assert_allclose(norm.restore(norm.normalise(whole)), whole)


def test_sharpening_keeps_greedy_choices_and_lowers_entropy():
    policy, rollout = roll_out()
    network, every = policy.network, torch.arange(len(rollout.advantage))
    state = MaskState(rollout.observation.present, rollout.observation.up, 1)
    with torch.no_grad():
        for parameter in (network.query.weight, network.bias[-1].weight):
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
        _, before, _ = ratio(network, rollout, every)
        greedy_before = decode(network, network.encode(rollout.observation), state, greedy).picks
        sharpen(network, 8.0)
        _, after, _ = ratio(network, rollout, every)
        greedy_after = decode(network, network.encode(rollout.observation), state, greedy).picks
    assert torch.equal(greedy_before, greedy_after)
    assert after.mean() < 0.7 * before.mean()


def settings_for(lookahead):
    few = LookaheadSettings(states=60, deviations=3, horizon=20, epochs=1, batch=16, trust_episodes=2)
    return MatSettings(network=SMALL, ppo=PPO, lookahead=few if lookahead else None)


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.network.parameters(), b.network.parameters(), strict=True))


def test_same_seed_same_policy_other_seed_another(tmp_path):
    courses = [make_course(), make_course(seed=5)]
    runs = [train_mat(courses, settings_for(True), seed, tmp_path / "log.csv") for seed in (1, 1, 2)]
    assert same(runs[0], runs[1])
    assert not same(runs[0], runs[2])


@pytest.mark.parametrize("stop", [1, 2])
def test_resumes_exactly(tmp_path, stop):
    courses = [make_course()]
    whole = train_mat(courses, settings_for(True), 3, tmp_path / "whole.csv")

    class Stopped(Exception):
        pass

    class Interrupted(Training):
        def save(self):
            super().save()
            if self.done == stop:
                raise Stopped

    arguments = (courses, settings_for(True), 3, tmp_path / "part.csv", tmp_path / "checkpoint.pt")
    with pytest.raises(Stopped):
        Interrupted(*arguments).run()
    resumed = train_mat(*arguments)
    assert same(whole, resumed)
    assert (tmp_path / "whole.csv").read_text() == (tmp_path / "part.csv").read_text()


def test_log_holds_the_curves_of_every_phase(tmp_path):
    train_mat([make_course()], settings_for(True), 3, tmp_path / "log.csv")
    rows = list(csv.DictReader((tmp_path / "log.csv").open()))
    assert {row["phase"] for row in rows} == {"worth", "pairs", "lookahead", "trust", "ppo", "selection"}
    ppo = [row for row in rows if row["phase"] == "ppo"]
    assert len(ppo) == 2
    for name in ("return", "shaped_return", "approx_kl", "clip_fraction", "explained_variance", "entropy"):
        assert all(np.isfinite(float(row[name])) for row in ppo), name


def test_from_nothing_ppo_is_the_whole_of_learning_and_its_policy_is_kept(tmp_path):
    settings = MatSettings(
        network=SMALL, warm_start="none", lookahead=None, scratch=PPO, ppo=PpoSettings(updates=9)
    )
    course = make_course()
    policy = train_mat([course], settings, 3, tmp_path / "log.csv")
    rows = list(csv.DictReader((tmp_path / "log.csv").open()))
    assert [row["phase"] for row in rows] == ["ppo"] * PPO.updates
    assert all(0 < float(row["completion"]) <= 1 and int(row["slots"]) > 0 for row in rows)
    untrained = build_network(settings, torch.Generator().manual_seed(3))
    assert not torch.equal(policy.network.bias[-1].weight, untrained.bias[-1].weight)


@pytest.mark.parametrize(("warm_start", "seen"), [("none", False), ("imitation", True)])
def test_who_learns_from_nothing_does_not_see_the_index(warm_start, seen):
    settings = MatSettings(network=SMALL, warm_start=warm_start)
    network, (_, rollout) = build_network(settings, torch.Generator().manual_seed(0)), roll_out()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
        whole = rollout.observation
        task, pair = whole.task.clone(), whole.pair.clone()
        task[..., list(INDEX_IN_TASK)] += 1.0
        pair[..., list(INDEX_IN_PAIR)] += 1.0
        for other in (
            whole._replace(task=task),
            whole._replace(pair=pair),
            whole._replace(prior=2 * whole.prior),
        ):
            a, b = (network.logits(network.encode(o), rollout.picks) for o in (whole, other))
            assert torch.equal(a, b) != seen


def test_a_gain_is_believed_only_beyond_its_noise():
    rng = np.random.default_rng(0)
    old = [rng.normal(0.6, 0.1, 50), rng.normal(0.5, 0.1, 50)]
    noise = [rng.normal(0, 0.05, 50) for _ in old]
    lucky = [o + n - n.mean() + 0.004 for o, n in zip(old, noise, strict=True)]
    better = [o + n - n.mean() + 0.04 for o, n in zip(old, noise, strict=True)]
    assert gain(lucky, old)[0] == pytest.approx(0.004)
    assert not surely_better(lucky, old)
    assert not surely_better(old, old)
    assert surely_better(better, old)
    assert not surely_better([o[:1] + 1 for o in old], [o[:1] for o in old])
