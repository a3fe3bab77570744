"""Turn the scores of all cases into tables: errors with intervals, paired differences, calibration; and the cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mara.config.evaluation import EvaluationSettings
from mara.errors import exit_on_input_error
from mara.evaluation.prediction import (
    SCORES,
    WITH_INTERVAL,
    paired_difference,
    pit_histogram,
    resampled_scores,
    share_below,
)
from mara.files import atomic_path
from mara.stages.arguments import read_settings, stage_parser

LEVELS = np.linspace(0.05, 0.95, 19)
PIT_BINS = 10


def split_of(family: str) -> str:
    """Whether predictors were fitted on curves of the family."""
    return "in_distribution" if family == "supervised" else "held_out"


def score_columns(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Scores of a predictor's cases by name, (B,) each."""
    return {score: frame[score].to_numpy(dtype=np.float64) for score in SCORES}


def prediction_row(name: str, frame: pd.DataFrame, settings: EvaluationSettings) -> dict[str, object]:
    """One row of ``prediction.csv``: one predictor on one family."""
    by_case, group = score_columns(frame), frame["group"].to_numpy(dtype=str)
    family = str(frame["family"].iloc[0])
    row: dict[str, object] = {
        "predictor": name,
        "family": family,
        "split": split_of(family),
        "n_cases": len(frame),
        "n_groups": len(np.unique(group)),
    }
    for score in SCORES:
        if score in WITH_INTERVAL:
            rng = np.random.default_rng(settings.seed)
            resampled = resampled_scores({name: by_case}, score, group, settings.resamples, rng)
            interval = resampled.interval([1.0], settings.confidence)
            row |= {score: interval.estimate, f"{score}_low": interval.low, f"{score}_high": interval.high}
        else:
            defined = by_case[score][np.isfinite(by_case[score])]
            row[score] = float(defined.mean()) if defined.size else float("nan")
    return row


def prefix_rows(name: str, frame: pd.DataFrame, settings: EvaluationSettings) -> list[dict[str, object]]:
    """Errors of one predictor on one family by the length of the prefix."""
    rows: list[dict[str, object]] = []
    for prefix, part in frame.groupby("prefix", sort=True):
        whole = prediction_row(name, part, settings)
        columns = ["predictor", "family", "split", "n_cases", "n_groups", "coverage80"]
        columns += [f"{score}{end}" for score in WITH_INTERVAL for end in ("", "_low", "_high")]
        rows.append({"prefix": prefix, **{column: whole[column] for column in columns}})
    return rows


def difference_rows(
    name: str, frame: pd.DataFrame, others: dict[str, pd.DataFrame], settings: EvaluationSettings
) -> list[dict[str, object]]:
    """Paired differences of one predictor to all others on one family, in nMAE and nCRPS."""
    group, family = frame["group"].to_numpy(dtype=str), str(frame["family"].iloc[0])
    rows: list[dict[str, object]] = []
    for other, other_frame in others.items():
        for score in WITH_INTERVAL:
            rng = np.random.default_rng(settings.seed)
            difference = paired_difference(
                score_columns(frame), score_columns(other_frame), score, group, settings.resamples, rng
            )
            rows.append(
                {
                    "predictor": name,
                    "baseline": other,
                    "family": family,
                    "split": split_of(family),
                    "score": score,
                    "difference": difference.estimate,
                    "diff_low": difference.low,
                    "diff_high": difference.high,
                    "n_cases": len(frame),
                    "n_groups": len(np.unique(group)),
                }
            )
    return rows


def calibration_rows(name: str, frame: pd.DataFrame) -> list[dict[str, object]]:
    """Reliability (share of truths below each quantile) and PIT histogram of one predictor on one family."""
    lower, upper = frame["pit_lower"].to_numpy(), frame["pit_upper"].to_numpy()
    common = {"predictor": name, "family": str(frame["family"].iloc[0]), "n": len(frame)}
    rows: list[dict[str, object]] = [
        {**common, "kind": "reliability", "x": level, "value": float(share_below(level, lower, upper).mean())}
        for level in LEVELS
    ]
    for k, density in enumerate(pit_histogram(lower, upper, PIT_BINS)):
        rows.append({**common, "kind": "pit", "x": k / PIT_BINS, "value": float(density)})
    return rows


def main() -> None:
    """Write ``prediction.csv``, ``prediction_by_prefix.csv``, ``prediction_differences.csv``, ``calibration.csv``.

    What forecasts cost goes into ``prediction_cost.csv``, so that the other tables do not depend on a clock.
    """
    parser = stage_parser(__doc__)
    parser.add_argument("--scores", nargs="+", type=Path, required=True)
    parser.add_argument("--costs", nargs="+", type=Path, required=True)
    parser.add_argument("--prediction", type=Path, required=True)
    parser.add_argument("--by-prefix", type=Path, required=True)
    parser.add_argument("--differences", type=Path, required=True)
    parser.add_argument("--calibration", type=Path, required=True)
    parser.add_argument("--cost", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(EvaluationSettings, arguments.settings)
    files: dict[str, list[pd.DataFrame]] = {}
    for path in arguments.scores:
        files.setdefault(path.stem, []).append(pd.read_parquet(path))
    frames = {name: pd.concat(parts, ignore_index=True) for name, parts in files.items()}
    prediction: list[dict[str, object]] = []
    by_prefix: list[dict[str, object]] = []
    differences: list[dict[str, object]] = []
    calibration: list[dict[str, object]] = []
    for family in dict.fromkeys(f for frame in frames.values() for f in frame["family"]):
        of_family = {name: frame[frame["family"] == family] for name, frame in frames.items()}
        for name, frame in of_family.items():
            if frame.empty:
                continue
            prediction.append(prediction_row(name, frame, settings))
            by_prefix += prefix_rows(name, frame, settings)
            calibration += calibration_rows(name, frame)
            if name.startswith(("flow", "direct")):
                others = {other: rows for other, rows in of_family.items() if other != name}
                differences += difference_rows(name, frame, others, settings)
    for path, table in (
        (arguments.prediction, pd.DataFrame(prediction)),
        (arguments.by_prefix, pd.DataFrame(by_prefix)),
        (arguments.differences, pd.DataFrame(differences)),
        (arguments.calibration, pd.DataFrame(calibration)),
        (arguments.cost, pd.concat(map(pd.read_csv, arguments.costs))),
    ):
        with atomic_path(path) as temporary:
            table.to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_input_error(main)
