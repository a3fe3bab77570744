"""Write down what the results were made from: code, settings, versions, hardware."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path

import yaml

from mara.errors import exit_on_input_error
from mara.files import atomic_path
from mara.stages.arguments import stage_parser

PACKAGES = (
    "mara",
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "torch",
    "scikit-learn",
    "numba",
    "matplotlib",
    "pydantic",
    "snakemake",
)


def git(*command: str) -> str | None:
    """Output of a git command in the package's folder; None where there is no git or no repository."""
    try:
        done = subprocess.run(
            ["git", *command],
            cwd=Path(__file__).resolve().parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def main() -> None:
    """Write ``provenance.json`` and the whole settings as YAML."""
    parser = stage_parser(__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--settings-file", type=Path, required=True)
    arguments = parser.parse_args()
    settings = json.loads(arguments.settings)
    changed = git("status", "--porcelain")
    result = {
        "git_commit": git("rev-parse", "HEAD"),
        "git_dirty": None if changed is None else bool(changed),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor_cores": os.cpu_count(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "seeds": {**settings["study"]["seeds"], "train": settings["study"]["train_seeds"]},
        "settings_sha256": hashlib.sha256(arguments.settings.encode()).hexdigest(),
    }
    with atomic_path(arguments.output) as temporary:
        temporary.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    with atomic_path(arguments.settings_file) as temporary:
        temporary.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    exit_on_input_error(main)
