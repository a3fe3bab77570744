import numpy as np
import pytest
import torch

from mara.curves.reinforcement.actors import Actors
from mara.curves.reinforcement.networks import ActorCritic, advantages, clipped
from mara.curves.reinforcement.policy_gradient import ProximalPolicy
from mara.curves.reinforcement.recorder import LEARNERS
from mara.curves.reinforcement.tabular import RULES, TabularLearner
from mara.curves.reinforcement.tasks import TASKS

TABLE = {"gamma": 0.95, "epsilon": 0.3, "explore": 0.1, "first_value": 0.3}
NETWORK = {
    "optimizer": "adam",
    "gamma": 0.98,
    "lambda": 0.95,
    "entropy": 0.01,
    "baseline": "standardised",
    "clip": 0.2,
    "gain": 1.0,
}


def streams(*seeds: int) -> list[np.random.Generator]:
    return [np.random.default_rng(seed) for seed in seeds]


def test_loss_falls_with_the_score_and_stays_positive() -> None:
    task = TASKS["cartpole-500"]
    loss = task.loss(np.array([20.0, 260.0, 500.0, 600.0]))
    np.testing.assert_allclose(loss, [1.01, 0.51, 0.01, 0.01])


@pytest.mark.parametrize("name", TASKS)
def test_an_untrained_policy_loses_about_one(name: str) -> None:
    """Where the untrained policy differs from the low mark, curves of the task would start off scale."""
    task = TASKS[name]
    actors = Actors(task, 16, streams(0), table=True)
    even = np.full((1, 16, actors.environment.actions), 1 / actors.environment.actions)
    actors.fill_window(lambda: even)
    assert task.loss(actors.running_score())[0] == pytest.approx(1.0, abs=0.25)


def test_episodes_end_by_the_limit_and_that_is_no_termination() -> None:
    actors = Actors(TASKS["pendulum-3"], 2, streams(1), table=False)
    for step in range(400):
        result = actors.step(np.zeros((1, 2), dtype=np.int64))
        assert not result.terminated.any()
        assert result.done.all() == (step % 200 == 199)


def test_scores_are_those_of_whole_episodes() -> None:
    """Pushing one way topples the pole within a dozen steps, each worth 1."""
    actors = Actors(TASKS["cartpole-200"], 3, streams(2, 3), table=False)
    lengths: list[list[int]] = [[], []]
    age = np.zeros((2, 3), dtype=int)
    for _ in range(60):
        result = actors.step(np.ones((2, 3), dtype=np.int64))
        age += 1
        for run, actor in zip(*np.nonzero(result.done), strict=True):
            lengths[run].append(age[run, actor])
            age[run, actor] = 0
    np.testing.assert_allclose(actors.fresh_score(), [np.mean(part) for part in lengths])
    np.testing.assert_allclose(actors.running_score(), [np.mean(part[-20:]) for part in lengths])
    assert all(7 <= length <= 13 for part in lengths for length in part)


def test_playing_keeps_one_episode_of_every_actor() -> None:
    actors = Actors(TASKS["cartpole-200"], 4, streams(5, 6), table=False)
    episodes = actors.play(lambda: np.full((2, 4, 2), 0.5))
    length = episodes.alive.sum(axis=0)
    assert (np.diff(episodes.alive.astype(int), axis=0) <= 0).all()
    np.testing.assert_allclose(actors.fresh_score(), length.mean(axis=1))
    assert length.max() == len(episodes.alive)


def test_runs_have_their_own_chance() -> None:
    actors = Actors(TASKS["taxi"], 4, streams(7, 8), table=True)
    first, second = actors.seen()
    assert not np.array_equal(first, second)
    again = Actors(TASKS["taxi"], 4, streams(8), table=True)
    np.testing.assert_array_equal(again.seen()[0], second)


def test_chosen_actions_follow_the_chances() -> None:
    actors = Actors(TASKS["taxi"], 400, streams(9), table=True)
    chances = np.broadcast_to([0.5, 0.0, 0.25, 0.0, 0.0, 0.25], (1, 400, 6))
    counts = np.zeros(6)
    for _ in range(30):
        action = actors.choose(chances)
        counts += np.bincount(action[0], minlength=6)
        assert not np.array_equal(action, actors.choose(chances, again=True))
        actors.step(action)
    np.testing.assert_allclose(counts / counts.sum(), chances[0, 0], atol=0.02)


