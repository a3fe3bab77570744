# Checked settings, code stamps and the names that the rules share.

import csv
import json
import os
import shlex
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

from mara.code_stamps import PACKAGE, Stamps
from mara.config.evaluation import SUITE_TABLES
from mara.config.experiment import SettingsError, load_experiment
from mara.config.methods import (
    DEADLINE,
    FAIR_STRENGTHS,
    FEWER_PATHS,
    FEWER_RUNS,
    MAT_VARIANTS,
    METHODS,
    PREDICTORS,
    predictor_row,
)
from mara.curves.recorders import RECORDERS


def settings_files():
    """The files that the settings came from; later ones override earlier ones."""
    return [Path(file) for file in reversed(dict.fromkeys(map(str, workflow.configfiles)))]


try:
    SETTINGS = load_experiment(config, settings_files())
except SettingsError as error:
    for problem in error.problems:
        print(f"error: {problem}", file=sys.stderr)
    raise SystemExit(2)

STUDY = SETTINGS.study

# Sets are pickled in the order of hashes: with a fixed seed, models are the same bytes in every run.
# `python` in the rules is the interpreter that runs Snakemake, whether or not its environment is activated; in
# an environment that Snakemake made, the package is taken from here.
shell.prefix(
    f'set -euo pipefail; export PYTHONHASHSEED=0 PATH="{Path(sys.executable).parent}:$PATH" '
    f'PYTHONPATH="{PACKAGE.parent}${{{{PYTHONPATH:+:$PYTHONPATH}}}}"; '
)

# Pools of task templates: family, split, part of the training split, seed.
POOLS = {
    "training": ("supervised", "train", "allocator", STUDY.seeds.workload),
    "calibration": ("supervised", "calibration", None, STUDY.seeds.workload),
    "validation": ("supervised", "validation", None, STUDY.seeds.workload),
    "supervised": ("supervised", "test", None, STUDY.seeds.test),
    "noisy": ("supervised", "test", None, STUDY.seeds.test),
    "mixed": (None, "test", None, STUDY.seeds.test),
    **{family: (family, "test", None, STUDY.seeds.test) for family in ("vision", "rl", *STUDY.own_families)},
}
MIXED = ("supervised", "vision", "rl")


wildcard_constraints:
    pool="|".join(POOLS),
    load=r"\d+(\.\d+)?",
    seed=r"\d+",
    method="|".join(METHODS),
    predictor=f"({'|'.join(PREDICTORS)})({DEADLINE})?|{'|'.join((*FEWER_RUNS, *FEWER_PATHS))}",
    scenario="[a-z][a-z0-9_]*",


@contextmanager
def results_written():
    """Say in one line that the results' folder cannot be written."""
    try:
        yield
    except OSError as error:
        print(
            f"error: {Path('results').resolve()}: cannot be written ({error.strerror}); make room, or give another "
            "folder with --directory",
            file=sys.stderr,
        )
        raise SystemExit(2)


with results_written():
    STAMPS = Stamps(Path("results/.code"))


def code(*modules):
    """Stamp of modules and of all that they import: the rule runs again when one of them changes."""
    with results_written():
        return STAMPS.modules(*(f"mara.{module}" for module in modules))


def code_by(choose, modules):
    """Input function that picks one of several stamps by `choose(wildcards)`.

    All are written now: Snakemake lists the folder before it calls input functions.
    """
    stamps = {name: code(*of_name) for name, of_name in modules.items()}
    return lambda wildcards: stamps[choose(wildcards)]


def own_sources(family):
    """The files that an own family is made of."""
    source = STUDY.own_families[family]
    return sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]


for family in STUDY.own_families:
    if not all(path.is_file() for path in own_sources(family) or [Path()]):
        print(
            f"error: study.own_families.{family}: {STUDY.own_families[family]}: no such file, or an empty folder",
            file=sys.stderr,
        )
        raise SystemExit(2)

CORPUS = STAMPS.data("curves/data/*.parquet")


def pool_curves(pool):
    """File with the curves of a pool as predictors see them: the recorded corpus, or one of its own."""
    if pool == "noisy":
        return "results/curves/noisy.parquet"
    return f"results/own/{pool}.parquet" if pool in STUDY.own_families else CORPUS


def curves_option(pool):
    """The same as a command-line option."""
    return f"--curves {pool_curves(pool)}" if pool_curves(pool) != CORPUS else ""


def task_curves(pool):
    """The pool whose curves targets and demands are taken from: noise is for predictors only."""
    return "supervised" if pool == "noisy" else pool


def task_settings(pool):
    """How the tasks of a pool are set."""
    noisy = pool == "noisy" and STUDY.noisy_losses
    return as_json(
        SETTINGS.tasks.model_copy(update={"templates": STUDY.noisy_losses.templates} if noisy else {})
    )


OWN_CURVES = [pool_curves(family) for family in STUDY.own_families]
OWN_OPTIONS = " ".join(f"--own {family} {pool_curves(family)}" for family in STUDY.own_families)


def as_json(section):
    """A settings section as the JSON that a stage takes."""
    return json.dumps(section.model_dump(mode="json"), sort_keys=True)
