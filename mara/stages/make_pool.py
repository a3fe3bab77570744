"""Draw the task templates of one family and split from the corpus."""

from __future__ import annotations

import json
from pathlib import Path

from mara.config.workload import TaskSettings
from mara.curves.corpus import load_corpus, read_curves
from mara.errors import InputError, exit_on_input_error
from mara.files import atomic_path
from mara.stages.arguments import generator_for, read_settings, stage_parser
from mara.workload.card import workload_card
from mara.workload.tasks import make_pool


def main() -> None:
    """Write the pool (Parquet) and its card (JSON)."""
    parser = stage_parser(__doc__)
    parser.add_argument("--family", required=True)
    parser.add_argument("--curves", type=Path, help="file of an own family, in place of the recorded corpus")
    parser.add_argument("--split", required=True)
    parser.add_argument("--part", choices=("predictor", "allocator"), help="of the training split")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--card", type=Path, required=True)
    arguments = parser.parse_args()
    settings = read_settings(TaskSettings, arguments.settings)
    own = arguments.curves is not None
    corpus = read_curves(arguments.curves, arguments.family) if own else load_corpus()
    corpus = corpus.of(family=arguments.family, split=arguments.split, part=arguments.part)
    rng = generator_for(arguments.seed, "pool", arguments.family, arguments.split)
    try:
        pool = make_pool(corpus, settings, rng)
    except InputError as error:
        if not own:
            raise
        print(f"note: {error}; the tasks keep their natural shares")
        pool = make_pool(
            corpus, settings.model_copy(update={"feasible_share": None, "long_share": None}), rng
        )
    pool.save(arguments.output)
    with atomic_path(arguments.card) as temporary:
        temporary.write_text(json.dumps(workload_card(pool, corpus), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    exit_on_input_error(main)
