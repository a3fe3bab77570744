"""Train one predictor that has a network; an interrupted training goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

import torch

from mara.code_stamps import PACKAGE
from mara.curves.corpus import load_corpus
from mara.errors import InputError, exit_on_input_error
from mara.files import atomic_path
from mara.predictors.direct import DirectPredictor
from mara.predictors.flow.predictor import FlowPredictor
from mara.predictors.flow.training import Run, usable_device
from mara.predictors.registry import make_predictor
from mara.stages.arguments import generator_for, read_settings, stage_parser
from mara.stages.checkpoints import checkpoint_path
from mara.stages.fit_predictor import FitSettings


def main() -> None:
    """Write the trained predictor and its training log."""
    parser = stage_parser(__doc__)
    parser.add_argument("--predictor", required=True)
    parser.add_argument("--module", required=True, help="module of the predictor, for the checkpoint's key")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda", "auto"), default="cpu")
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--training-log", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = usable_device(arguments.device)
    settings = read_settings(FitSettings, arguments.settings)
    checkpoint = checkpoint_path(
        arguments.checkpoints,
        [arguments.module],
        [arguments.settings, arguments.predictor, str(arguments.seed), device.type],
        [PACKAGE / "curves" / "data"],
    )
    predictor = make_predictor(arguments.predictor, settings.predictors, settings.flow, settings.direct)
    if not isinstance(predictor, FlowPredictor | DirectPredictor):
        raise InputError(f"--predictor {arguments.predictor}: has no network to train; use fit_predictor")
    rng = generator_for(arguments.seed, "fit", arguments.predictor)
    with atomic_path(arguments.training_log) as log:
        run = Run(checkpoint, log, device)
        predictor.fit(load_corpus(), rng, run)
        predictor.save(arguments.output)
    run.finished()


if __name__ == "__main__":
    exit_on_input_error(main)
