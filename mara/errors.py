"""The one error that users cause: a bad setting, file, curve or command."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable


class InputError(Exception):
    """Says in one line which file and place is wrong and what would be right."""


UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG)
"""Errors of the file system that are no fault of the program."""


def exit_on_input_error(main: Callable[[], None]) -> None:
    """Run an entry point; an :class:`InputError`, or a full or read-only disk, becomes one line and exit code 2.

    An interrupt becomes the word for it and exit code 130.

    Names and contents of the user's files stand in such lines; signs of theirs that are no print are shown as ?.
    """
    try:
        main()
    except InputError as error:
        _say(str(error))
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        where = error.filename or "an output"
        _say(f"{where}: cannot be written ({os.strerror(error.errno)})")
        raise SystemExit(2) from None


def printable(text: str) -> str:
    """Return text of a user's file for a line of a terminal: a sign that is no print is shown as ?."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _say(line: str) -> None:
    print(f"error: {printable(line)}", file=sys.stderr)
