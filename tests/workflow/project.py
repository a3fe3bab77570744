"""A copy of the project in which every output exists, and what Snakemake would run in it.

Outputs are small made-up files; `--touch` records for each what it was made from, as a real run does. Plans are laid
out by `snakemake --dry-run` in forks of one process that has imported Snakemake, which halves their cost.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
SETTINGS: dict[str, dict[str, Any]] = {
    "study": {
        "loads": [1.0, 1.5],
        "train_seeds": [1, 2],
        "variant_seeds": [1],
        "predictors": ["wls", "neighbours", "flow"],
        "methods": ["edf", "index", "lara", "mara"],
        "attribution": [],
        "history": [],
        "ablation": ["lara", "mara", "mara_scratch_no_shaping"],
        "held_out_families": ["rl"],
        "training_scenarios": [],
        "stress_scenarios": ["bursty"],
        "stress": ["lara", "mara"],
    }
}
SERVER = """
import json, os, sys
import pydantic, snakemake.cli, snakemake.dag, snakemake.executors.touch, snakemake.scheduling.job_scheduler
for line in sys.stdin:
    folder, said, options = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        to = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(to, 1)
        os.dup2(to, 2)
        sys.path.insert(0, folder)
        sys.argv = ["snakemake", *options]
        snakemake.cli.main(options)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Job(NamedTuple):
    """What a job reads and makes."""

    inputs: frozenset[str]
    outputs: frozenset[str]


Plan = dict[str, Job]
"""Jobs by name: `rule` or `rule:wildcard,wildcard`."""


def read_plan(said: str) -> Plan:
    """Take the jobs from what a dry run says."""

    def listed(block: str, name: str) -> list[str]:
        found = re.search(rf"^ +{name}: (.*)$", block, re.MULTILINE)
        return found[1].split(", ") if found else []

    plan = {}
    for block in re.split(r"^(?:local)?rule ", said, flags=re.MULTILINE)[1:]:
        values = [value.split("=", 1)[1] for value in listed(block, "wildcards")]
        name = block[: block.index(":")] + (":" + ",".join(values) if values else "")
        plan[name] = Job(frozenset(listed(block, "input")), frozenset(listed(block, "output")))
    plan.pop("all", None)
    return plan


def with_descendants(plan: Plan, first: set[str]) -> set[str]:
    """Jobs and all that read, at first or second hand, what they make."""
    found, pending = set(first), list(first)
    while pending:
        made = plan[pending.pop()].outputs
        new = {name for name, job in plan.items() if job.inputs & made} - found
        found |= new
        pending += new
    return found


def hear_ctrl_c() -> None:
    """Undo, before a command starts, that a shell makes all it starts in the background deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def copy_sources(folder: Path, source: Path = ROOT) -> Path:
    """Copy what the workflow is made of into a new folder."""
    folder.mkdir(parents=True)
    for name in ("mara", "workflow", "config"):
        shutil.copytree(source / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(source / "Snakefile", folder)
    (folder / "profiles").symlink_to("workflow/profiles")
    return folder


class Project:
    """The copy in ``folder``."""

    def __init__(self, folder: Path, source: Path = ROOT) -> None:
        self.folder = copy_sources(folder, source)
        self.server = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> None:
        """Stop the process that forks."""
        self.server.communicate()

    def snakemake(self, *options: str, settings: dict[str, Any] | None = None) -> str:
        """Run Snakemake; return what it says."""
        (self.folder / "settings.yaml").write_text(yaml.safe_dump(settings or SETTINGS))
        said = self.folder / "said.txt"
        request = (str(self.folder), str(said), [*options, "--cores", "2", "--configfile", "settings.yaml"])
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        code = int(self.server.stdout.readline())
        assert code == 0, said.read_text()
        return said.read_text()

    def make_outputs(self) -> Plan:
        """Make up every output as if all had run; return all jobs."""
        for line in self.snakemake("--summary").splitlines():
            path = line.split("\t")[0]
            if path.startswith("results/") and "\t" in line:
                is_folder = path.startswith(("results/forecasts/", "results/evaluated/"))
                file = self.folder / path / "content" if is_folder else self.folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(path)
        everything = self.plan("--forceall")
        self.snakemake("--touch", "--forceall", "--quiet", "all")
        return everything

    def plan(self, *options: str, settings: dict[str, Any] | None = None) -> Plan:
        """What would run now."""
        return read_plan(self.snakemake("--dry-run", *options, settings=settings))


def matching(jobs: Collection[str], patterns: set[str]) -> set[str]:
    """Jobs that one of the patterns matches; each pattern must match one."""
    found = {pattern: {job for job in jobs if fnmatchcase(job, pattern)} for pattern in patterns}
    idle = [pattern for pattern, matched in found.items() if not matched]
    assert not idle, f"no job is called {idle[0]}"
    return set().union(*found.values())


def changed(path: str, value: object) -> dict[str, Any]:
    """The settings with one more: ``path`` is dotted."""
    settings = json.loads(json.dumps(SETTINGS))
    section = settings
    *sections, name = path.split(".")
    for part in sections:
        section = section.setdefault(part, {})
    section[name] = value
    return settings
