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
    """Run an entry point; an :class:`InputError`, or a full or read-only disk, becomes one line and exit code 2."""
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        where = error.filename or "an output"
        print(f"error: {where}: cannot be written ({os.strerror(error.errno)})", file=sys.stderr)
        raise SystemExit(2) from None
