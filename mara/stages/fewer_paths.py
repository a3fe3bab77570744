"""Let a trained flow sample fewer paths a forecast: what stands on them is fitted anew, the network is shared."""

from __future__ import annotations

from pathlib import Path

from mara.command_line import LineParser
from mara.curves.corpus import load_corpus
from mara.errors import InputError, exit_on_input_error
from mara.predictors.flow.predictor import FlowPredictor
from mara.predictors.registry import load_predictor
from mara.stages.arguments import generator_for


def main() -> None:
    """Write the predictor, which forecasts as ``flow_deadline`` does."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--flow", type=Path, required=True, help="the trained flow with the deadline")
    parser.add_argument("--paths", type=int, required=True, help="even; antithetic pairs count as two")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    flow = load_predictor("flow_deadline", arguments.flow)
    if not isinstance(flow, FlowPredictor):
        raise InputError(f"{arguments.flow}: holds a {type(flow).__name__}, not a flow")
    most = flow.settings.paths
    if arguments.paths % 2 or not 2 <= arguments.paths <= most:
        raise InputError(f"--paths {arguments.paths}: must be even, from 2 to the flow's own {most}")
    rng = generator_for(arguments.seed, "fit", f"{flow.name}, {arguments.paths} paths")
    flow.variant(load_corpus(), rng, paths=arguments.paths).save(arguments.output)


if __name__ == "__main__":
    exit_on_input_error(main)
