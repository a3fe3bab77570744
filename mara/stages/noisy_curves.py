"""Put noise on the losses of test curves: what predictors and LARA see in the setting with noisy losses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from mara.command_line import LineParser
from mara.curves.corpus import load_corpus, write_curves
from mara.errors import exit_on_input_error
from mara.stages.arguments import generator_for


def main() -> None:
    """Write the curves of a family's test split, each validation loss times exp(level * normal)."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--family", required=True)
    parser.add_argument("--level", type=float, required=True, help="standard deviation of the log noise")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    corpus = load_corpus().of(family=arguments.family, split="test")
    noise = generator_for(arguments.seed, "noise", arguments.family).standard_normal(corpus.loss.shape)
    loss = corpus.loss * np.exp(arguments.level * noise)
    write_curves(replace(corpus, loss=loss.astype(np.float32)), arguments.output)


if __name__ == "__main__":
    exit_on_input_error(main)
