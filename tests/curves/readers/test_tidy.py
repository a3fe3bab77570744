"""What is done to a log: axis and metric chosen, resumed parts replaced, gaps told from NaN, errors in a line."""

from pathlib import Path

import numpy as np
import pytest

from mara.curves.readers.log import shortfall
from mara.curves.readers.read import read_log
from mara.errors import InputError


def log_of(tmp_path: Path, text: str, **options: object):  # type: ignore[no-untyped-def]
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    return read_log(path, **options)  # type: ignore[arg-type]


def rows(*pairs: tuple[float, float | str], head: str = "step,loss") -> str:
    return "\n".join([head, *(f"{step},{loss}" for step, loss in pairs)]) + "\n"


def test_a_resumed_run_replaces_what_it_does_again(tmp_path: Path) -> None:
    log = log_of(tmp_path, rows((1, 9), (2, 8), (3, 7), (4, 6), (3, 5), (4, 4), (5, 3)))
    assert log.position.tolist() == [1, 2, 3, 4, 5]
    assert log.values.tolist() == [9, 8, 5, 4, 3]
    assert "line 6: 2 earlier points" in log.notes[0]


def test_a_repeated_header_is_no_row(tmp_path: Path) -> None:
    log = log_of(tmp_path, rows((1, 9), (2, 8)) + rows((2, 7), (3, 6)))
    assert log.values.tolist() == [9, 7, 6]


def test_one_stray_point_does_not_take_the_run_with_it(tmp_path: Path) -> None:
    log = log_of(tmp_path, rows((1, 9), (2, 8), (3, 7), (0, 1), (4, 6)))
    assert log.values.tolist() == [9, 8, 7, 6]
    assert "left out" in log.notes[0]


def test_a_table_with_the_newest_row_first_is_turned(tmp_path: Path) -> None:
    assert log_of(tmp_path, rows((3, 7), (2, 8), (1, 9))).values.tolist() == [9, 8, 7]


def test_a_counter_within_epochs_goes_on(tmp_path: Path) -> None:
    text = "epoch,iter,loss\n" + "".join(f"{e},{i},{9 - 3 * e - i}\n" for e in range(3) for i in (1, 2))
    log = log_of(tmp_path, text)
    assert log.position.tolist() == [1, 2, 3, 4, 5, 6]
    assert log.values.tolist() == [8, 7, 5, 4, 2, 1]


def test_nan_inside_is_dropped_and_at_the_end_is_divergence(tmp_path: Path) -> None:
    inside = log_of(tmp_path, rows((1, 9), (2, "nan"), (3, 7), (4, "")))
    assert inside.values.tolist() == [9, 7]
    assert not inside.diverged
    assert log_of(tmp_path, rows((1, 9), (2, 8), (3, "inf"))).diverged
    assert log_of(tmp_path, rows((1, 9), (2, 8), (3, 1e31))).diverged


def test_an_epoch_is_too_coarse_for_a_loss_of_every_step(tmp_path: Path) -> None:
    text = "epoch,loss\n" + "".join(f"{row // 10},{100 - row}\n" for row in range(40))
    assert log_of(tmp_path, text).axis == "row"
    assert log_of(tmp_path, text, axis="epoch").position.tolist() == [0, 1, 2, 3]


def test_the_metric_can_be_named_by_its_end(tmp_path: Path) -> None:
    text = "step,train/loss,val/loss,val/acc\n1,3,4,.5\n2,2,3,.6\n"
    assert log_of(tmp_path, text).metric == "val/loss"
    assert log_of(tmp_path, text, metric="ACC").rising
    with pytest.raises(InputError, match="fits several columns; there are 'train/loss', 'val/loss'"):
        log_of(tmp_path, text, metric="loss")
    with pytest.raises(InputError, match="is no column; did you mean 'val/acc'"):
        log_of(tmp_path, text, metric="val_accu")


def test_two_likely_metrics_are_not_chosen_between(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="say which by --metric: 'box_loss', 'dfl_loss'"):
        log_of(tmp_path, "epoch,box_loss,dfl_loss\n1,2,3\n2,1,2\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("step,loss\n1,abc\n2,3\n", "line 2, column 'loss': 'abc' is no number"),
        ("step,loss\n1,5,6\n", "line 2: 3 cells under 2 names"),
        ("step,step\n1,5\n", "two columns are named 'step'"),
        ("1,2\n3,4\n", "numbers where the header should be"),
        ("step;loss\n1;0,5\n2;0.4\n", "a number with a comma, line 3 one with a point"),
        ("step,loss\n", "a header and no rows"),
        ("step,loss\n1,nan\n2,nan\n", "no finite number"),
        ("a,b\nx,y\n", "no column of a loss"),
        ('step,loss\n1,"5\n2,3\n', "line 3: unexpected end of data; is a quotation mark left open"),
        ("step,loss\n1,0.5 nats\n", "'0.5 nats' is no number"),
        ("step,loss\n1,1_000\n2,5\n", "'1_000' is no number"),
        ("step\tloss\n1\t٣\n2\t5\n", "'٣' is no number"),
    ],
)
def test_bad_tables_are_refused_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as caught:
        log_of(tmp_path, text)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "log.csv") in str(caught.value)


def test_thousands_marks_are_not_taken_for_decimals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="thousands without a mark"):
        log_of(tmp_path, "step\tloss\n1,000\t0.5\n2,000\t0.4\n")


def test_shortfall_rules(tmp_path: Path) -> None:
    loss = log_of(tmp_path, rows((1, 4), (2, 2)))
    assert shortfall(loss, 1.0).values.tolist() == [4, 2]
    assert shortfall(loss, 1.0).target == 1.0
    assert shortfall(loss, 1.0).rule == ""
    rate = log_of(tmp_path, rows((1, 0.5), (2, 0.75), head="step,acc"))
    assert shortfall(rate, 0.875).values.tolist() == [0.5, 0.25]
    percent = log_of(tmp_path, rows((1, 50), (2, 75), head="step,acc"))
    assert shortfall(percent, 90).values.tolist() == [50, 25]
    reward = log_of(tmp_path, rows((1, -100), (2, 0), head="step,reward"))
    assert shortfall(reward, best=500).values.tolist() == [600, 500]
    free = shortfall(reward, target=100)
    assert free.best == pytest.approx(120)
    assert "tenth of its range" in free.rule
    assert free.metric(free.target, rising=True) == pytest.approx(100)
    negative = log_of(tmp_path, rows((1, 3), (2, -1)))
    assert np.all(shortfall(negative, -2).values > 0)


@pytest.mark.parametrize(
    ("target", "best"), [(0.0, None), (-1, 0), (float("nan"), None), (1.0, float("inf"))]
)
def test_targets_that_no_run_reaches_are_refused(target: float, best: float | None, tmp_path: Path) -> None:
    log = log_of(tmp_path, rows((1, 4), (2, 2)))
    with pytest.raises(InputError, match=r"expected a finite number|must lie above"):
        shortfall(log, target, best)
