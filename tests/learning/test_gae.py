"""Advantages against their closed form; shaping leaves returns and advantages where they were."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mara.learning.gae import advantages
from mara.learning.shaping import shaped

LAMBDAS = [0.0, 0.5, 0.95, 1.0]


def episode(seed, steps=30, lanes=4):
    rng = np.random.default_rng(seed)
    reward = rng.poisson(0.3, (steps, lanes)).astype(np.float32)
    value, potential = rng.normal(size=(2, steps, lanes))
    length = rng.integers(1, steps + 1, lanes)
    after = np.arange(steps)[:, None] >= length
    reward[after], value[after], potential[after] = 0, 0, 0
    ended = np.arange(steps)[:, None] == length - 1
    return reward, value, potential, ended


@pytest.mark.parametrize("lam", LAMBDAS)
def test_closed_form(lam):
    reward, value, _, ended = episode(1)
    found = advantages(reward, value, np.zeros(4), ended, lam)
    for e in range(4):
        last = int(np.flatnonzero(ended[:, e])[0])
        following = np.append(value[1 : last + 1, e], 0.0)
        delta = reward[: last + 1, e] + following - value[: last + 1, e]
        for t in range(last + 1):
            expected = sum(lam**k * delta[t + k] for k in range(last + 1 - t))
            assert found[t, e] == pytest.approx(expected, abs=1e-12)


def test_lambda_one_is_return_less_value():
    reward, value, _, ended = episode(2)
    found = advantages(reward, value, np.zeros(4), ended, 1.0)
    to_go = reward[::-1].cumsum(axis=0)[::-1]
    np.testing.assert_allclose(found, to_go - value, atol=1e-12)


def test_bootstraps_where_the_episode_goes_on():
    reward, value = np.array([[1.0]]), np.array([[2.0]])
    assert advantages(reward, value, np.array([5.0]), np.array([[False]]), 0.9)[0, 0] == 4.0
    assert advantages(reward, value, np.array([5.0]), np.array([[True]]), 0.9)[0, 0] == -1.0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_shaped_return_is_the_return_less_the_first_potential(seed):
    reward, _, potential, _ = episode(seed)
    total = shaped(reward, potential, np.zeros(4)).sum(axis=0)
    np.testing.assert_allclose(total, reward.sum(axis=0) - potential[0], atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(LAMBDAS))
def test_shaping_with_the_potential_taken_off_the_value_changes_no_advantage(seed, lam):
    reward, value, potential, ended = episode(seed)
    plain = advantages(reward, value, np.zeros(4), ended, lam)
    other = advantages(shaped(reward, potential, np.zeros(4)), value - potential, np.zeros(4), ended, lam)
    np.testing.assert_allclose(other, plain, atol=1e-10)


def test_a_potential_left_at_the_end_changes_the_return():
    reward, value, potential, ended = episode(3)
    keeps = np.full(4, 0.7)
    total = shaped(reward, potential, keeps).sum(axis=0)
    assert np.abs(total - (reward.sum(axis=0) - potential[0])).min() > 0.5
    plain = advantages(reward, value, np.zeros(4), ended, 0.95)
    wrong = np.where(ended, keeps, np.concatenate([potential[1:], keeps[None]])) - potential + reward
    other = advantages(wrong, value - potential, np.zeros(4), ended, 0.95)
    assert np.abs(other - plain).max() > 0.5
