"""``mara simulate``: allocators on the jobs of a cluster trace, side by side."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mara.cli.arguments import PICTURES, check_output, command_parser, print_json
from mara.errors import InputError, printable
from mara.files import atomic_path
from mara.workload.traces.read import FORMATS, Jobs, read_trace

if TYPE_CHECKING:
    from mara.replay.compare import Arena, Run, Score
    from mara.replay.tasks import Replay

DESCRIPTION = """\
Read the jobs of TRACE (Standard Workload Format, sacct --parsable2, Philly-like, Alibaba-like, ElasticFlow or
plain CSV; see docs/formats.md), let each allocator schedule them on the same nodes, and compare how many make
their deadlines.

A job is a task whose demand is its duration times its nodes; allocators may interrupt jobs freely. Without a
deadline in the trace a job gets slack x duration. Allocators that read forecasts, and LARA, see a training
curve drawn from the recorded corpus that reaches its target exactly when the job is done. They use their
default weights. Times are rounded to slots."""
EXAMPLE = """\
mara simulate jobs.csv --nodes 8 --allocators edf,srpt,lara,index --gantt schedule.svg
mara simulate log.swf --nodes 128 --allocators fifo,edf --slack 3 --json"""
MOST_NODES = 100_000
MOST_GANTT_NODES = 64


def main(words: list[str]) -> None:
    """Read, simulate, print.

    Raises:
        InputError: for a bad trace or option.
    """
    arguments = _parse(words)
    if not 1 <= arguments.nodes <= MOST_NODES:
        raise InputError(f"--nodes {arguments.nodes}: expected 1 to {MOST_NODES}")
    most = arguments.max_nodes_per_job
    if most is not None and not 1 <= most <= arguments.nodes:
        raise InputError(f"--max-nodes-per-job {most}: expected 1 to {arguments.nodes}, the number of nodes")
    if arguments.gantt is not None:
        check_output("--gantt", arguments.gantt, PICTURES)
        if arguments.nodes > MOST_GANTT_NODES:
            raise InputError(
                f"--gantt: {arguments.nodes} nodes do not fit a picture; at most {MOST_GANTT_NODES} do"
            )
    names = _allocators(arguments.allocators, arguments.transformer)
    jobs = read_trace(arguments.trace, arguments.format, arguments.strict, arguments.nodes)
    for note in jobs.notes():
        print(printable(f"{arguments.trace}: {note}"), file=sys.stderr)

    from tqdm import tqdm

    from mara.replay.compare import Arena, scores
    from mara.replay.tasks import as_replay

    replay = as_replay(
        jobs, arguments.nodes, arguments.slot_seconds, arguments.slack, arguments.max_nodes_per_job
    )
    arena = Arena(replay, arguments.predictor, arguments.seed, arguments.transformer)
    runs = []
    bar = tqdm(names, unit="allocator", disable=None, file=sys.stderr)
    for name in bar:
        bar.set_description(name)
        runs.append(arena.run(name))
    table = scores(replay, runs)
    if arguments.gantt is not None:
        draw_gantt(arena, runs, arguments.gantt)
    if arguments.json:
        print_json(as_document(arguments.trace, replay, table))
    else:
        print(as_text(arguments.trace, replay, table))


def _parse(words: list[str]) -> argparse.Namespace:
    parser = command_parser("simulate", DESCRIPTION, EXAMPLE)
    parser.add_argument("trace", type=Path, help="file with one job a row")
    parser.add_argument("--nodes", type=int, required=True, help="alike nodes of speed 1")
    parser.add_argument(
        "--allocators",
        default="fifo,edf",
        help="names with commas, compared with the first (default: fifo,edf)",
    )
    parser.add_argument("--slot-seconds", type=float, help="default: one that suits the durations; printed")
    parser.add_argument("--slack", type=float, default=2.0, help="for jobs without a deadline (default: 2)")
    parser.add_argument(
        "--max-nodes-per-job", type=int, help="default: the most that a job of the trace asks for"
    )
    parser.add_argument("--predictor", default="kalman", help="what srpt, gittins, index, ... read")
    parser.add_argument(
        "--transformer", type=Path, metavar="FILE", help="what mat runs: results/mat/mara/seed1/policy.pt"
    )
    parser.add_argument("--format", choices=FORMATS, help="default: found out from the first row")
    parser.add_argument(
        "--strict", action="store_true", help="stop at the first bad row (default: skip, count)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the training curves and of random allocators")
    parser.add_argument("--gantt", type=Path, metavar="FILE", help="draw the first slots (.svg, .png, .pdf)")
    return parser.parse_args(words)


def _allocators(listed: str, transformer: Path | None) -> list[str]:
    """The names of ``--allocators``, each known and given once; the transformer's with its file, and the
    file with its name.
    """
    from mara.allocators.registry import allocator
    from mara.replay.compare import MAT

    names = [name.strip() for name in listed.split(",") if name.strip()]
    if not names:
        raise InputError("--allocators: name at least one")
    if len(set(names)) != len(names):
        raise InputError(f"--allocators {listed}: names an allocator twice")
    for name in names:
        if name != MAT:
            allocator(name)
    if MAT in names and transformer is None:
        raise InputError(
            f"--allocators {MAT}: needs a trained transformer; give its policy.pt (--transformer)"
        )
    if MAT not in names and transformer is not None:
        raise InputError(f"--transformer {transformer}: nothing runs it; add {MAT} to --allocators")
    return names


def draw_gantt(arena: Arena, runs: list[Run], path: Path) -> None:
    """Draw who ran where in the first slots, a panel an allocator."""
    import pandas as pd

    from mara.figures import gantt
    from mara.figures.style import set_title

    trace = arena.replay.trace
    slots, tasks = [], []
    for run in runs:
        shown = arena.first_slots(run.allocator)
        slots.append(shown.assign(method=run.allocator))
        count = int((trace.arrival <= shown["slot"].max()).sum()) if len(shown) else 0
        outcome = run.outcome
        tasks.append(
            pd.DataFrame(
                {
                    "task": range(count),
                    "arrival": outcome.arrival[:count],
                    "deadline": outcome.deadline[:count],
                    "completed": outcome.completed[:count],
                    "method": run.allocator,
                }
            )
        )
    drawn = gantt.draw(pd.concat(slots, ignore_index=True), pd.concat(tasks, ignore_index=True))
    set_title(drawn.figure, drawn.title)
    try:
        with atomic_path(path) as temporary:
            drawn.figure.savefig(temporary, format=path.suffix.lower()[1:], facecolor="white")
    except OSError as error:
        raise InputError(f"--gantt {path}: cannot be written ({error.strerror})") from None


def _about(replay: Replay) -> list[str]:
    """What the numbers rest on, a line each."""
    jobs, cluster = replay.jobs, replay.cluster
    slot = "" if jobs.in_slots else f"slots of {replay.slot_seconds:g} s, "
    nodes = f"{cluster.nodes} node{'s' if cluster.nodes > 1 else ''}"
    lines = [
        f"{len(jobs)} job{'s' * (len(jobs) > 1)} ({jobs.format}), {nodes}, {slot}load {replay.load:.2f} "
        "(work over what the nodes give until the last submission)"
    ]
    without = int((jobs.deadline != jobs.deadline).sum())
    if without:
        lines.append(f"{without} jobs have no deadline in the trace: {replay.slack:g} x duration is used")
    if cluster.max_nodes_per_task > 1:
        lines.append(f"up to {cluster.max_nodes_per_task} nodes may share a job, with linear speed-up")
    if replay.hopeless:
        lines.append(f"{replay.hopeless} jobs cannot make it even on an empty cluster")
    if abs(replay.rounding) >= 0.01:
        lines.append(
            f"whole slots change the total work by {100 * replay.rounding:+.3g} %; see --slot-seconds"
        )
    return lines


def as_text(path: Path, replay: Replay, table: list[Score]) -> str:
    """The table for people."""
    lines = [f"{path}: {line}" if not i else f"  {line}" for i, line in enumerate(_about(replay))]
    first = table[0].allocator
    head = (
        f"{'allocator':<16}{'completed':>10}{'rate / %':>10}  {'95 %':<16}{'less ' + first:>12}  {'95 %':<16}"
    )
    lines += ["", f"{head}{'slowdown':>9}{'busy / %':>10}"]
    for score in table:
        rate = [100 * value for value in score.rate]
        lead = [100 * value for value in score.lead]
        between, apart = "", ""
        if rate[1] == rate[1]:  # NaN for a single job
            between, apart = f"[{rate[1]:.1f}, {rate[2]:.1f}]", f"[{lead[1]:+.1f}, {lead[2]:+.1f}]"
        named = f"{score.allocator:<16}{score.completed:>10}{rate[0]:>10.1f}  {between:<16}"
        other = f"{'':>12}  {'':<16}" if score is table[0] else f"{lead[0]:>+12.1f}  {apart:<16}"
        lines.append(f"{named}{other}{score.slowdown:>9.2f}{100 * score.busy:>10.1f}")
    read = sorted({f"{s.allocator} reads {s.predictor}" for s in table if s.predictor})
    lines += [
        "",
        "Intervals: jobs drawn again. Slowdown: time in the system over time alone, completed jobs.",
    ]
    return "\n".join(lines + ([f"Forecasts: {', '.join(read)}, on drawn training curves."] if read else []))


def as_document(path: Path, replay: Replay, table: list[Score]) -> dict[str, Any]:
    """The same for machines."""
    jobs: Jobs = replay.jobs
    return {
        "trace": {
            "file": str(path),
            "format": jobs.format,
            "jobs": len(jobs),
            "sorted": not jobs.reordered,
            "skipped": [
                {"reason": bad.reason, "rows": bad.count, "first_lines": list(bad.lines)} for bad in jobs.bad
            ],
            "without_deadline": int((jobs.deadline != jobs.deadline).sum()),
        },
        "model": {
            "nodes": replay.cluster.nodes,
            "max_nodes_per_job": replay.cluster.max_nodes_per_task,
            "slot_seconds": None if jobs.in_slots else replay.slot_seconds,
            "slack": replay.slack,
            "load": replay.load,
            "cannot_make_it": replay.hopeless,
            "rounding": replay.rounding,
        },
        "allocators": [
            {
                "allocator": score.allocator,
                "predictor": score.predictor or None,
                "completed": score.completed,
                "rate": score.rate._asdict(),
                "lead_over_first": score.lead._asdict(),
                "slowdown": score.slowdown,
                "busy": score.busy,
                "seconds": score.seconds,
            }
            for score in table
        ],
    }
