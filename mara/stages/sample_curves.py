"""Pick recorded curves of every family to look at, and count the corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mara.command_line import LineParser
from mara.curves.corpus import concatenate, load_corpus, read_curves
from mara.errors import exit_on_input_error
from mara.files import atomic_path
from mara.stages.arguments import generator_for

CURVES_PER_FAMILY = 12


def main() -> None:
    """Write ``sample_curves.csv`` and the counts by family and split, ``corpus.csv``."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--own", nargs=2, action="append", default=[], metavar=("FAMILY", "FILE"))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--curves", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    arguments = parser.parse_args()
    own = (read_curves(Path(path), family) for family, path in arguments.own)
    corpus = concatenate([load_corpus(), *own])
    parts = []
    for family in np.unique(corpus.family):
        rows = np.flatnonzero(corpus.family == family)
        rng = generator_for(arguments.seed, "sample curves", str(family))
        for row in np.sort(rng.choice(rows, min(CURVES_PER_FAMILY, len(rows)), replace=False)):
            units = np.arange(corpus.loss.shape[1])
            part = {"family": family, "curve": corpus.id[row], "unit": units, "loss": corpus.loss[row]}
            parts.append(pd.DataFrame(part).dropna())
    listed = pd.DataFrame(
        {
            "family": corpus.family,
            "split": corpus.split,
            "dataset": corpus.dataset,
            "group": corpus.group,
            "diverged": corpus.diverged_at < corpus.loss.shape[1],
        }
    )
    counts = listed.groupby(["family", "split"]).agg(
        curves=("group", "size"),
        groups=("group", "nunique"),
        datasets=("dataset", "nunique"),
        diverged=("diverged", "sum"),
    )
    with atomic_path(arguments.curves) as temporary:
        pd.concat(parts, ignore_index=True).to_csv(temporary, index=False)
    with atomic_path(arguments.corpus) as temporary:
        counts.reset_index().to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