def test_advantages_in_closed_form() -> None:
    """Lambda 1: the discounted return less the value; 0: the one-step error; both end at an episode's end."""
    rng = np.random.default_rng(0)
    reward, value, following = rng.normal(size=(3, 4, 1, 1))
    done = np.array([False, True, False, False])[:, None, None]
    gamma = np.array([[0.9]])
    for terminated in (done, np.zeros_like(done)):
        one_step = reward + 0.9 * following * ~terminated - value
        zero = advantages(reward, value, following, terminated, done, gamma, np.array([[0.0]]))
        np.testing.assert_allclose(zero, one_step)
        full = advantages(reward, value, following, terminated, done, gamma, np.array([[1.0]]))
        np.testing.assert_allclose(full[0], one_step[0] + 0.9 * one_step[1])
        np.testing.assert_allclose(full[1], one_step[1])
        np.testing.assert_allclose(full[2], one_step[2] + 0.9 * one_step[3])


def test_gradients_are_clipped_run_by_run() -> None:
    gradient = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    torch.testing.assert_close(clipped(gradient), torch.tensor([[0.6, 0.8], [0.3, 0.4]]))


def test_behaviour_follows_the_parameters_in_place() -> None:
    net = ActorCritic(3, 2, (4,), "tanh")
    parameters = torch.stack([net.initial(1.0, torch.Generator().manual_seed(run)) for run in range(2)])
    seen = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(9))
    chances = net.behaviour(parameters)
    before = chances(seen)
    assert (before - 0.5).abs().max() < 0.05
    parameters.mul_(30.0)
    torch.testing.assert_close(chances(seen), net.log_chances(parameters, seen).exp())
    assert (chances(seen) - before).abs().max() > 0.01


def test_the_first_ratio_of_ppo_is_one() -> None:
    actors = Actors(TASKS["cartpole-200"], 4, streams(1, 2), table=False)
    net = ActorCritic(4, 2, (8,), "tanh")
    parameters = torch.stack([net.initial(1.0, torch.Generator().manual_seed(run)) for run in range(2)])
    learner = ProximalPolicy(actors, net, [NETWORK, NETWORK], parameters)
    cases = learner._rollout(6)
    fresh = net.log_chances(parameters, cases["observation"]).gather(2, cases["action"][:, :, None])[:, :, 0]
    torch.testing.assert_close(fresh.detach(), cases["log_chance"])
    torch.testing.assert_close(cases["advantage"].mean(dim=1), torch.zeros(2), atol=1e-5, rtol=0)


@pytest.mark.parametrize("rule", RULES)
def test_tabular_rules_learn_the_lake(rule: str) -> None:
    actors = Actors(TASKS["lake-4x4"], 8, streams(1, 2, 3), table=True)
    learner = TabularLearner(rule, actors, [TABLE] * 3, steps=30)
    actors.fill_window(learner.behaviour)
    before = actors.running_score()
    for _ in range(60):
        learner.learn(np.full(3, 0.3))
    assert before.max() < 0.3
    assert np.median(actors.running_score()) > 0.7


def test_an_unknown_rule_is_refused() -> None:
    actors = Actors(TASKS["lake-4x4"], 1, streams(1), table=True)
    with pytest.raises(ValueError, match="unknown rule"):
        TabularLearner("monte_carlo", actors, [TABLE], steps=1)


@pytest.mark.parametrize("name", LEARNERS)
def test_policy_gradients_learn_to_walk_the_cliff(name: str) -> None:
    """The cliff punishes random walks with about -1,050 an episode; a learner soon keeps away from it."""
    actors = Actors(TASKS["cliff"], 8, streams(4, 5), table=False)
    net = ActorCritic(48, 4, (), "tanh")
    parameters = torch.stack([net.initial(1.0, torch.Generator().manual_seed(run)) for run in range(2)])
    learner = LEARNERS[name](actors, net, [NETWORK] * 2, parameters)
    actors.fill_window(learner.behaviour)
    before = actors.running_score()
    for _ in range(25):
        learner.learn(np.full(2, 0.05))
    assert (actors.running_score() > before + 300).all()
