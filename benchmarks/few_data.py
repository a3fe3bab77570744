"""How the flow and the direct head do when few curves were recorded: ``python benchmarks/few_data.py FOLDER``.

Both are trained on 1/16, 1/4 and all of the groups that predictors are fitted on, and at 1/16 once more without the
synthetic prior. Groups are drawn at random, twice for the small shares; a draw's smaller share lies in its larger
one. Settings are those of the full run, gradient steps and calibration curves too, but for one: 61 % of the prefixes
that both are trained on are synthetic. Every forecaster answers the cases of the evaluation, on the test split or,
for development, on ``--split validation``.

- ``FOLDER/SPLIT/scores.csv``: a row for each forecaster and family: nMAE, nCRPS, coverage of 80 % intervals.
- ``FOLDER/SPLIT/differences.csv``: flow less ``direct`` on the same cases, 95 % interval over curve groups and draws.

Both are written anew after every pair of trainings, and what FOLDER holds is not computed again: a run that was
stopped goes on where it was, inside a training too. About 5 CPU minutes for each of seven pairs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from mara.config.evaluation import EvaluationSettings
from mara.config.flow import DirectSettings, FlowSettings
from mara.curves.corpus import Corpus, load_corpus
from mara.evaluation.prediction import WITH_INTERVAL, Cases, ask, group_sums, protocol_cases, scores
from mara.evaluation.statistics import Interval, Sums, resample_weights, resampled_ratios
from mara.files import atomic_path
from mara.predictors.direct import DirectPredictor
from mara.predictors.flow.predictor import FlowPredictor
from mara.predictors.flow.training import Run
from mara.predictors.forecast import Forecast

SHARES = (Fraction(1, 16), Fraction(1, 4), Fraction(1))
DRAWS = 2
SEED = 20_261
KEPT = ("nmae", "ncrps", "coverage80")
MIXED = {"synthetic_share": 0.61}
"""As many synthetic curves as if every curve of the full run, recorded, altered or synthetic, were as likely."""
RECORDED_ONLY = {"synthetic_share": 0.0, "synthetic_trials": 0.0}
"""Training and calibration without the synthetic prior."""


class Trial(NamedTuple):
    """Two trainings to be compared: on a share of the groups, with the synthetic prior or without."""

    share: Fraction
    draw: int
    synthetic: bool = True

    def part(self, folder: Path, predictor: str, ending: str) -> Path:
        """A file of one of the two trainings."""
        prior = "" if self.synthetic else "-recorded-only"
        name = f"{predictor}-{self.share.numerator}of{self.share.denominator}-draw{self.draw}{prior}"
        return folder / "parts" / f"{name}{ending}"


def plan() -> list[Trial]:
    """All pairs of trainings, what is asked first coming first; all groups can be drawn in one way only."""
    drawn = [Trial(share, draw) for draw in range(DRAWS) for share in SHARES if share < 1 or draw == 0]
    return drawn + [Trial(SHARES[0], draw, synthetic=False) for draw in range(DRAWS)]


def main() -> None:
    """Train, score, write and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", type=Path, help="where results go, and where a run that was stopped goes on"
    )
    parser.add_argument("--split", choices=("validation", "test"), default="test", help="curves asked about")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    folder = arguments.folder / arguments.split
    measure(load_corpus(), arguments.split, folder, plan(), FlowSettings(), DirectSettings())
    print(pd.read_csv(folder / "differences.csv").round(4).to_string(index=False))


def measure(
    corpus: Corpus,
    split: str,
    folder: Path,
    trials: Sequence[Trial],
    flow: FlowSettings,
    direct: DirectSettings,
) -> None:
    """Train and score what ``folder`` lacks of the trials; write both tables after each."""
    asked = corpus.of(split=split)
    cases = protocol_cases(asked)
    for count, trial in enumerate(trials, start=1):
        curves = thinned(corpus, trial)
        for predictor in untrained(trial, flow, direct):
            path = trial.part(folder, predictor.name, ".parquet")
            if path.exists():
                continue
            start = time.process_time()
            run = Run(path.with_suffix(".checkpoint"), path.with_suffix(".csv"))
            predictor.fit(curves, np.random.default_rng([SEED, trial.draw, 1]), run)
            answers = scores(forecasts(predictor, cases, asked), cases)
            frame = {"family": cases.family, "group": cases.group} | {score: answers[score] for score in KEPT}
            with atomic_path(path) as temporary:
                pd.DataFrame(frame).to_parquet(temporary, index=False)
            run.finished()
            print(f"{path.stem}: {time.process_time() - start:.0f} CPU s", flush=True)
        write_tables(folder, trials[:count], corpus)


