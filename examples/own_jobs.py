"""Advice on one's own jobs from Python: forecast a run, rank several, replay a cluster's trace.

    python examples/train_digits.py runs
    python examples/own_jobs.py runs

The second argument may be a trace; without it one is made up.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from mara.curves.readers.read import find_logs, read_log
from mara.live.advice import Job, advise
from mara.live.forecast import Question, forecast_remaining
from mara.replay.compare import Arena, scores
from mara.replay.tasks import as_replay
from mara.workload.traces.read import read_trace


def made_up_trace(path: Path) -> Path:
    """Write two hundred jobs of a quarter of an hour or so, two a quarter."""
    rng = np.random.default_rng(0)
    submit = np.sort(rng.uniform(0, 90_000, 200))
    duration = np.exp(rng.normal(6.5, 0.8, 200))
    deadline = submit + duration * rng.uniform(1.2, 3, 200)
    rows = [f"{s:.0f},{t:.0f},{d:.0f}" for s, t, d in zip(submit, duration, deadline, strict=True)]
    path.write_text("submit_time,duration,deadline\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def main(folder: Path, trace: Path | None) -> None:
    """Forecast, rank, replay."""
    logs = [read_log(path) for path in find_logs(folder)]
    first = forecast_remaining(logs[0], target=0.8 * float(logs[0].values.min()), deadline=60)
    print(
        f"{logs[0].path}: {first.median:g} more {logs[0].axis_column}s to the target, {first.interval} (80 %)"
    )
    jobs = [
        Job(str(log.path), Question(log, target=0.9 * float(log.values.min()), deadline=60)) for log in logs
    ]
    for job in advise(jobs, nodes=2).jobs:
        print(f"node {job.node or '-'}: {job.job.name}: {job.reason}")
    read = read_trace(trace or made_up_trace(folder / "trace.csv"))
    replay = as_replay(read, nodes=2)
    arena = Arena(replay)
    for score in scores(replay, [arena.run(name) for name in ("fifo", "edf")]):
        print(f"{score.allocator}: {score.completed} of {len(read)} jobs in time")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
