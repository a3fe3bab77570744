"""Every figure draws from the contracted tables, says its n, and repeats byte by byte."""

import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mara.errors import InputError
from mara.figures import style

FIGURES = sorted(
    p.stem for p in Path(style.__file__).parent.glob("*.py") if p.stem not in ("__init__", "style")
)


def arguments(name, tables):
    """The tables that a figure's ``draw`` asks for; the two training figures each have their own."""
    module = importlib.import_module(f"mara.figures.{name}")
    wanted = inspect.signature(module.draw).parameters
    return module, {p: tables[name] if p == "training" else tables[p] for p in wanted}


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_draws_with_units_on_its_axes_and_n_in_its_caption(name, tables):
    module, given = arguments(name, tables)
    before = {k: v.copy() if isinstance(v, pd.DataFrame) else v for k, v in given.items()}
    drawn = module.draw(**given)
    assert drawn.title
    assert drawn.alt
    assert "n = " in drawn.caption
    assert not [text for text in (drawn.title, drawn.caption, drawn.alt) if "nan" in text.lower().split()]
    visible = [a for a in drawn.figure.axes if a.get_visible() and a.axison]
    if name != "dag":
        assert any(a.get_xlabel() for a in visible)
    for key, value in before.items():
        if isinstance(value, pd.DataFrame):
            pd.testing.assert_frame_equal(given[key], value)


@pytest.mark.parametrize("name", [n for n in FIGURES if n != "dag"])
def test_tables_without_rows_are_refused_in_one_line(name, tables):
    module, given = arguments(name, tables)
    with pytest.raises(InputError, match="no row for"):
        module.draw(**{k: v.iloc[:0] for k, v in given.items()})


def test_the_same_table_gives_the_same_bytes(tables, tmp_path):
    module, given = arguments("completion_training", tables)
    for stem in ("a", "b"):
        style.save(module.draw(**given), tmp_path / stem)
    for suffix in (".svg", ".png", ".json"):
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_a_figure_is_one_command(tables, tmp_path):
    table = tmp_path / "completion.csv"
    tables["completion"].to_csv(table, index=False)
    command = [
        sys.executable,
        "-m",
        "mara.figures.completion_load",
        "--output",
        str(tmp_path / "out" / "load"),
    ]
    subprocess.run([*command, "--completion", str(table)], check=True)
    assert json.loads((tmp_path / "out" / "load.json").read_text())["title"].startswith("MARA stays ahead")
    table.write_text("suite,workload\na,b\n")
    broken = subprocess.run([*command, "--completion", str(table)], capture_output=True, text=True)
    assert broken.returncode == 2
    assert broken.stderr.count("\n") == 1
    assert "completion.csv" in broken.stderr


def test_only_svg_png_and_words_are_written(tables, tmp_path):
    module, given = arguments("runtime", tables)
    style.save(module.draw(**given), tmp_path / "runtime")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["runtime.json", "runtime.png", "runtime.svg"]


def test_titles_follow_the_numbers(tables):
    load = importlib.import_module("mara.figures.completion_load")
    worse = tables["completion"].assign(
        diff_low=lambda t: np.where((t["method"] == "mara") & (t["load"] > 1.4), -0.01, t["diff_low"])
    )
    assert load.draw(worse).title == "MARA stays ahead of LARA at 1.25× the load only"
    prediction = importlib.import_module("mara.figures.prediction_error")
    swapped = tables["prediction"].replace({"predictor": {"flow": "wls", "wls": "flow"}})
    assert "no better than WLS" in prediction.draw(swapped).title


def test_published_values_are_those_of_the_verdicts():
    from mara.evaluation import claims

    assert style.PUBLISHED == {"mara": claims.PUBLISHED_RATE, "lara": claims.PUBLISHED_REFERENCE_RATE}


def test_numbers_and_names_for_readers():
    assert style.points(-0.0854) == "−8.5"
    assert style.percent(0.6346) == "63.5 %"
    assert style.span([400, 100]) == "100 to 400"
    assert style.display_name("lara_tuned") == "LARA tuned"
    assert style.display_name("slope_calibrated_deadline") == "slope, calibrated + deadline"


def test_dag_layers_follow_the_longest_chain(tables):
    dag = importlib.import_module("mara.figures.dag")
    nodes, edges = dag.parse(tables["rulegraph"])
    depth = dag.layers(nodes, edges)
    assert all(depth[a] < depth[b] for a, b in edges)
    assert depth[6] == 0
    assert depth[3] == 4
    with pytest.raises(InputError, match="cycle"):
        dag.layers(nodes, [*edges, (0, 6)])
    with pytest.raises(InputError, match="no node"):
        dag.parse("nothing here")


def test_gantt_merges_slots_but_not_different_tasks(tables):
    gantt = importlib.import_module("mara.figures.gantt")
    events = pd.DataFrame({"method": "lara", "slot": [0, 1, 2, 3, 5], "node": 0, "task": [7, 7, 8, 8, 8]})
    tasks = pd.DataFrame(
        {
            "method": "lara",
            "task": [7, 8],
            "family": "rl",
            "arrival": 0,
            "deadline": [4, 9],
            "completed": [True, False],
            "finish": [1, -1],
        }
    )
    axis = gantt.draw(events, tasks).figure.axes[0]
    bars = axis.collections[0].get_paths()
    extents = sorted((p.get_extents().x0, p.get_extents().x1) for p in bars)
    assert extents == [(0, 2), (2, 4), (5, 6)]


def test_long_episodes_are_cut_to_their_middle_and_the_caption_says_so(tables):
    gantt = importlib.import_module("mara.figures.gantt")
    events = pd.DataFrame(
        {"method": "mara", "slot": np.arange(100, 500), "node": 0, "task": np.arange(400) // 10}
    )
    tasks = tables["tasks"][tables["tasks"]["method"] == "mara"]
    drawn = gantt.draw(events, tasks)
    assert drawn.figure.axes[-1].get_xlim() == (225, 375)
    assert "Slots 225 to 375" in drawn.caption
