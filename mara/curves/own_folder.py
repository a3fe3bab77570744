"""A folder of people's logs as groups of runs: what is found in it, and which run belongs to which group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from mara.curves.own_curves import FEWEST_POINTS
from mara.curves.readers.log import Log
from mara.curves.readers.read import find_logs, read_log
from mara.errors import InputError


def read_groups(
    folder: Path,
    paths: Iterable[Path],
    read: Callable[[Path], Log] = read_log,
    strict: bool = False,
) -> tuple[dict[str, list[Log]], list[str]]:
    """Read the logs at ``paths`` under ``folder``; return the runs by group, and why others were skipped.

    Raises:
        InputError: for the first log that cannot be used, if ``strict``; or if none can be.
    """
    groups: dict[str, list[Log]] = {}
    skipped: list[str] = []
    for path in paths:
        try:
            log = read(path)
            if len(log) < FEWEST_POINTS:
                raise InputError(f"{path}: {len(log)} points; a curve needs at least {FEWEST_POINTS}")
        except InputError as error:
            if strict:
                raise
            skipped.append(str(error))
            continue
        group, name = _place(path, folder)
        groups.setdefault(group, []).append(replace(log, name=name))
    if not groups and not skipped:
        raise InputError(f"{folder}: no log found in it (see the page on formats)")
    if not groups:
        raise InputError(f"{folder}: {len(skipped)} logs found, none of use ({skipped[0]})")
    return groups, skipped


def _place(path: Path, folder: Path) -> tuple[str, str]:
    """Group and name of a run: the first folder below ``folder``, and the rest of its path."""
    parts = path.relative_to(folder).with_suffix("" if path.is_file() else path.suffix).parts
    if len(parts) <= 1:
        return "all", parts[0] if parts else folder.resolve().name
    run = parts[:-1] if path.is_file() and len(parts) == 2 and _is_run_folder(path) else parts
    return ("all", run[0]) if len(run) == 1 else (run[0], "/".join(run[1:]))


def _is_run_folder(path: Path) -> bool:
    """Whether a log is the only one in its folder, so that the folder is a run."""
    return len(find_logs(path.parent)) == 1
