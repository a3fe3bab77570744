"""``mara advise``: what each node should train next, from running jobs' logs and a file of what is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mara.cli.arguments import command_parser, print_json
from mara.cli.jobs import read_jobs
from mara.cli.logs import length, short
from mara.errors import printable
from mara.live.advice import Advice, JobAdvice, advise

DESCRIPTION = """\
Read the logs that FOLDER/jobs.yaml names, forecast every job, and say which jobs the nodes should train next
(the study's Gittins index with urgency) and which will miss their deadlines if nodes are shared like that.
A job of the file has log and target, and may have name, metric, axis, format, maximise, best, deadline (90m,
12h, 2d or a date), deadline_steps and seconds_per_step (where the log has no clock)."""
EXAMPLE = """\
cat runs/jobs.yaml
  jobs:
    - {log: resnet/metrics.csv, target: 0.3, deadline: 12h}
    - {log: ppo, metric: rollout/ep_rew_mean, target: 475, best: 500, deadline_steps: 20000}
mara advise runs --nodes 4"""


def main(words: list[str]) -> None:
    """Read, advise, print.

    Raises:
        InputError: for a bad file, log or number of nodes.
    """
    parser = command_parser("advise", DESCRIPTION, EXAMPLE)
    parser.add_argument("folder", type=Path, help="folder with jobs.yaml, or such a file")
    parser.add_argument("--nodes", type=int, required=True, help="nodes that can train a job each")
    arguments = parser.parse_args(words)
    folder: Path = arguments.folder
    advice = advise(read_jobs(folder / "jobs.yaml" if folder.is_dir() else folder), arguments.nodes)
    if arguments.json:
        print_json(as_document(advice))
    else:
        print(as_text(advice))


def as_text(advice: Advice) -> str:
    """A table of the jobs, then the notes."""
    head = ("node", "job", "newest", "target", "still needs (80 %)", "in time", "")
    rows = [head, *(_row(job) for job in advice.jobs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    idle = advice.nodes - sum(job.node is not None for job in advice.jobs)
    notes = [f"{idle} nodes have nothing to train"] if idle else []
    return "\n".join(map(printable, [*lines, *(f"note: {note}" for note in (*notes, *advice.notes))]))


def _row(job: JobAdvice) -> tuple[str, ...]:
    remaining, log = job.remaining, job.remaining.question.log
    needs = "-"
    if job.rank is not None:
        ends = [length(value, remaining.horizon) for value in (remaining.median, *remaining.interval)]
        needs = ends[0] if len(set(ends)) == 1 else f"{ends[0]} ({ends[1]} to {ends[2]})"
    return (
        "-" if job.node is None else str(job.node),
        printable(job.job.name),
        short(float(log.values[-1])),
        short(job.job.question.target),
        needs,
        "-" if job.chance is None or job.chance_alone is None else f"{job.chance:.0%}",
        f"{job.state}: {job.reason}",
    )


def as_document(advice: Advice) -> dict[str, Any]:
    """The advice for machines; lengths beyond the horizon are null."""
    return {
        "nodes": advice.nodes,
        "slot_seconds": advice.slot_seconds,
        "notes": list(advice.notes),
        "jobs": [
            {
                "name": job.job.name,
                "node": job.node,
                "rank": job.rank,
                "state": job.state,
                "reason": job.reason,
                "target": job.job.question.target,
                "remaining": {
                    "median": job.remaining.median,
                    "low80": job.remaining.interval[0],
                    "high80": job.remaining.interval[1],
                },
                "horizon": job.remaining.horizon,
                "chance_alone": job.chance_alone,
                "chance": job.chance,
                "index": job.index,
            }
            for job in advice.jobs
        ],
    }
