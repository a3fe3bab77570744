import numpy as np
import pytest

from mara.curves.corpus import POINTS, Corpus
from mara.curves.synthetic import draw_curves
from mara.errors import InputError

FROZEN_FALL = (0.189, 0.508, 1.219)
"""Quartiles of log(first loss / best loss)."""


@pytest.fixture(scope="module")
def prior() -> Corpus:
    return draw_curves(3000, np.random.default_rng(5))


def test_the_same_generator_state_gives_the_same_curves(prior: Corpus) -> None:
    again = draw_curves(3000, np.random.default_rng(5))
    np.testing.assert_array_equal(again.loss, prior.loss)
    np.testing.assert_array_equal(again.schedule, prior.schedule)
    other = draw_curves(3000, np.random.default_rng(6))
    assert not np.array_equal(other.loss[:, 1], prior.loss[:, 1])


def test_the_frozen_prior_is_still_what_was_frozen() -> None:
    """Compares distributions: numpy promises the same generator bits within one version only."""
    log_fall = np.log(draw_curves(20_000, np.random.default_rng(2)).loss)
    fall = log_fall[:, 0] - np.nanmin(log_fall, axis=1)
    np.testing.assert_allclose(np.quantile(fall, [0.25, 0.5, 0.75]), FROZEN_FALL, rtol=0.05)


def test_losses_are_positive_and_finite_until_divergence_and_nan_after(prior: Corpus) -> None:
    before = np.arange(POINTS) < prior.diverged_at[:, None]
    assert prior.loss.shape == prior.train_loss.shape == prior.schedule.shape == (3000, POINTS)
    for loss in (prior.loss, prior.train_loss):
        assert loss.dtype == np.float32
        assert (np.isfinite(loss) == before).all()
        assert (loss[before] > 0).all()
    assert (prior.diverged_at >= 1).all()
    assert np.isfinite(prior.schedule).all()
    assert (prior.schedule > 0).all()


def test_curves_differ_in_the_ways_the_docstring_names(prior: Corpus) -> None:
    whole = prior.select(prior.diverged_at == POINTS)
    assert 0.002 < 1 - len(whole) / len(prior) < 0.05
    log_loss = np.log(whole.loss.astype(np.float64))
    log_loss -= log_loss[:, :1]
    scale = np.log10(prior.loss[:, 0])
    assert scale.min() < -2.5
    assert scale.max() > 2.5

    best = log_loss.min(axis=1)
    assert (best > -0.05).mean() > 0.02, "runs that learn nothing"
    assert (best < -3.0).mean() > 0.03, "runs that gain decades"
    halfway = (log_loss <= best[:, None] / 2).argmax(axis=1)
    for low, high in ((1, 3), (10, 30), (60, 120), (120, POINTS)):
        assert ((halfway >= low) & (halfway < high)).mean() > 0.03, f"half of the fall within {low}..{high}"

    smooth = np.apply_along_axis(lambda row: np.convolve(row, np.ones(9) / 9, "valid"), 1, log_loss)
    upturn = smooth[:, -1] - smooth.min(axis=1)
    assert 0.03 < (upturn > 0.2).mean() < 0.4, "curves that turn up again"
    roughness = np.diff(log_loss[:, 100:], axis=1).std(axis=1)
    assert np.quantile(roughness, 0.9) > 30 * np.quantile(roughness, 0.1)
    plateau = (smooth[:, 25] > -0.05) & (best < -0.7)
    assert plateau.mean() > 0.01, "a plateau before a drop"


def test_every_shape_and_schedule_occurs_and_rates_fall_where_they_should(prior: Corpus) -> None:
    shapes = {config["shape"] for config in prior.config}
    assert shapes == {"power", "exponential", "two_phase", "sigmoid_drop", "staircase", "mixture"}
    kinds = np.array([config["schedule"] for config in prior.config])
    last = prior.schedule[:, -1] / prior.schedule.max(axis=1)
    assert (last[kinds == "constant"] == 1).all()
    for kind in ("cosine", "linear", "exponential", "step"):
        assert (kinds == kind).sum() > 100
        assert (last[kinds == kind] < 0.6).all()
        assert (np.diff(prior.schedule[kinds == kind], axis=1) <= 0).all()
    assert (prior.schedule[kinds == "warmup_cosine"].argmax(axis=1) > 0).any()


def test_noise_is_independent_between_curves(prior: Corpus) -> None:
    step = np.diff(np.log(prior.loss[prior.diverged_at == POINTS]), axis=1)[:, 120:]
    step = (step - step.mean(axis=1, keepdims=True)) / (step.std(axis=1, keepdims=True) + 1e-12)
    between = (step[:-1] * step[1:]).mean(axis=1)
    assert abs(np.median(between)) < 0.02


def test_each_curve_is_its_own_training_group(prior: Corpus) -> None:
    assert len(set(prior.group)) == len(prior)
    assert set(prior.split) == {"train"}
    assert set(prior.family) == {"synthetic"}


@pytest.mark.parametrize("count", [0, -3])
def test_a_count_below_one_is_refused_in_one_line(count: int) -> None:
    with pytest.raises(InputError, match="at least 1") as problem:
        draw_curves(count, np.random.default_rng(0))
    assert "\n" not in str(problem.value)
