from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mara.config.workload import TaskSettings
from mara.curves.smoothing import NEVER, demand, smooth
from mara.errors import InputError
from mara.workload.card import workload_card
from mara.workload.tasks import TaskPool, make_pool
from tests.workload.curve_groups import make_groups

CORPUS = make_groups(40, 12, np.random.default_rng(0))
SETTINGS = TaskSettings(templates=1000)
POOL = make_pool(CORPUS, SETTINGS, np.random.default_rng(1))


def test_shares_are_the_asked_ones() -> None:
    assert POOL.feasible.mean() == 0.775
    assert (POOL.demand[POOL.feasible] > 20).mean() == pytest.approx(0.5, abs=0.002)


def test_natural_shares_without_strata() -> None:
    natural = make_pool(
        CORPUS, TaskSettings(templates=8000, feasible_share=None, long_share=None), np.random.default_rng(2)
    )
    assert natural.feasible.mean() == pytest.approx(POOL.natural["feasible"], abs=0.03)
    assert (natural.demand == NEVER).mean() == pytest.approx(POOL.natural["unreachable"], abs=0.03)
    assert POOL.natural["feasible"] + POOL.natural["too_late"] + POOL.natural["unreachable"] == pytest.approx(
        1
    )


def test_demand_is_the_first_passage_of_the_smoothed_curve() -> None:
    smoothed = smooth(CORPUS.loss)
    np.testing.assert_array_equal(POOL.demand, demand(smoothed[POOL.curve], POOL.target))
    assert POOL.demand.min() >= SETTINGS.least_demand


def test_names_belong_to_the_curve() -> None:
    np.testing.assert_array_equal(POOL.curve_id, CORPUS.id[POOL.curve])
    np.testing.assert_array_equal(POOL.group, CORPUS.group[POOL.curve])


def test_rows_are_found_in_another_order_of_the_corpus() -> None:
    order = np.random.default_rng(3).permutation(len(CORPUS))
    turned = CORPUS.select(order)
    np.testing.assert_array_equal(turned.id[POOL.rows_in(turned)], POOL.curve_id)
    with pytest.raises(InputError, match="not in the corpus"):
        POOL.rows_in(CORPUS.select(np.arange(5)))


def test_window_and_demand_show_no_cap() -> None:
    value, count = np.unique(POOL.window, return_counts=True)
    assert value.max() <= SETTINGS.longest_window
    assert count.max() < 0.04 * len(POOL)
    assert (POOL.demand[POOL.demand != NEVER] > 120).any()


def test_target_and_window_do_not_depend_on_the_own_curve() -> None:
    """Each task's own curve replaced by nonsense leaves a sibling's target and window as they were."""
    two = make_groups(30, 2, np.random.default_rng(4))
    free = TaskSettings(templates=400, feasible_share=None, long_share=None, least_demand=1)
    pool = make_pool(two, free, np.random.default_rng(5))
    own = two.loss[pool.curve]
    best = np.minimum.accumulate(smooth(own), axis=1)[np.arange(400), pool.reference_units]
    assert np.mean(np.abs(np.log(best / pool.target)) < 0.15) < 0.9
    sibling = two.loss[pool.curve ^ 1]
    best = np.minimum.accumulate(smooth(sibling), axis=1)[np.arange(400), pool.reference_units]
    assert np.abs(np.log(best / pool.target)).max() < 5 * free.target_noise


def test_own_reference_leaks_the_demand_and_a_sibling_does_not() -> None:
    own = make_pool(CORPUS, TaskSettings(templates=1000, reference="own"), np.random.default_rng(6))
    card, leaky = workload_card(POOL, CORPUS), workload_card(own, CORPUS)
    key = "correlation_log_demand_log_window_feasible"
    assert leaky[key] > card[key] + 0.04


def test_seeded_and_saved(tmp_path: Path) -> None:
    again = make_pool(CORPUS, SETTINGS, np.random.default_rng(1))
    again.save(tmp_path / "pool.parquet")
    read = TaskPool.load(tmp_path / "pool.parquet")
    for name in ("curve", "curve_id", "group", "family", "target", "window", "demand", "reference_units"):
        np.testing.assert_array_equal(getattr(read, name), getattr(POOL, name))
        assert getattr(read, name).dtype == getattr(POOL, name).dtype
    assert read.natural == POOL.natural


def test_diverged_curves_are_unreachable_from_there_on() -> None:
    loss = CORPUS.loss.copy()
    loss[:, 10:] = np.nan
    torn = type(CORPUS)(**{**CORPUS.__dict__, "loss": loss})
    pool = make_pool(
        torn, TaskSettings(templates=50, feasible_share=None, long_share=None), np.random.default_rng(0)
    )
    assert ((pool.demand < 10) | (pool.demand == NEVER)).all()


def test_lone_runs_are_refused() -> None:
    with pytest.raises(InputError, match="another run of the group"):
        make_pool(make_groups(5, 1, np.random.default_rng(0)), SETTINGS, np.random.default_rng(0))


def test_shares_that_the_curves_cannot_give_are_refused() -> None:
    loss = CORPUS.loss.copy()
    loss[:, 15:] = np.nan
    torn = type(CORPUS)(**{**CORPUS.__dict__, "loss": loss})
    with pytest.raises(InputError, match="tasks a stratum"):
        make_pool(torn, SETTINGS, np.random.default_rng(0))


def test_a_file_that_is_no_pool_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(InputError, match="not a task pool"):
        TaskPool.load(tmp_path / "x.parquet")


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 60), st.floats(0.3, 0.9), st.integers(0, 2**32 - 1))
def test_any_size_and_share(templates: int, share: float, seed: int) -> None:
    pool = make_pool(
        CORPUS, TaskSettings(templates=templates, feasible_share=share), np.random.default_rng(seed)
    )
    assert len(pool) == templates
    assert pool.feasible.sum() == round(templates * share)
