"""Ask one predictor about every case of the protocol, on the test split and the held-out families.

What it cost is kept apart from the scores: ``ms_per_curve``, processor time a forecast, differs between runs.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd

from mara.command_line import LineParser
from mara.curves.corpus import load_corpus, read_curves
from mara.errors import exit_on_input_error
from mara.evaluation.prediction import ask, probability_integral, protocol_cases, scores
from mara.files import atomic_path
from mara.predictors.registry import load_predictor


def main() -> None:
    """Write one row a case (what it is, its scores, its probability integral), and one row of what all cost."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--predictor", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--own", nargs=2, metavar=("FAMILY", "FILE"), help="score on an own family alone")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cost", type=Path, required=True)
    arguments = parser.parse_args()
    predictor = load_predictor(arguments.predictor, arguments.model)
    corpus = read_curves(Path(arguments.own[1]), arguments.own[0]) if arguments.own else load_corpus()
    corpus = corpus.of(split="test")
    cases = protocol_cases(corpus)
    start = time.process_time()
    forecast = ask(predictor, cases, corpus)
    elapsed = time.process_time() - start
    lower, upper = probability_integral(forecast, cases.truth, cases.left)
    frame = pd.DataFrame(
        {
            "predictor": arguments.predictor,
            "family": cases.family.astype(str),
            "group": cases.group.astype(str),
            "prefix": cases.query.length,
            "fraction": cases.fraction,
            "truth": cases.truth,
            "left": cases.left,
            "reached": np.isfinite(cases.truth),
            "pit_lower": lower,
            "pit_upper": upper,
            **scores(forecast, cases),
        }
    )
    with atomic_path(arguments.output) as temporary:
        frame.to_parquet(temporary, index=False)
    cost = {
        "predictor": arguments.predictor,
        "curves": arguments.own[0] if arguments.own else "corpus",
        "n_cases": len(cases),
        "ms_per_curve": 1e3 * elapsed / len(cases),
    }
    with atomic_path(arguments.cost) as temporary:
        pd.DataFrame([cost]).to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
