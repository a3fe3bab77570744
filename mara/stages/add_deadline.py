"""Let a trained flow read the deadline too: what stands on its network is fitted anew, the network is shared."""

from __future__ import annotations

from pathlib import Path

from mara.command_line import LineParser
from mara.curves.corpus import load_corpus
from mara.errors import InputError, exit_on_input_error
from mara.predictors.flow.predictor import FlowPredictor
from mara.predictors.registry import load_predictor
from mara.stages.arguments import generator_for

FLOWS = ("flow", "flow_history")


def main() -> None:
    """Write the predictor ``flow_deadline`` or ``flow_history_deadline``."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--flow", type=Path, required=True)
    parser.add_argument("--predictor", choices=FLOWS, default=FLOWS[0], help="what --flow holds")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    flow = load_predictor(arguments.predictor, arguments.flow)
    if not isinstance(flow, FlowPredictor):
        raise InputError(f"{arguments.flow}: holds a {type(flow).__name__}, not a flow")
    rng = generator_for(arguments.seed, "fit", f"{arguments.predictor}_deadline")
    flow.with_deadline(load_corpus(), rng).save(arguments.output)


if __name__ == "__main__":
    exit_on_input_error(main)
