# Checked settings, code stamps and the names that the rules share.

import csv
import json
import os
import sys
from pathlib import Path

from mara.code_stamps import stamp_data, stamp_modules
from mara.config.experiment import SettingsError, load_experiment
from mara.config.methods import (
    DEADLINE,
    MAT_VARIANTS,
    METHODS,
    PREDICTORS,
    predictor_row,
)


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

# The interpreter that runs Snakemake runs the stages, whether or not its environment is activated.
PYTHON = sys.executable

# Pools of task templates: family, split, part of the training split, seed.
POOLS = {
    "training": ("supervised", "train", "allocator", STUDY.seeds.workload),
    "calibration": ("supervised", "calibration", None, STUDY.seeds.workload),
    "validation": ("supervised", "validation", None, STUDY.seeds.workload),
    "supervised": ("supervised", "test", None, STUDY.seeds.test),
    **{family: (family, "test", None, STUDY.seeds.test) for family in ("vision", "rl")},
}
EPISODES = {
    "training": STUDY.episodes.training,
    "validation": STUDY.episodes.validation,
    **{pool: STUDY.episodes.test for pool in ("supervised", "vision", "rl")},
}


wildcard_constraints:
    pool="|".join(POOLS),
    load=r"\d+(\.\d+)?",
    seed=r"\d+",
    method="|".join(METHODS),
    predictor="[a-z_]+",
    scenario="[a-z][a-z0-9_]*",


def code(*modules):
    """Stamp of modules and of all that they import: the rule runs again when one of them changes."""
    return stamp_modules(tuple(f"mara.{module}" for module in modules), Path("results/.code"))


CORPUS = stamp_data("curves/data/*.parquet", Path("results/.code"))


def as_json(section):
    """A settings section as the JSON that a stage takes."""
    return json.dumps(section.model_dump(mode="json"), sort_keys=True)


def scenario_arrivals(name):
    """Arrival settings of a scenario."""
    scenario = STUDY.scenarios.get(name)
    return scenario.arrivals if scenario and scenario.arrivals else SETTINGS.arrivals


def scenario_cluster(name):
    """Cluster settings of a scenario."""
    scenario = STUDY.scenarios.get(name)
    return scenario.cluster if scenario and scenario.cluster else SETTINGS.cluster


def load_name(load):
    """The load as it stands in paths: 1, 1.25, 2."""
    return f"{load:g}"


def method_weights(method):
    """Weights of a method's allocator before any tuning, as they stand in the settings."""
    section = {
        "srpt": "estimates",
        "least_laxity": "estimates",
        "moore_hodgson": "estimates",
    }.get(METHODS[method].allocator, METHODS[method].allocator)
    weights = getattr(SETTINGS.allocators, section, None)
    return weights.model_dump(mode="json") if weights else {}


def predictor_settings(predictor):
    """The JSON of the settings' sections that a predictor reads."""
    chosen = {}
    for place in predictor_row(predictor).settings:
        section, branch, keys = SETTINGS, chosen, place.split(".")
        for key in keys[:-1]:
            section, branch = getattr(section, key), branch.setdefault(key, {})
        branch[keys[-1]] = getattr(section, keys[-1]).model_dump(mode="json")
    return json.dumps(chosen, sort_keys=True)


def mat_settings(method):
    """The transformer's settings for a method: those of the run, changed where the method is an ablation."""
    _, changes = MAT_VARIANTS.get(method, ("", {}))
    mat = SETTINGS.mat.model_dump(mode="json") | changes
    clusters = [scenario_cluster(scenario).model_dump(mode="json") for scenario, _ in COURSES]
    return json.dumps({"mat": mat, "clusters": clusters}, sort_keys=True)


# Predictors with a network, with and without the deadline as an input.
TRAINED_PREDICTORS = [
    name + suffix for name, row in PREDICTORS.items() if row.logs_training for suffix in ("", DEADLINE)
]


def warn_of_too_many_cores(cores):
    """Say once that more jobs than cores do not help."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if cores and available and cores > available:
        print(
            f"note: --cores {cores}, but this machine has {available}: jobs share them; nothing is gained.",
            file=sys.stderr,
        )


def print_claims(claims, report):
    """Print the verdicts and where to read on."""
    if not claims.is_file():
        return
    with claims.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    print(f"\n{'claim':<7}{'published':<34}{'measured':>10}  {'95 % interval':<20}holds")
    for row in rows:
        interval = "[{:.4f}, {:.4f}]".format(float(row["ci_low"] or "nan"), float(row["ci_high"] or "nan"))
        measured = float(row["measured"] or "nan")
        print(f"{row['claim']:<7}{row['published'][:32]:<34}{measured:>10.4f}  {interval:<20}{row['holds']}")
    if report.is_file():
        print(f"\nReport: {report.resolve()}")
