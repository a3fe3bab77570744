"""Features of logs that people keep in public repositories; the files themselves are written here."""

import json
from pathlib import Path

import pytest

from mara.curves.readers.naming import choose_metric
from mara.curves.readers.read import find_logs, read_log
from mara.errors import InputError


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_batch_counter_that_starts_at_0_loses_no_point(tmp_path: Path) -> None:
    rows = [f"{epoch},{batch},{9 - 3 * epoch - batch}" for epoch in range(3) for batch in range(3)]
    log = read_log(write(tmp_path / "log.csv", "Epoch,Batch,Gen Loss", *rows))
    assert log.position.tolist() == list(range(9))
    assert log.values.tolist() == list(range(9, 0, -1))


@pytest.mark.parametrize("place", ["vis_data", "20240501_101112/vis_data"])
def test_a_working_folder_of_mmengine_is_a_run(place: str, tmp_path: Path) -> None:
    run = tmp_path / "resnet"
    entries = [
        entry
        for epoch in range(1, 4)
        for entry in (
            {"lr": 0.1, "time": 0.1 + epoch % 2, "loss": 2.0 / epoch, "epoch": epoch, "step": 70 * epoch},
            {"accuracy/top1": 50.0 + epoch, "time": 0.1, "step": epoch},
        )
    ]
    write(run / place / "scalars.json", *map(json.dumps, entries))
    log = read_log(run)
    assert (log.metric, log.position.tolist(), log.seconds) == ("loss", [70, 140, 210], None)
    assert log.name == (place.split("/")[0] if "/" in place else "resnet")
    scores = read_log(run, metric="top1")
    assert scores.rising
    assert scores.position.tolist() == [1, 2, 3]


def test_scores_that_detectors_log_as_a_list_are_columns(tmp_path: Path) -> None:
    entries = [
        {"train_loss": 9 - e, "test_loss": 10 - e, "test_coco_eval": [0.1 * e, 0.2], "betas": [], "epoch": e}
        for e in range(4)
    ]
    write(tmp_path / "detr" / "log.txt", *map(json.dumps, entries))
    log = read_log(tmp_path / "detr")
    assert (log.name, log.metric, log.values.tolist()) == ("detr", "test_loss", [10, 9, 8, 7])
    scores = read_log(tmp_path / "detr", metric="test_coco_eval/0", rising=True)
    assert scores.values == pytest.approx([0, 0.1, 0.2, 0.3])


def test_a_column_that_never_changes_is_not_the_metric(tmp_path: Path) -> None:
    rows = [f"{i}\t1\t{0.7**i}" for i in range(5)]
    assert read_log(write(tmp_path / "e.tsv", "iter\tTotalF1\tMultiClass", *rows)).metric == "MultiClass"
    rows = [f"{i},2.3026,{2 - i / 9}" for i in range(5)]
    assert read_log(write(tmp_path / "s.csv", "epoch,val_loss,loss", *rows)).metric == "val_loss"


def test_rewards_come_before_the_losses_of_reinforcement_learning(tmp_path: Path) -> None:
    head = "num_episodes,value_loss,train/loss,ep_rew_mean,total_time,total timesteps"
    rows = [f"{70 * i},{0.1 * (-1) ** i},{i % 2},{-500 + 9 * i},{4 * i},{5120 * i}" for i in range(1, 5)]
    log = read_log(write(tmp_path / "progress.csv", head, *rows))
    assert (log.metric, log.rising, log.axis_column) == ("ep_rew_mean", True, "total timesteps")
    assert log.seconds is not None
    by_episode = read_log(write(tmp_path / "q.csv", "Episode,Reward,Loss", "0,1,9", "1,3,8", "2,4,9"))
    assert (by_episode.metric, by_episode.axis) == ("Reward", "step")
    with pytest.raises(InputError, match="several metrics"):
        read_log(write(tmp_path / "m.csv", "step,a/reward,b/reward,b/loss", "1,2,3,4", "2,3,4,5"))


def test_names_do_not_steer_the_terminal_and_axes_are_not_metrics(tmp_path: Path) -> None:
    path = write(tmp_path / "a\nb\x1b[31m.csv", "step,loss", "1,2", "2,1")
    assert read_log(path).name == "a?b?[31m"
    with pytest.raises(InputError, match="axis 'loss' is the metric"):
        read_log(path, axis="loss")
    with pytest.raises(InputError, match="axis 'los' is no column; did you mean 'loss'"):
        read_log(path, axis="los")


def test_detectors_metrics_need_no_bracket(tmp_path: Path) -> None:
    head = "epoch,metrics/recall(B),metrics/mAP50(B),metrics/mAP50-95(B),val/box_loss,val/cls_loss"
    path = write(tmp_path / "results.csv", head, "1,.5,.6,.3,2,3", "2,.6,.7,.4,1,2")
    assert read_log(path, metric="recall").metric == "metrics/recall(B)"
    assert read_log(path, metric="map50").values.tolist() == [0.6, 0.7]
    old = write(tmp_path / "old.csv", "epoch,metrics/mAP_0.5,metrics/mAP_0.5:0.95,val/box_loss,val/obj_loss")
    with old.open("a") as stream:
        stream.write("0,.5,.3,2,3\n1,.6,.4,1,2\n")
    assert read_log(old).metric == "metrics/mAP_0.5:0.95"


@pytest.mark.parametrize(
    "head",
    [
        "epochs,_runtime,_step,_timestamp,_wandb,val_loss,name,id",
        "Name,State,Notes,User,Tags,Created,Runtime,val_loss",
    ],
)
def test_a_table_with_a_row_a_run_is_not_one_run(head: str, tmp_path: Path) -> None:
    rows = [",".join(str(3 * row + i) for i in range(8)) for row in range(4)]
    with pytest.raises(InputError, match=r"line 1: a table with a row a run.*history of one run"):
        read_log(write(tmp_path / "wandb_export.csv", head, *rows))


def test_the_only_log_in_a_folder_is_taken_and_several_are_named(tmp_path: Path) -> None:
    lines = [
        f'2024-01-0{i} 10:00:00 | INFO | train_inner | {{"loss": "{9 - i}", "num_updates": "{i}"}}'
        for i in (1, 2, 3)
    ]
    write(tmp_path / "train.log", "2024-01-01 09:59:59 | INFO | fairseq | compiled", *lines)
    write(tmp_path / "notes.txt", "bs 32, lr .1", "second try")
    write(tmp_path / "config.json", json.dumps({"lr": 0.1}))
    assert read_log(tmp_path).values.tolist() == [8, 7, 6]
    assert find_logs(tmp_path) == [tmp_path / "train.log"]
    write(tmp_path / "other.csv", "step,loss", "1,2")
    with pytest.raises(InputError, match=r"2 logs in this folder; name one: other\.csv, train\.log"):
        read_log(tmp_path)


@pytest.mark.parametrize(
    "names", [["loss/train", "loss/val"], ["Loss/train", "Loss/test"], ["accuracy/train", "accuracy/val"]]
)
def test_a_name_that_ends_in_val_or_test_is_the_held_out_one(names: list[str]) -> None:
    assert choose_metric(names, None, "here") == names[1]
