"""Distil a trained flow into a one-pass head."""

from __future__ import annotations

from pathlib import Path

import torch

from mara.curves.corpus import load_corpus
from mara.errors import InputError, exit_on_input_error
from mara.predictors.flow.distilled import DistilledPredictor
from mara.predictors.flow.predictor import FlowPredictor
from mara.predictors.registry import load_predictor
from mara.stages.arguments import generator_for, read_settings, stage_parser
from mara.stages.fit_predictor import FitSettings


def main() -> None:
    """Write the predictor ``flow_distilled`` or ``flow_distilled_deadline``, and its arrays if asked for."""
    parser = stage_parser(__doc__)
    parser.add_argument("--flow", type=Path, required=True, help="the trained flow")
    parser.add_argument("--teacher", choices=("flow", "flow_deadline"), default="flow", help="what it is")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--arrays", type=Path, help="also write plain arrays that forecast without torch")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    settings = read_settings(FitSettings, arguments.settings)
    teacher = load_predictor(arguments.teacher, arguments.flow)
    if not isinstance(teacher, FlowPredictor):
        raise InputError(f"{arguments.flow}: holds a {type(teacher).__name__}, not a flow")
    head = DistilledPredictor(teacher, settings.distilled)
    head.fit(load_corpus(), generator_for(arguments.seed, "fit", head.name)).save(arguments.output)
    if arguments.arrays:
        head.export(arguments.arrays)


if __name__ == "__main__":
    exit_on_input_error(main)
