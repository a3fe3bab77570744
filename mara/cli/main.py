"""The ``mara`` command: finds the sub-command by name and imports only that one, so that it starts fast.

To add a command, write a module with ``main(words: list[str]) -> None`` that parses ``words`` with
:func:`mara.cli.arguments.command_parser`, and add a line to ``COMMANDS``.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import warnings
from collections.abc import Sequence

from mara.errors import InputError, exit_on_input_error

COMMANDS: dict[str, tuple[str, str]] = {
    "predict": ("mara.cli.predict", "how much more training one log needs to reach a target"),
    "advise": ("mara.cli.advise", "what each node should train next, from the logs of running jobs"),
    "import": ("mara.cli.import_logs", "turn a folder of logs into curves for the study"),
    "simulate": ("mara.cli.simulate", "compare allocators on the jobs of a cluster trace"),
    "compare": ("mara.cli.compare", "what changed between two runs of the study"),
    "record": ("mara.cli.record", "record the study's own training curves again"),
}
"""Name -> module that holds ``main``, and the line of help."""

USAGE = """\
usage: mara COMMAND ...

{commands}

`mara COMMAND --help` explains a command with an example. Bad input gives one line on stderr and exit code 2.
"""


def usage() -> str:
    """The text of ``mara --help``."""
    return USAGE.format(commands="\n".join(f"  {name:<10} {line}" for name, (_, line) in COMMANDS.items()))


def dispatch(words: Sequence[str]) -> None:
    """Run the command that the first word names with the words after it.

    Raises:
        InputError: for no command or one that does not exist, and whatever the command raises.
    """
    if not words:
        raise InputError(f"mara: which command? one of {', '.join(COMMANDS)}; see mara --help")
    name, *rest = words
    if name in ("-h", "--help", "help"):
        print(usage(), end="")
    elif name == "--version":
        from importlib.metadata import version

        print(f"mara {version('mara')}")
    elif name in COMMANDS:
        importlib.import_module(COMMANDS[name][0]).main(rest)
    else:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
        raise InputError(f"mara: no command {name!r}; {hint}")


def _run(words: Sequence[str]) -> None:
    """Dispatch; what the file system refuses is an error of the input too."""
    try:
        dispatch(words)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{error.filename or 'file'}: {error.strerror or error}") from None


def main() -> None:
    """The entry point.

    NumPy's warnings of numbers too large for it are no words for users: what comes of them is said.
    """
    warnings.simplefilter("ignore", RuntimeWarning)
    try:
        exit_on_input_error(lambda: _run(sys.argv[1:]))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
