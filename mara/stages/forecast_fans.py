"""Set the flow's forecasts of a few test curves beside what the curves then did, and beside the WLS fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mara.command_line import LineParser
from mara.curves.corpus import Corpus, concatenate, load_corpus, read_curves
from mara.curves.smoothing import smooth
from mara.errors import exit_on_input_error
from mara.files import atomic_path
from mara.predictors.flow.features import describe_query
from mara.predictors.flow.predictor import FlowPredictor
from mara.predictors.flow.trajectory import KNOT
from mara.predictors.forecast import Query
from mara.predictors.registry import load_predictor
from mara.predictors.wls import Wls
from mara.stages.arguments import generator_for

CASES_PER_FAMILY = 2
LENGTH = 40
"""Points seen when the forecast is made."""
FRACTION = 0.7
"""Target as a fraction of the best smoothed loss so far."""
QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}


def wls_line(wls: Wls, query: Query, levels: np.ndarray) -> np.ndarray:
    """Units from the prefix's end after which the fitted law is at each of ``levels`` (L,); inf = never."""
    rows = np.zeros(len(levels), dtype=np.int64)
    return wls.remaining(query.rows(rows, levels.astype(np.float32)))


def case_lines(name: str, corpus: Corpus, row: int, flow: FlowPredictor, wls: Wls) -> pd.DataFrame:
    """All lines of one case: columns case, family, kind, unit, loss."""
    loss = corpus.loss[row].astype(np.float64)
    smoothed = smooth(loss[None])[0]
    target = FRACTION * smoothed[:LENGTH].min()
    query = Query.of(corpus.loss[[row]], np.array([LENGTH]), np.array([target]), corpus.schedule[[row]])
    description = describe_query(query)
    paths = flow.paths(description)[0] + description.level[0]
    units = LENGTH - 1 + KNOT
    inside = units < loss.size
    levels = smoothed[LENGTH - 1] * np.geomspace(1.0, 0.2, 60)
    crossing = LENGTH - 1 + wls_line(wls, query, levels)
    shown = np.isfinite(crossing) & (crossing < loss.size)
    lines = [
        ("history", np.arange(LENGTH), loss[:LENGTH]),
        ("truth", np.arange(LENGTH - 1, loss.size), smoothed[LENGTH - 1 :]),
        ("wls", crossing[shown], levels[shown]),
        ("target", np.array([0, loss.size - 1]), np.array([target, target])),
        *(
            (kind, units[inside], np.exp(np.quantile(paths, level, axis=0))[inside])
            for kind, level in QUANTILES.items()
        ),
    ]
    parts = [pd.DataFrame({"kind": kind, "unit": unit, "loss": value}) for kind, unit, value in lines]
    return pd.concat(parts).dropna().assign(case=name, family=corpus.family[row])


def main() -> None:
    """Write ``fans.csv``; the curves are drawn at random among those that have not diverged."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--flow", type=Path, required=True)
    parser.add_argument("--wls", type=Path, required=True)
    parser.add_argument("--own", nargs=2, action="append", default=[], metavar=("FAMILY", "FILE"))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    flow, wls = load_predictor("flow", arguments.flow), load_predictor("wls", arguments.wls)
    assert isinstance(flow, FlowPredictor)
    assert isinstance(wls, Wls)
    own = (read_curves(Path(path), family) for family, path in arguments.own)
    corpus = concatenate([load_corpus().of(split="test"), *own])
    parts = []
    for family in ("supervised", "vision", "rl", *(name for name, _ in arguments.own)):
        rows = np.flatnonzero((corpus.family == family) & (corpus.diverged_at >= corpus.loss.shape[1]))
        rng = generator_for(arguments.seed, "forecast fans", family)
        for number, row in enumerate(rng.choice(rows, min(CASES_PER_FAMILY, len(rows)), replace=False)):
            parts.append(case_lines(f"{family} {number + 1}", corpus, int(row), flow, wls))
    with atomic_path(arguments.output) as temporary:
        pd.concat(parts, ignore_index=True).to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
