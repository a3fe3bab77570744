"""The tools themselves write the files, where they are installed."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mara.curves.readers.read import read_log
from tests.curves.readers.samples import LOSSES


def test_tensorboard_writer(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_text("note", "hello")
        for step, value in enumerate(LOSSES):
            writer.add_scalar("train/loss", value / 2, 10 * step)
            writer.add_scalar("val/loss", value, 10 * step)
            writer.add_scalar("val/new", value, 10 * step, new_style=True)
            writer.add_histogram("weights", np.arange(20.0), 10 * step)
        writer.add_scalars("both", {"a": 1.0}, 0)
    for metric in (None, "val/new"):
        log = read_log(tmp_path, metric=metric)
        assert log.metric == metric or (metric is None and log.metric == "val/loss")
        np.testing.assert_array_equal(log.values, LOSSES.astype(np.float32))
        np.testing.assert_array_equal(log.position, 10 * np.arange(len(LOSSES)))


def test_lightning_csv_logger(tmp_path: Path) -> None:
    loggers = pytest.importorskip("lightning.pytorch.loggers")
    logger = loggers.CSVLogger(str(tmp_path), flush_logs_every_n_steps=7)
    for step, value in enumerate(LOSSES.tolist()):
        logger.log_metrics({"train_loss": value / 2, "epoch": step // 4}, step=step)
        if step % 4 == 3:
            logger.log_metrics({"val_loss": value, "epoch": step // 4}, step=step)
    logger.save()
    log = read_log(Path(logger.log_dir))
    assert (log.metric, log.axis) == ("val_loss", "step")
    np.testing.assert_array_equal(log.values, LOSSES[3::4])
    np.testing.assert_array_equal(log.position, np.arange(3, 40, 4))


def test_stable_baselines_monitor_and_callback(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    import gymnasium
    from stable_baselines3.common.monitor import Monitor

    environment = Monitor(gymnasium.make("CartPole-v1"), str(tmp_path / "cartpole"))
    lengths = []
    for episode in range(12):
        environment.reset(seed=episode)
        length, over = 0, False
        while not over:
            _, _, ended, cut, _ = environment.step(length % 2)
            over = ended or cut
            length += 1
        lengths.append(length)
    environment.close()
    log = read_log(tmp_path / "cartpole.monitor.csv")
    assert log.format == "monitor"
    np.testing.assert_array_equal(log.values, lengths)
    np.testing.assert_array_equal(log.position, np.cumsum(lengths))


def test_stable_baselines_evaluations(tmp_path: Path) -> None:
    baselines = pytest.importorskip("stable_baselines3")
    import gymnasium
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.monitor import Monitor

    watched = Monitor(gymnasium.make("CartPole-v1"))
    callback = EvalCallback(watched, eval_freq=32, n_eval_episodes=2, log_path=str(tmp_path), verbose=0)
    model = baselines.PPO(
        "MlpPolicy", "CartPole-v1", n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu"
    )
    model.learn(128, callback=callback)
    watched.close()
    log = read_log(tmp_path)
    assert (log.format, log.rising) == ("evaluations", True)
    np.testing.assert_array_equal(log.position, [32, 64, 96, 128])
    np.testing.assert_array_equal(log.values, np.mean(callback.evaluations_results, axis=1))


def test_transformers_trainer_state(tmp_path: Path) -> None:
    callbacks = pytest.importorskip(
        "transformers.trainer_callback", reason="too large for the extra `test`: pip install -e '.[logs]'"
    )
    state = callbacks.TrainerState()
    for step, value in enumerate(LOSSES.tolist(), start=1):
        at = {"epoch": step / 4, "step": 10 * step}
        state.log_history += [{"loss": value / 2, "learning_rate": 1e-4, **at}, {"eval_loss": value, **at}]
    state.save_to_json(str(tmp_path / "trainer_state.json"))
    log = read_log(tmp_path)
    assert (log.format, log.metric, log.axis) == ("trainer_state", "eval_loss", "step")
    np.testing.assert_array_equal(log.values, LOSSES)
    np.testing.assert_array_equal(log.position, 10 * np.arange(1, len(LOSSES) + 1))


def test_keras_csv_logger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "home"))
    callbacks = pytest.importorskip("keras.callbacks")
    for append in (False, True):
        logger = callbacks.CSVLogger(str(tmp_path / "training.log"), append=append)
        logger.set_model(SimpleNamespace(stop_training=False))
        logger.on_train_begin()
        half = slice(20, None) if append else slice(0, 20)
        for epoch, value in list(enumerate(LOSSES.tolist()))[half]:
            logger.on_epoch_end(epoch, {"loss": value / 2, "val_loss": value})
        logger.on_train_end()
    log = read_log(tmp_path)
    assert (log.metric, log.axis) == ("val_loss", "epoch")
    np.testing.assert_array_equal(log.values, LOSSES)
    np.testing.assert_array_equal(log.position, np.arange(len(LOSSES)))


def test_pandas_table_with_row_numbers(tmp_path: Path) -> None:
    import pandas as pd

    table = pd.DataFrame({"step": np.arange(40) * 3, "loss": LOSSES, "note": "fine"})
    for separator, decimal in ((",", "."), (";", ","), ("\t", ".")):
        table.to_csv(tmp_path / "log.csv", sep=separator, decimal=decimal)
        np.testing.assert_array_equal(read_log(tmp_path / "log.csv").values, LOSSES)
