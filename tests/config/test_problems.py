"""Wrong settings are all reported at once, one readable line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mara.config.experiment import default_yaml, json_schema, load_experiment, settings_page
from mara.config.problems import SettingsError

ROOT = Path(__file__).parents[2]


def problems(settings: dict[str, Any], files: list[Path] | None = None) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load_experiment(settings, files or [])
    return caught.value.problems


def test_an_unknown_key_gets_a_suggestion() -> None:
    assert problems({"study": {"train_seed": [1]}}) == [
        "study.train_seed: unknown setting; did you mean 'train_seeds'?"
    ]


def test_the_suggestion_reaches_into_optional_and_named_sections() -> None:
    wrong = {"mat": {"lookahead": {"horizn": 3}}, "study": {"scenarios": {"mine": {"slak": [1, 2]}}}}
    lines = problems(wrong)
    assert "mat.lookahead.horizn: unknown setting; did you mean 'horizon'?" in lines
    assert "study.scenarios.mine.slak: unknown setting; did you mean 'slack'?" in lines


def test_an_unknown_key_without_a_near_one_lists_what_is_known() -> None:
    (line,) = problems({"evaluation": {"xyzzy": 1}})
    assert line.startswith("evaluation.xyzzy: unknown setting; known here: ")
    assert "resamples" in line


def test_three_faults_give_three_lines_with_their_places() -> None:
    wrong = {"study": {"loads": [1.0, -1.25], "train_seeds": []}, "cluster": {"nodes": "many"}}
    lines = problems(wrong)
    assert len(lines) == 3
    assert any(line.startswith("study.loads.1: ") and "-1.25" in line for line in lines)
    assert any(line.startswith("study.train_seeds: ") for line in lines)
    assert any(line.startswith("cluster.nodes: ") and "'many'" in line for line in lines)
    assert all("\n" not in line for line in lines)


def test_the_file_that_holds_the_fault_is_named(tmp_path: Path) -> None:
    base, overlay = tmp_path / "base.yaml", tmp_path / "overlay.yaml"
    base.write_text("cluster: {nodes: 8}\n")
    overlay.write_text("cluster: {nodes: 0}\n")
    (line,) = problems({"cluster": {"nodes": 0}}, [base, overlay])
    assert line.startswith(f"{overlay}: cluster.nodes: ")


@pytest.mark.parametrize(
    ("study", "said"),
    [
        ({"loads": [1.25]}, "must contain 1.0"),
        ({"methods": ["edf", "mara"]}, "must contain lara"),
        ({"methods": ["lara", "mara", "lora"]}, "unknown name 'lora'"),
        ({"predictors": ["wls", "wls"]}, "names a value twice"),
        (
            {
                "scenarios": {"standard": {}},
                "training_scenarios": [],
                "stress_scenarios": [],
                "fairness": {"scenarios": []},
            },
            "'standard'",
        ),
    ],
)
def test_names_must_fit_together(study: dict[str, Any], said: str) -> None:
    (line,) = problems({"study": study})
    assert said in line


def test_default_file_and_schema_are_in_step_with_the_models() -> None:
    assert (ROOT / "config/config.yaml").read_text() == default_yaml()
    assert (ROOT / "workflow/schemas/config.schema.json").read_text() == json_schema()
    assert (ROOT / "docs/settings.md").read_text() == settings_page()
