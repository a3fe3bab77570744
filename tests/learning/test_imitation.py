"""Imitation: a network without the index in its logits learns to do what the index does."""

import csv

import numpy as np
import torch

from mara.allocators.mat.policy import run_policy
from mara.config.mat import ImitationSettings, LookaheadSettings, MatSettings, NetworkSettings, PpoSettings
from mara.learning.imitation import soft_targets, visit
from mara.learning.train import Training, train_mat
from mara.simulator.cluster import Cluster
from tests.learning.worlds import make_course

SMALL = NetworkSettings(width=16, heads=2, blocks=1, candidates_min=6, candidates_per_node=2)
ALIKE = Cluster(speeds=np.ones(3))


def settings_for(states, epochs, lookahead=None):
    imitation = ImitationSettings(states=states, rounds=2, epochs=epochs, batch=32, learning_rate=5e-3)
    ppo = PpoSettings(updates=0)
    return MatSettings(
        network=SMALL, warm_start="imitation", imitation=imitation, lookahead=lookahead, ppo=ppo
    )


def test_cloning_comes_near_the_index(tmp_path):
    course = make_course(episodes=6, rate=0.5, cluster=ALIKE)
    outcomes = []
    for epochs in (1, 6):
        policy = train_mat([course], settings_for(400 if epochs > 1 else 4, epochs), 1, tmp_path / "log.csv")
        assert not policy.is_the_index()
        outcome = run_policy(policy, course.trace, course.pool, course.cluster, course.forecasts)
        outcomes.append(outcome.completion_rate)
    rows = [row for row in csv.DictReader((tmp_path / "log.csv").open()) if row["phase"] == "imitation"]
    assert len(rows) == 2
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"])
    assert outcomes[1] > outcomes[0]


def test_look_ahead_and_the_log_follow_a_clone(tmp_path):
    few = LookaheadSettings(states=40, deviations=3, horizon=10, epochs=1, batch=16)
    train_mat([make_course()], settings_for(60, 1, few), 1, tmp_path / "log.csv")
    phases = {row["phase"] for row in csv.DictReader((tmp_path / "log.csv").open())}
    assert phases == {"imitation", "worth", "lookahead"}


def test_targets_are_distributions_over_what_is_feasible(tmp_path):
    course = make_course(cluster=ALIKE)
    training = Training([course], settings_for(60, 1), 1, tmp_path / "log.csv")
    observation, base = visit(training.worlds()[0], None, 50, 4, training.rng)
    mask = torch.nn.functional.pad(observation.present, (0, 1), value=True)[:, None].expand(
        -1, base.shape[1], -1
    )
    target = soft_targets(observation, base, mask)
    torch.testing.assert_close(target.sum(dim=-1), torch.ones(base.shape))
    assert not target[~mask].any()
    idle = target[..., -1] > 0.5
    assert torch.equal(idle, ~observation.present.any(dim=1)[:, None].expand_as(idle))
