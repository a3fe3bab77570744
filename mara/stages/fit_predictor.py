"""Fit one predictor on the training curves."""

from __future__ import annotations

from pathlib import Path

from mara.config.base import Section
from mara.config.flow import DirectSettings, DistilledSettings, FlowSettings
from mara.config.predictors import PredictorSettings
from mara.curves.corpus import load_corpus
from mara.errors import exit_on_input_error
from mara.predictors.registry import make_predictor
from mara.stages.arguments import generator_for, read_settings, stage_parser


class FitSettings(Section):
    """What a fit depends on: the sections that the predictor reads; the others keep their defaults."""

    predictors: PredictorSettings = PredictorSettings()
    flow: FlowSettings = FlowSettings()
    direct: DirectSettings = DirectSettings()
    distilled: DistilledSettings = DistilledSettings()


def main() -> None:
    """Write the fitted predictor."""
    parser = stage_parser(__doc__)
    parser.add_argument("--predictor", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(FitSettings, arguments.settings)
    predictor = make_predictor(arguments.predictor, settings.predictors, settings.flow)
    predictor.fit(load_corpus(), generator_for(arguments.seed, "fit", arguments.predictor))
    predictor.save(arguments.output)


if __name__ == "__main__":
    exit_on_input_error(main)
