"""A log's axis in even units."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mara.live.units import MOST_UNITS, to_units


def test_a_short_even_log_stays_as_it_is() -> None:
    loss = np.linspace(3, 1, 50)
    units = to_units(500.0 * np.arange(1, 51), loss)
    np.testing.assert_array_equal(units.loss, loss)
    assert (units.size, units.points, units.interpolated) == (500, 1, 0)


def test_a_long_log_is_averaged_so_that_the_newest_unit_is_whole() -> None:
    loss = np.arange(1000, 0, -1.0)
    units = to_units(np.arange(1000.0), loss)
    assert units.size == 10
    assert len(units.loss) == 100
    np.testing.assert_allclose(units.loss[-1], loss[-10:].mean())
    np.testing.assert_allclose(units.loss, loss.reshape(100, 10).mean(axis=1))


def test_gaps_are_interpolated_and_counted() -> None:
    position = np.array([0, 1, 2, 3, 7, 8, 9.0])
    units = to_units(position, 10 - position)
    np.testing.assert_allclose(units.loss, 10 - np.arange(10.0))
    assert units.interpolated == 3


def test_a_far_deadline_makes_units_longer_but_keeps_enough_of_them() -> None:
    position = np.arange(60.0)
    assert to_units(position, position + 1, ahead=100).points == 1
    assert to_units(position, position + 1, ahead=300).points == 3
    far = to_units(position, position + 1, ahead=1e9)
    assert far.points == 6
    assert len(far.loss) == 10


@given(
    st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=400),
    st.floats(-1e6, 1e6),
    st.one_of(st.none(), st.floats(0, 1e9)),
)
def test_any_log_becomes_a_bounded_curve_within_its_range(
    gaps: list[float], start: float, ahead: float | None
) -> None:
    position = start + np.cumsum(gaps)
    loss = 1 + np.abs(np.sin(position))
    units = to_units(position, loss, ahead)
    assert 1 <= len(units.loss) <= MOST_UNITS + 2
    assert units.loss.min() >= loss.min() - 1e-9
    assert units.loss.max() <= loss.max() + 1e-9
    assert units.size > 0


@pytest.mark.parametrize("jitter", [0.2, 0.4])
def test_jitter_of_the_axis_loses_no_unit(jitter: float) -> None:
    rng = np.random.default_rng(0)
    position = np.arange(80) + rng.uniform(-jitter / 2, jitter / 2, 80)
    assert abs(len(to_units(position, np.ones(80)).loss) - 80) <= 8
