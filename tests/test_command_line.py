"""Every command line of the package answers a wrong option by one line that names it, and exit code 2."""

import runpy
from pathlib import Path

import pytest

from mara.cli.main import COMMANDS, dispatch
from mara.command_line import LineParser
from mara.errors import InputError

PACKAGE = Path(__file__).parents[1] / "mara"
FRONT_DOORS = ("__main__.py", "main.py")
"""They take a command's name first."""


def runnable_modules() -> list[str]:
    paths = [path for path in PACKAGE.rglob("*.py") if path.name not in FRONT_DOORS]
    return [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in sorted(paths)
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    ]


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("module", runnable_modules())
def test_a_module_that_runs_names_the_wrong_option(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [module, "--wrongly", "1"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module(module, run_name="__main__")
    said = capsys.readouterr()
    assert caught.value.code == 2
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert "argument --wrongly: no such option; " in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_names_the_wrong_option(name: str) -> None:
    with pytest.raises(InputError, match="argument --wrongly: no such option; ") as caught:
        dispatch([name, "somewhere", "--wrongly", "1"])
    assert "\n" not in str(caught.value)
    assert f"see mara {name} --help" in str(caught.value)


def test_there_is_no_other_kind_of_parser() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.name != "command_line.py":
            assert "ArgumentParser(" not in path.read_text(encoding="utf-8"), path


@pytest.fixture
def parser() -> LineParser:
    parser = LineParser(prog="mara try")
    parser.add_argument("log")
    parser.add_argument("--target", type=float, required=True)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--kind", choices=("a", "b"))
    return parser


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x", "--targt", "1"], "argument --targt: no such option; did you mean --target?"),
        (["x", "--targ=1"], "argument --targ: no such option; did you mean --target?"),
        (["x", "-q"], "argument -q: no such option; there are -h, --help, --target, --nodes, --kind"),
        (["x", "--target"], "argument --target: expected a value after it"),
        (["x", "--target", "--nodes", "1"], "argument --target: expected a value after it"),
        (["x", "--target", "much"], "argument --target: expected a number, not 'much'"),
        (["x", "--target", "1", "--nodes", "1.5"], "argument --nodes: expected a whole number, not '1.5'"),
        (["x", "--target", "1", "--kind", "c"], "argument --kind: invalid choice: 'c'"),
        (["x", "y", "--target", "1"], "unrecognized arguments: y"),
        (["x"], "required: --target"),
        (["x", "--target", "1", "--target=2"], "argument --target: given twice"),
        (["x", "--target", "9" * 9000 + "x"], r"99 \.\.\.; see mara try --help"),
    ],
)
def test_what_is_wrong_is_named(words: list[str], message: str, parser: LineParser) -> None:
    with pytest.raises(InputError, match=message.replace("?", r"\?")) as caught:
        parser.parse_args(words)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("value", ["-1", "-.5", "-1e5", "-2.5e-3", "-inf"])
def test_numbers_below_zero_are_values(value: str, parser: LineParser) -> None:
    for words in (["--target", value], [f"--target={value}"]):
        assert parser.parse_args(["x", *words]).target == float(value)


def test_what_stands_after_two_dashes_is_no_option(parser: LineParser) -> None:
    assert parser.parse_args(["--target", "1", "--", "--log"]).log == "--log"