def training_groups(corpus: Corpus) -> NDArray[np.str_]:
    """The groups that predictors are fitted on, in the order of their names."""
    return np.unique(corpus.of(split="train", part="predictor").group)


def drawn_groups(corpus: Corpus, trial: Trial) -> NDArray[np.str_]:
    """The groups of the trial: the first ones of the draw's order."""
    groups = training_groups(corpus)
    order = np.random.default_rng([SEED, trial.draw, 0]).permutation(len(groups))
    return groups[order[: max(round(trial.share * len(groups)), 1)]]


def thinned(corpus: Corpus, trial: Trial) -> Corpus:
    """The corpus without the groups that the trial leaves out."""
    left_out = np.setdiff1d(training_groups(corpus), drawn_groups(corpus, trial))
    return corpus.select(~np.isin(corpus.group, left_out))


def untrained(
    trial: Trial, flow: FlowSettings, direct: DirectSettings
) -> tuple[FlowPredictor, DirectPredictor]:
    """Both forecasters of a trial, with equal shares of synthetic prefixes."""
    mix = MIXED if trial.synthetic else RECORDED_ONLY
    return (
        FlowPredictor(flow.model_copy(update={"examples": flow.examples.model_copy(update=mix)})),
        DirectPredictor(direct.model_copy(update={"examples": direct.examples.model_copy(update=mix)})),
    )


def forecasts(predictor: FlowPredictor | DirectPredictor, cases: Cases, corpus: Corpus) -> Forecast:
    """Forecasts of all cases; the flow draws the paths of a prefix once for all its targets."""
    if isinstance(predictor, DirectPredictor):
        return ask(predictor, cases, corpus)
    query, horizon = cases.query, int(cases.left.max())
    prefix = cases.curve * (query.loss.shape[1] + 1) + query.length
    _, first, owner = np.unique(prefix, return_index=True, return_inverse=True)
    return predictor.forecast_many_targets(query.rows(first), owner, query.target, query.window, horizon)


def write_tables(folder: Path, trials: Sequence[Trial], corpus: Corpus) -> None:
    """Write ``scores.csv`` and ``differences.csv`` of the trials whose parts are all there."""
    score_rows: list[dict[str, object]] = []
    difference_rows: list[dict[str, object]] = []
    for share, synthetic in dict.fromkeys((trial.share, trial.synthetic) for trial in trials):
        draws = [trial for trial in trials if (trial.share, trial.synthetic) == (share, synthetic)]
        groups = len(drawn_groups(corpus, draws[0]))
        common = {"synthetic_prior": synthetic, "share": float(share), "groups": groups}
        parts = {
            name: [pd.read_parquet(trial.part(folder, name, ".parquet")) for trial in draws]
            for name in ("flow", "direct")
        }
        for family in dict.fromkeys(parts["flow"][0]["family"]):
            of = {name: [part[part["family"] == family] for part in parts[name]] for name in parts}
            size = {"cases": len(of["flow"][0]), "test_groups": of["flow"][0]["group"].nunique()}
            for name in of:
                for trial, part in zip(draws, of[name], strict=True):
                    row = common | {"draw": trial.draw, "predictor": name, "family": family} | size
                    score_rows.append(row | {score: part[score].mean() for score in KEPT})
            for score in WITH_INTERVAL:
                found = difference(of["flow"], of["direct"], score)._asdict()
                row = common | {"draws": len(draws), "family": family} | size
                difference_rows.append(row | {"score": score} | found)
    for name, rows in (("scores", score_rows), ("differences", difference_rows)):
        with atomic_path(folder / f"{name}.csv") as temporary:
            pd.DataFrame(rows).to_csv(temporary, index=False)


def difference(first: Sequence[pd.DataFrame], second: Sequence[pd.DataFrame], score: str) -> Interval:
    """Mean of the score of the first forecaster less that of the second, one frame of equal cases a draw."""
    settings = EvaluationSettings()
    rng = np.random.default_rng(settings.seed)
    both = []
    for frames in (first, second):
        sums = [group_sums(part[score].to_numpy(), part["group"].to_numpy(dtype=str)) for part in frames]
        both.append(Sums(np.hstack([part.hits for part in sums]), np.hstack([part.trials for part in sums])))
    weights = resample_weights(len(both[0].hits), settings.resamples, rng)
    return resampled_ratios(both, weights, rng).interval([1.0, -1.0], settings.confidence)


if __name__ == "__main__":
    main()
