"""What the parts of the flow are worth: fewer paths, no steps, no pool, distilled, with earlier runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from mara.config.evaluation import EvaluationSettings
from mara.curves.corpus import Corpus, load_corpus
from mara.errors import InputError, exit_on_input_error
from mara.evaluation.prediction import WITH_INTERVAL, Cases, paired_difference, protocol_cases, scores
from mara.files import atomic_path
from mara.predictors.flow.history import RUNS, HistoryFlowPredictor
from mara.predictors.flow.predictor import FlowPredictor
from mara.predictors.forecast import Forecast, Predictor, Query
from mara.predictors.registry import load_predictor
from mara.stages.arguments import generator_for, read_settings, stage_parser
from mara.stages.prediction_tables import split_of

EVERY = 5
"""One in so many cases of the protocol is asked; coprime to the cases of a curve."""
BATCH = 2048

Ask = Callable[[Query, NDArray[np.int64], int], Forecast]
"""(questions (B,), rows (B,) of their curves in the corpus, horizon) -> forecasts."""


def plainly(predictor: Predictor) -> Ask:
    """Ask about prefixes alone."""
    return lambda query, curve, horizon: predictor.forecast(query, horizon)


def with_runs(predictor: HistoryFlowPredictor, corpus: Corpus, count: int) -> Ask:
    """Ask with the configuration and ``count`` earlier runs."""
    chosen = predictor.choose(corpus, np.arange(len(corpus)))
    chosen[:, count:] = -1
    return lambda query, curve, horizon: predictor.forecast_among(
        query, corpus, curve, chosen[curve], horizon
    )


def asked(ask: Ask, cases: Cases) -> Forecast:
    """Forecasts of all cases."""
    horizon = int(cases.left.max())
    parts = [
        ask(cases.query.rows(rows), cases.curve[rows], horizon)
        for rows in np.array_split(np.arange(len(cases)), 1 + len(cases) // BATCH)
    ]
    return Forecast(np.concatenate([p.cdf for p in parts]), np.concatenate([p.point for p in parts]))


def row(
    name: str, forecast: Forecast, whole: Forecast, cases: Cases, settings: EvaluationSettings
) -> dict[str, object]:
    """One variant on one family beside the flow itself, ``whole``."""
    mine, its = scores(forecast, cases), scores(whole, cases)
    family = str(cases.family[0])
    found: dict[str, object] = {
        "variant": name,
        "family": family,
        "split": split_of(family),
        "n_cases": len(cases),
        "n_groups": len(np.unique(cases.group)),
        "coverage80": float(mine["coverage80"].mean()),
    }
    for score in WITH_INTERVAL:
        rng = np.random.default_rng(settings.seed)
        apart = paired_difference(mine, its, score, cases.group, settings.resamples, rng)
        found |= {
            score: float(mine[score].mean()),
            f"{score}_to_flow": apart.estimate,
            f"{score}_diff_low": apart.low,
            f"{score}_diff_high": apart.high,
        }
    return found | {"cdf_distance": float(np.abs(forecast.cdf - whole.cdf).mean())}


def main() -> None:
    """Write one row a variant and family."""
    parser = stage_parser(__doc__)
    parser.add_argument("--flow", type=Path, required=True)
    parser.add_argument("--distilled", type=Path, required=True)
    parser.add_argument("--history", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    settings = read_settings(EvaluationSettings, arguments.settings)
    flow = load_predictor("flow", arguments.flow)
    history = load_predictor("flow_history", arguments.history)
    if not (isinstance(flow, FlowPredictor) and isinstance(history, HistoryFlowPredictor)):
        raise InputError(f"{arguments.flow}, {arguments.history}: not a flow and one with history")
    corpus = load_corpus()
    test = corpus.of(split="test")

    def changed(name: str, **changes: float) -> Ask:
        rng = generator_for(arguments.seed, "variant", name)
        return plainly(flow.variant(corpus, rng, **changes))  # type: ignore[arg-type]

    variants = {
        "flow": plainly(flow),
        "4 paths": changed("4 paths", paths=4),
        "16 paths": changed("16 paths", paths=16),
        "no solver steps": changed("no solver steps", solver_steps=0),
        "no Kalman share": changed("no Kalman share", kalman_share=0.0),
        "distilled": plainly(load_predictor("flow_distilled", arguments.distilled)),
        "history: nothing known": plainly(history),
        **{f"history: {n} earlier runs": with_runs(history, test, n) for n in (0, 1, RUNS)},
    }
    cases = protocol_cases(test)
    cases = cases.select(np.arange(0, len(cases), EVERY))
    rows = []
    for family in dict.fromkeys(cases.family.tolist()):
        some = cases.select(cases.family == family)
        whole = asked(variants["flow"], some)
        for name, ask in variants.items():
            rows.append(row(name, asked(ask, some), whole, some, settings))
    with atomic_path(arguments.output) as temporary:
        pd.DataFrame(rows).to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
