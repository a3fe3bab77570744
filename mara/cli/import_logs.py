"""``mara import``: a folder of logs becomes curves that the study can use as a family of tasks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mara.cli.arguments import check_output, command_parser, print_json
from mara.cli.logs import add_log_options, read
from mara.config.study import TAKEN
from mara.curves.readers.read import find_logs
from mara.errors import InputError, printable

DESCRIPTION = """\
Find the logs under FOLDER, read one metric of each, and write the curves into one Parquet file for the study.
Runs in one sub-folder of FOLDER are a group: targets for a run are set by how another run of its group went,
so give each group two runs or more. Logs directly in FOLDER make one group. Folders of one run each are told
by a log of a usual name in them (metrics.csv, event files, ...)."""
EXAMPLE = """\
mara import runs --family mine --out mine.parquet --metric val_loss"""


def main(words: list[str]) -> None:
    """Find, read, write.

    Raises:
        InputError: for the first log that cannot be read, with ``--strict``; or if none can be.
    """
    parser = command_parser("import", DESCRIPTION, EXAMPLE)
    parser.add_argument("folder", type=Path, help="folder of logs")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the Parquet file to write")
    parser.add_argument("--family", default="own", help="what to call these curves in tables and figures")
    add_log_options(parser)
    parser.add_argument("--strict", action="store_true", help="stop at the first log that cannot be used")
    arguments = parser.parse_args(words)
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", arguments.family):
        raise InputError(f"--family {arguments.family!r}: expected small letters, digits and underscores")
    if arguments.family in TAKEN:
        raise InputError(f"--family {arguments.family}: the study has one of this name; choose another")
    check_output("--out", arguments.out, (".parquet",))

    from tqdm import tqdm

    from mara.curves.corpus import write_curves
    from mara.curves.own_curves import own_corpus
    from mara.curves.own_folder import read_groups

    paths = tqdm(find_logs(arguments.folder), desc="read", unit="log", disable=None, file=sys.stderr)
    groups, skipped = read_groups(
        arguments.folder, paths, lambda path: read(arguments, path), arguments.strict
    )
    corpus = own_corpus(groups, arguments.family, arguments.best)
    write_curves(corpus, arguments.out)
    alone = sorted(group for group, logs in groups.items() if len(logs) == 1)
    if arguments.json:
        counts = {group: len(logs) for group, logs in groups.items()}
        print_json({"out": str(arguments.out), "curves": len(corpus), "groups": counts, "skipped": skipped})
        return
    for line in skipped:
        print(f"skipped: {printable(line)}", file=sys.stderr)
    print(f"{arguments.out}: {len(corpus)} curves in {len(groups)} groups, {len(skipped)} logs skipped")
    if alone:
        print(f"note: only one run in {len(alone)} groups ({', '.join(alone[:5])})")
