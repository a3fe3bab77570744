"""The whole experiment's settings: the sections of all parts, and how they are read.

The full run's values are the models' defaults. ``python -m mara.config.experiment`` writes
``config/config.yaml``, the JSON schema for editors and ``docs/settings.md`` from them; a test holds the files
in step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from mara.command_line import LineParser
from mara.config.allocators import AllocatorSettings
from mara.config.base import Section
from mara.config.cluster import ClusterSettings
from mara.config.evaluation import EvaluationSettings
from mara.config.flow import DirectSettings, DistilledSettings, FlowSettings
from mara.config.mat import MatSettings
from mara.config.predictors import PredictorSettings
from mara.config.problems import SettingsError, describe
from mara.config.study import StudySettings
from mara.config.workload import ArrivalSettings, TaskSettings
from mara.errors import exit_on_input_error
from mara.files import atomic_path

LONGEST_DEFAULT = 60
"""Characters of a default that the page of settings shows."""


class Experiment(Section):
    """Settings of MARA's experiment."""

    study: StudySettings = StudySettings()
    """What is compared with what, on which episodes, with which seeds."""
    tasks: TaskSettings = TaskSettings()
    """Targets and windows of the tasks."""
    arrivals: ArrivalSettings = ArrivalSettings()
    """Arrival process and the spans of an episode."""
    cluster: ClusterSettings = ClusterSettings()
    """The nodes."""
    predictors: PredictorSettings = PredictorSettings()
    """Predictors without a network."""
    flow: FlowSettings = FlowSettings()
    """The flow-matching predictor."""
    distilled: DistilledSettings = DistilledSettings()
    """The one-pass head that imitates the flow."""
    direct: DirectSettings = DirectSettings()
    """The one-pass head beside it, its control."""
    allocators: AllocatorSettings = AllocatorSettings()
    """Allocators without a network, and the budget of their tuning."""
    mat: MatSettings = MatSettings()
    """The multi-agent transformer and its training."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """Intervals and verdicts."""


def load_experiment(settings: Mapping[str, Any], files: Iterable[Path] = ()) -> Experiment:
    """Validate merged settings; ``files`` are where they came from, later ones overriding earlier ones.

    Raises:
        SettingsError: with one line for each thing that is wrong.
    """
    try:
        return Experiment.model_validate(settings)
    except ValidationError as error:
        raise SettingsError(describe(error, Experiment, files)) from None


def _comment(field: FieldInfo, indent: str) -> list[str]:
    return [f"{indent}# {line}" for line in (field.description or "").splitlines()]


def _yaml_lines(model: BaseModel, indent: str = "") -> list[str]:
    """Every setting with its default, under its description."""
    lines = []
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        lines += _comment(field, indent)
        if isinstance(value, BaseModel):
            lines += [f"{indent}{name}:", *_yaml_lines(value, indent + "  ")]
        else:
            plain = json.loads(json.dumps(model.model_dump(mode="json")[name]))
            text = yaml.safe_dump(plain, default_flow_style=True, width=10_000).removesuffix("...\n").strip()
            lines.append(f"{indent}{name}: {text}")
    return lines


def default_yaml() -> str:
    """Return the text of ``config/config.yaml``."""
    head = [
        "# Settings of the full run, written by `python -m mara.config.experiment` from mara/config;",
        "# to change a run, edit here or give `--configfile FILE` with only the settings that differ.",
        "# yaml-language-server: $schema=../workflow/schemas/config.schema.json",
    ]
    return "\n".join([*head, *_yaml_lines(Experiment())]) + "\n"


def json_schema() -> str:
    """Return the text of ``workflow/schemas/config.schema.json``."""
    return json.dumps(Experiment.model_json_schema(), indent=2) + "\n"


def _sections(model: BaseModel, place: str) -> list[str]:
    """A heading and a table for a section and, after it, for the sections inside."""
    inside: list[str] = []
    rows: list[str] = []
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        text = " ".join((field.description or "").split()).replace("|", "\\|")
        if isinstance(value, BaseModel):
            inside += _sections(value, f"{place}.{name}".lstrip("."))
        else:
            plain = json.dumps(model.model_dump(mode="json")[name])
            shown = plain if len(plain) <= LONGEST_DEFAULT else "see config.yaml"
            rows.append(f"| `{name}` | `{shown}` | {text} |")
    about = " ".join((type(model).__doc__ or "").split())
    head = ["", f"## {place}", "", about, "", "| setting | default | meaning |", "|---|---|---|"]
    return ([*head, *rows] if rows else []) + inside


def settings_page() -> str:
    """Return the text of ``docs/settings.md``."""
    head = [
        "# Settings",
        "",
        "Written by `python -m mara.config.experiment` from the models in `mara/config`; how to change settings",
        "for a run is told in [config/README.md](../config/README.md). Names are written with dots: `study.loads`",
        "is the setting `loads` under `study:`.",
    ]
    return "\n".join([*head, *_sections(Experiment(), "")]) + "\n"


def main() -> None:
    """Write the default settings, their schema and their page below the working folder."""
    LineParser(description=main.__doc__).parse_args()
    for path, text in (
        ("config/config.yaml", default_yaml()),
        ("workflow/schemas/config.schema.json", json_schema()),
        ("docs/settings.md", settings_page()),
    ):
        with atomic_path(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    exit_on_input_error(main)
