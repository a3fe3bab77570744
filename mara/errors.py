"""The one error that users cause: a bad setting, file, curve or command."""

from __future__ import annotations

import sys
from collections.abc import Callable


class InputError(Exception):
    """Says in one line which file and place is wrong and what would be right."""


def exit_on_input_error(main: Callable[[], None]) -> None:
    """Run an entry point; an :class:`InputError` becomes one line on stderr and exit code 2."""
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
