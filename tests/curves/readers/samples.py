"""Files as tools write them, byte for byte in their form, with the curve that was logged.

Each maker takes a folder and an array of losses (P,), writes a file and returns its path.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mara.curves.readers.tensorboard import masked_crc

LOSSES = np.round(2.0 * np.arange(1, 41) ** -0.5 + 0.01 * np.cos(np.arange(40) * 2.3), 5)
"""Of every sample unless the caller has others."""


def keras_csv(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """``keras.callbacks.CSVLogger``: epoch first, the other columns sorted."""
    rows = [f"{epoch},{1 - v / 4},{v * 1.1},{1 - v / 3},{v}" for epoch, v in enumerate(losses.tolist())]
    return _write(folder / "training.log", "epoch,accuracy,loss,val_accuracy,val_loss", *rows)


def lightning_csv(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """Lightning's CSVLogger: training rows without and validation rows with a validation loss."""
    rows = []
    for epoch, value in enumerate(losses.tolist()):
        rows += [f"{epoch},{10 * epoch + 4},{value * 0.9},", f"{epoch},{10 * epoch + 9},,{value}"]
    return _write(folder / "metrics.csv", "epoch,step,train_loss,val_loss", *rows)


def yolo_csv(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """Ultralytics' results.csv of earlier versions: names and numbers padded."""
    names = ("epoch", "train/box_loss", "metrics/mAP50-95(B)", "val/box_loss", "lr/pg0")
    rows = [
        ",".join(f"{cell:23.5g}" for cell in (epoch + 1, value, 1 - value / 3, value * 1.1, 0.01))
        for epoch, value in enumerate(losses.tolist())
    ]
    return _write(folder / "results.csv", ",".join(f"{name:>23}" for name in names), *rows)


def german_csv(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """A spreadsheet's export: byte-order mark, semicolons, decimal commas, Windows line ends."""
    rows = [f"{step};{value}".replace(".", ",") for step, value in enumerate(losses.tolist())]
    path = folder / "export.csv"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(["Step;Loss", *rows, ""]).encode())
    return path


def utf16_tsv(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """A spreadsheet's "Unicode text": UTF-16 with tabs."""
    rows = [f"{step}\t{value}" for step, value in enumerate(losses.tolist())]
    path = folder / "export.tsv"
    path.write_bytes("\r\n".join(["Step\tLoss", *rows, ""]).encode("utf-16"))
    return path


def wandb_csv(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """A chart exported by W&B: quoted cells, and the least and largest of what was drawn as one point."""
    head = '"Step","bright-sun-7 - val/loss","bright-sun-7 - val/loss__MIN","bright-sun-7 - val/loss__MAX"'
    rows = [f'"{5 * step}","{v}","{v - 0.01}","{v + 0.01}"' for step, v in enumerate(losses.tolist())]
    return _write(folder / "wandb_export.csv", head, *rows)


def wandb_history(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """A run's history as JSON lines, system metrics in rows of their own."""
    rows = []
    for step, value in enumerate(losses.tolist()):
        rows.append(
            {"_step": step, "_runtime": 2.5 * step, "_timestamp": 1.7e9 + 2.5 * step, "val": {"loss": value}}
        )
        rows.append({"_step": step, "_runtime": 2.5 * step, "system.gpu.0.temp": 61})
    return _write(folder / "wandb-history.jsonl", *map(json.dumps, rows))


def mlflow_csv(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """MLflow's long form: one row a metric and step."""
    rows = []
    for step, value in enumerate(losses.tolist()):
        rows += [
            f"a1b2,{key},{v},{step},{1_700_000_000_000 + step}"
            for key, v in (("lr", 0.1), ("val_loss", value))
        ]
    return _write(folder / "mlflow.csv", "run_id,key,value,step,timestamp", *rows)


def mlflow_file(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """``mlruns/<experiment>/<run>/metrics/val_loss``."""
    (folder / "metrics").mkdir(exist_ok=True)
    rows = [f"{1_700_000_000_000 + 500 * step} {v} {step}" for step, v in enumerate(losses.tolist())]
    return _write(folder / "metrics" / "val_loss", *rows)


def mlflow_json(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """The answer of MLflow's ``metrics/get-history``."""
    rows = [
        {"key": "val_loss", "value": v, "timestamp": 1_700_000_000_000 + step, "step": step}
        for step, v in enumerate(losses.tolist())
    ]
    return _write(folder / "mlflow.json", json.dumps({"metrics": rows}, indent=1))


def trainer_state(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """The Trainer's state: training and evaluation entries, and the closing one."""
    history: list[dict[str, float]] = []
    for step, value in enumerate(losses.tolist()):
        at = {"epoch": step / 10, "step": 50 * (step + 1)}
        history += [
            {**at, "loss": value * 0.9, "learning_rate": 5e-5},
            {**at, "eval_loss": value, "eval_runtime": 3.1},
        ]
    history.append({"epoch": 4.0, "step": 2000, "total_flos": 1e15, "train_loss": 0.7, "train_runtime": 99.0})
    state = {"best_metric": None, "global_step": 2000, "is_world_process_zero": True, "log_history": history}
    return _write(folder / "trainer_state.json", json.dumps(state, indent=2))


def keras_history(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """``json.dump(model.fit(...).history)``."""
    return _write(
        folder / "history.json", json.dumps({"loss": (losses * 0.9).tolist(), "val_loss": losses.tolist()})
    )


def mmengine(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """MMEngine's vis_data/scalars.json."""
    rows = [
        {
            "lr": 0.02,
            "data_time": 0.01,
            "loss": v,
            "time": 0.3,
            "epoch": 1 + s // 10,
            "iter": s + 1,
            "step": s + 1,
        }
        for s, v in enumerate(losses.tolist())
    ]
    return _write(folder / "scalars.json", *map(json.dumps, rows))


def fairseq(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """``fairseq-train --log-format json``: a logger's prefix, numbers as text."""
    rows = ["2024-01-01 10:00:00 | INFO | fairseq_cli.train | task: TranslationTask"]
    for epoch, v in enumerate(losses.tolist()):
        inner = {
            "epoch": epoch + 1,
            "update": 0.5,
            "loss": f"{v * 1.5:.3f}",
            "ppl": "41",
            "num_updates": f"{epoch * 100}",
        }
        held = {"epoch": epoch + 1, "valid_loss": f"{v}", "valid_num_updates": f"{epoch * 100 + 100}"}
        rows.append(f"2024-01-01 10:00:00 | INFO | train_inner | {json.dumps(inner)}")
        rows.append(f"2024-01-01 10:00:00 | INFO | valid | {json.dumps(held)}")
    return _write(folder / "train.log", *rows)


def monitor(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """Stable-Baselines3's Monitor; the returns are 3 - loss."""
    rows = [f"{3 - v},{20 + episode},{0.5 * episode}" for episode, v in enumerate(losses.tolist())]
    return _write(folder / "monitor.csv", '#{"t_start": 1.7e9, "env_id": "CartPole-v1"}', "r,l,t", *rows)


def evaluations(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """The EvalCallback's file; each evaluation has two episodes, whose mean is 3 - loss."""
    path = folder / "evaluations.npz"
    path.write_bytes(evaluations_bytes(3 - losses[:, None] + np.array([-0.5, 0.5])))
    return path


def evaluations_bytes(results: np.ndarray) -> bytes:
    stream = io.BytesIO()
    lengths = np.full(results.shape, 10)
    np.savez(stream, timesteps=1000 * np.arange(1, len(results) + 1), results=results, ep_lengths=lengths)
    return stream.getvalue()


def tensorboard(folder: Path, losses: np.ndarray = LOSSES) -> Path:
    """An event file with a scalar and text a step, as ``SummaryWriter`` frames them."""
    records = [_event(b"\x1a\x0dbrain.Event:2", 0)]
    for step, value in enumerate(losses.tolist()):
        tag = b"val/loss"
        scalar = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", value)
        summary = b"\x0a" + bytes([len(scalar)]) + scalar
        records.append(_event(b"\x2a" + bytes([len(summary)]) + summary, step))
    path = folder / "events.out.tfevents.1700000000.host.1.0"
    path.write_bytes(b"".join(map(record, records)))
    return path


def _event(rest: bytes, step: int) -> bytes:
    return b"\x09" + struct.pack("<d", 1.7e9 + step) + b"\x10" + bytes([step]) + rest


def record(data: bytes) -> bytes:
    """Frame data as a TFRecord."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def _write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


MAKERS: dict[Callable[..., Path], tuple[str, str, str]] = {
    keras_csv: ("csv", "val_loss", "epoch"),
    lightning_csv: ("csv", "val_loss", "step"),
    yolo_csv: ("csv", "metrics/mAP50-95(B)", "epoch"),
    german_csv: ("csv", "Loss", "step"),
    utf16_tsv: ("csv", "Loss", "step"),
    wandb_csv: ("csv", "bright-sun-7 - val/loss", "step"),
    wandb_history: ("jsonl", "val/loss", "step"),
    mlflow_csv: ("csv", "val_loss", "step"),
    mlflow_file: ("mlflow", "val_loss", "step"),
    mlflow_json: ("json", "val_loss", "step"),
    trainer_state: ("trainer_state", "eval_loss", "step"),
    keras_history: ("json", "val_loss", "row"),
    mmengine: ("jsonl", "loss", "step"),
    fairseq: ("jsonl", "valid_loss", "step"),
    monitor: ("monitor", "episode_reward", "step"),
    evaluations: ("evaluations", "mean_reward", "step"),
    tensorboard: ("tensorboard", "val/loss", "step"),
}
"""Maker -> format, metric and axis that are found without being told."""
