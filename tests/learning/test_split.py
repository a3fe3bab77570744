"""Groups held back: the two sides share no group, and a course keeps its load, its kind of tasks and its windows."""

from dataclasses import replace

import numpy as np
import pytest

from mara.allocators.mat.policy import run_lanes
from mara.config.mat import LookaheadSettings, MatSettings, PpoSettings
from mara.errors import InputError
from mara.learning import train
from mara.learning.split import split_groups
from tests.learning.worlds import make_course


def grouped(course, groups):
    names = np.array([f"g{k % groups}" for k in range(len(course.pool))])
    return replace(course, pool=replace(course.pool, group=names))


def groups_of(courses):
    return set(np.concatenate([course.pool.group[course.trace.template] for course in courses]))


@pytest.mark.parametrize(("groups", "share", "held"), [(20, 0.3, 6), (3, 0.9, 2), (3, 0.01, 1), (2, 0.3, 1)])
def test_no_group_is_on_both_sides(groups, share, held):
    courses = [grouped(make_course(episodes=8, rate=1.0, seed=0), groups) for _ in range(2)]
    learn, choose = split_groups(courses, share, np.random.default_rng(0))
    assert not groups_of(learn) & groups_of(choose)
    assert len(groups_of(choose)) == held
    assert groups_of(learn) | groups_of(choose) == groups_of(courses)


def test_arrivals_stay_and_tasks_come_with_their_windows():
    course = grouped(make_course(episodes=8, rate=1.0), 10)
    (learn,), (choose,) = split_groups([course], 0.3, np.random.default_rng(0))
    there = set(course.trace.template)
    for side in (learn, choose):
        trace = side.trace
        assert trace.template.dtype == course.trace.template.dtype
        assert trace.deadline.dtype == course.trace.deadline.dtype
        for same in ("offset", "arrival", "scored"):
            assert np.array_equal(getattr(trace, same), getattr(course.trace, same))
        assert np.array_equal(trace.deadline - trace.arrival, course.pool.window[trace.template])
        assert set(trace.template) <= there
    own = np.isin(course.pool.group[course.trace.template], list(groups_of([learn])))
    assert np.array_equal(learn.trace.template[own], course.trace.template[own])


def test_other_seeds_hold_other_groups_back_and_the_same_seed_the_same():
    course = grouped(make_course(episodes=8, rate=1.0), 20)
    held = [groups_of(split_groups([course], 0.3, np.random.default_rng(seed))[1]) for seed in (1, 1, 2)]
    assert held[0] == held[1] != held[2]


def test_one_group_is_too_few():
    with pytest.raises(InputError, match="too few curve groups"):
        split_groups([grouped(make_course(), 1)], 0.3, np.random.default_rng(0))


FEW = LookaheadSettings(states=30, deviations=2, horizon=10, epochs=1, batch=16, trust_episodes=2)
PPO = PpoSettings(updates=1, episodes=2, epochs=1)


def test_nothing_is_learned_from_the_groups_that_are_chosen_on(tmp_path, monkeypatch):
    course = grouped(make_course(), 6)
    chosen_on = []

    def watched(policy, world):
        chosen_on.append(set(course.pool.group[world.trace.template]))
        return run_lanes(policy, world)

    monkeypatch.setattr(train, "run_lanes", watched)
    settings = MatSettings(lookahead=FEW, ppo=PPO)
    training = train.Training([course], settings, 3, tmp_path / "log.csv")
    training.run()
    learned = set(course.pool.group[training.worlds()[0].trace.template])
    assert len(chosen_on) == 2 * len(FEW.trust) + 2
    assert learned
    assert all(groups and not learned & groups for groups in chosen_on)


def test_who_begins_with_nothing_learns_from_all_groups_and_keeps_no_policy_of_before(tmp_path):
    course = grouped(make_course(), 6)
    settings = MatSettings(warm_start="none", lookahead=None, scratch=PPO)
    training = train.Training([course], settings, 3, tmp_path / "log.csv")
    assert groups_of(training.courses) == groups_of([course])
    training.run()
    assert training.before_ppo is None
