"""The parser of every command line of the package: a wrong word gives one line, not a page of usage."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from mara.errors import InputError

LONGEST = 400
"""Characters of a message; words of the user stand in it."""
PLAINER = {
    "invalid float value:": "expected a number, not",
    "invalid int value:": "expected a whole number, not",
    "expected one argument": "expected a value after it (after = if it begins with a dash)",
}
"""What argparse says, and what is said in its place."""
NEGATIVE = re.compile(r"-(\.?\d|inf|nan)")
"""Words that are values although they begin with a dash; argparse itself does not know -1e5 or -inf."""


class LineParser(argparse.ArgumentParser):
    """A parser whose errors are :class:`InputError` lines that name the option. Options are written in full."""

    def __init__(self, prog: str | None = None, **options: Any) -> None:
        super().__init__(prog=prog or _running_module(), allow_abbrev=False, **options)
        self._negative_number_matcher = NEGATIVE

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, but look at the options' names first: argparse would speak of a missing one instead."""
        words = list(sys.argv[1:] if args is None else args)
        self._check_options(words)
        return super().parse_known_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong and where the help is."""
        for said, plainer in PLAINER.items():
            message = message.replace(said, plainer)
        message = message if len(message) <= LONGEST else f"{message[:LONGEST]} ..."
        raise InputError(f"{self.prog}: {message}; see {self.prog} --help")

    def _check_options(self, words: Sequence[str]) -> None:
        """Refuse options that there are not, and those given twice of which the last would count."""
        known = self._option_string_actions
        seen: set[str] = set()
        for word in words:
            if word == "--":
                return
            name = word.partition("=")[0]
            if name in known:
                if name in seen and isinstance(known[name], argparse._StoreAction):
                    self.error(f"argument {name}: given twice; once is expected")
                seen.add(name)
                continue
            if not re.match(r"-.", word) or " " in word or NEGATIVE.match(word):
                continue
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            self.error(f"argument {name}: no such option; {hint}")


def _running_module() -> str | None:
    """How the module that runs was called; None where argparse knows better."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return f"python -m {spec.name}" if spec is not None and spec.name.startswith("mara.") else None
