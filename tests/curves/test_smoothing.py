import hypothesis.strategies as st
import numpy as np
from hypothesis import given
from hypothesis.extra.numpy import arrays

from mara.curves.smoothing import NEVER, demand, smooth

losses = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(2, 40)), elements=st.floats(0.01, 100))


@given(losses)
def test_smoothing_is_the_mean_of_the_last_five(loss: np.ndarray) -> None:
    smoothed = smooth(loss)
    for point in range(loss.shape[1]):
        window = loss[:, max(0, point - 4) : point + 1]
        np.testing.assert_allclose(smoothed[:, point], window.mean(1))


@given(losses, st.integers(1, 30))
def test_later_points_do_not_reach_back(loss: np.ndarray, cut: int) -> None:
    changed = loss.copy()
    changed[:, cut:] = 1e6
    np.testing.assert_array_equal(smooth(changed)[:, :cut], smooth(loss)[:, :cut])


@given(losses, st.floats(0.01, 100), st.floats(0.01, 1))
def test_demand_is_the_first_crossing_and_falls_with_the_target(
    loss: np.ndarray, target: float, share: float
) -> None:
    smoothed = smooth(loss)
    units = demand(smoothed, np.full(len(loss), target))
    for row, unit in enumerate(units):
        if unit == NEVER:
            assert (smoothed[row, 1:] > target).all()
        else:
            assert smoothed[row, unit] <= target
            assert (smoothed[row, 1:unit] > target).all()
    assert (demand(smoothed, np.full(len(loss), share * target)) >= units).all()


def test_a_diverged_curve_does_not_reach_a_target() -> None:
    loss = np.array([[3.0, 2.0, 2.0, np.nan, np.nan, np.nan, np.nan, np.nan]])
    assert demand(smooth(loss), np.array([1.0])) == NEVER
    assert demand(smooth(loss), np.array([2.4])) == 2
    assert np.isnan(smooth(loss)[0, 3:]).all()


def test_the_loss_before_training_does_not_count() -> None:
    assert demand(np.array([[1.0, 2.0, 2.0]]), np.array([1.5])) == NEVER
