"""Make a held-out family of the reader's own logs: a checked file of curves under the family's name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from mara.command_line import LineParser
from mara.curves.corpus import Corpus, read_curves, write_curves
from mara.curves.own_curves import own_corpus
from mara.curves.own_folder import read_groups
from mara.curves.readers.read import find_logs
from mara.errors import InputError, exit_on_input_error


def with_siblings(corpus: Corpus, family: str) -> Corpus:
    """Put runs that are alone in their group into one group of their own, so that all have a reference run.

    Raises:
        InputError: there is one curve only, or none.
    """
    if len(corpus) < 2:
        raise InputError(
            f"{family}: {len(corpus)} curves; give at least two, targets come from another run of a group"
        )
    _, code, size = np.unique(corpus.group, return_inverse=True, return_counts=True)
    alone = size[code] == 1
    largest = corpus.group[code == np.argmax(size)][0]
    group = f"{family}/single runs" if alone.sum() > 1 else largest
    return replace(corpus, group=np.where(alone, group, corpus.group))


def read_source(source: Path, family: str) -> Corpus:
    """Read a corpus file, or the logs in a folder, as curves of ``family``."""
    if not source.is_dir():
        return read_curves(source, family)
    groups, skipped = read_groups(source, find_logs(source))
    for line in skipped:
        print(f"skipped: {line}")
    return own_corpus(groups, family)


def main() -> None:
    """Write the family's curves (Parquet), all in the test split."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--family", required=True)
    parser.add_argument("--source", type=Path, required=True, help="file of curves, or folder of logs")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    corpus = read_source(arguments.source, arguments.family)
    write_curves(with_siblings(corpus, arguments.family), arguments.output)


if __name__ == "__main__":
    exit_on_input_error(main)
