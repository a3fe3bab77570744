"""Kill a small run again and again, resume it, and compare its files with those of an undisturbed run.

``python -m tests.workflow.kill_and_resume [--kills 10] [--seed 1] [--settings FILE] [TARGET ...]`` takes its moments
and signals from the seed; with no kills it compares two undisturbed runs. Between kills nothing is done by hand but
``--unlock`` after a SIGKILL.

All files count byte for byte but logs, benchmarks, the table of run times, provenance, what binds them (report,
summary, figures of run times), what forecasts cost, and the half-written temporary files that a SIGKILL leaves
behind.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.workflow.project import ROOT, copy_sources, hear_ctrl_c

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
TINY: dict[str, Any] = {
    "study": {
        "episodes": {"training": 4, "tuning": 4, "calibration": 4, "validation": 2, "test": 2, "bound": 1},
        "predictors": ["wls", "flow"],
    },
    "tasks": {"templates": 30},
    "flow": {
        "examples": {"examples": 1000, "synthetic_curves": 20, "trials": 50},
        "training": {"steps": 60, "batch": 64, "checkpoint_every": 15},
        "hidden": 32,
        "width": 32,
        "paths": 4,
    },
}
TARGETS = (
    "results/predictors/flow/model",
    "results/forecasts/wls/validation",
    "results/tables/corpus.csv",
)
TIMED = ("logs", "benchmarks", ".code", "provenance.json", "report.html", "summary.md")
TIMED_NAMES = ("runtime", "prediction_cost")


def fingerprints(results: Path) -> dict[str, str]:
    """Hash of every file that must not depend on how often a run was interrupted, by its place."""
    found = {}
    for path in sorted(p for p in results.rglob("*") if p.is_file()):
        place = path.relative_to(results)
        timed = place.parts[0] in TIMED or place.stem in TIMED_NAMES or ".cost" in path.suffixes
        if not timed and ".part" not in path.suffixes:
            found[str(place)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


class Run:
    """A copy of the project that is run to the end, however often it is stopped."""

    def __init__(self, folder: Path, settings: dict[str, Any], targets: Sequence[str], source: Path) -> None:
        self.folder, self.targets = copy_sources(folder, source), targets
        (folder / "settings.yaml").write_text(yaml.safe_dump(settings))

    def start(self, *options: str) -> subprocess.Popen[str]:
        """Start Snakemake, in a process group of its own as a terminal does."""
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", "settings.yaml"]
        return subprocess.Popen(
            [*command, *options, "--", *self.targets],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=hear_ctrl_c,
        )

    def finish(self, *options: str) -> str:
        """Run to the end; return what was said.

        Raises:
            AssertionError: it failed.
        """
        process = self.start(*options)
        said = process.communicate()[0]
        assert process.returncode == 0, said
        return said

    def stop_after(self, seconds: float, how: signal.Signals) -> bool:
        """Start, stop after so long; return whether it was still running then.

        SIGINT and SIGKILL go to Snakemake and its jobs, as Ctrl-C and a power cut do; SIGTERM to Snakemake only.
        """
        process = self.start()
        end = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        running = process.poll() is None
        if running and how == signal.SIGTERM:
            process.terminate()
        elif running:
            subprocess.run(["kill", f"-{how.name.removeprefix('SIG')}", "--", f"-{process.pid}"], check=True)
        said = process.communicate()[0]
        if not running:
            assert process.returncode == 0, said
        if running and how == signal.SIGKILL:
            self.finish("--unlock")
        return running


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Places at which two runs' files differ."""
    return sorted(place for place in one.keys() | other.keys() if one.get(place) != other.get(place))


def main() -> None:
    """Compare an undisturbed run with ones that are killed again and again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settings", type=Path, help="instead of those of a tiny run")
    parser.add_argument("targets", nargs="*", default=TARGETS)
    arguments = parser.parse_args()
    settings = yaml.safe_load(arguments.settings.read_text()) if arguments.settings else TINY
    moments = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        undisturbed = Run(Path(folder) / "undisturbed", settings, arguments.targets, ROOT)
        started = time.monotonic()
        undisturbed.finish()
        took = time.monotonic() - started
        expected = fingerprints(undisturbed.folder / "results")
        print(f"undisturbed: {took:.0f} s, {len(expected)} files", flush=True)
        kills, rounds = 0, 0
        while kills < arguments.kills or rounds == 0:
            rounds += 1
            again = Run(Path(folder) / f"again{rounds}", settings, arguments.targets, undisturbed.folder)
            running = kills < arguments.kills
            while running and kills < arguments.kills:
                how, after = SIGNALS[kills % len(SIGNALS)], moments.uniform(0.1, 0.6) * took
                running = again.stop_after(after, how)
                if running:
                    kills += 1
                    print(f"{how.name} after {after:.1f} s", flush=True)
            again.finish()
            different = differences(expected, fingerprints(again.folder / "results"))
            print(
                f"ended: {len(different)} of {len(expected)} files differ", *different, sep="\n", flush=True
            )
            if different:
                raise SystemExit(1)


if __name__ == "__main__":
    main()
