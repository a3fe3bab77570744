"""Join the first templates of several pools into one.

Templates stand in random order in a pool, so the first of them are a fair sample.
"""

from __future__ import annotations

import json
from pathlib import Path

from mara.command_line import LineParser
from mara.curves.corpus import load_corpus
from mara.errors import exit_on_input_error
from mara.files import atomic_path
from mara.workload.card import workload_card
from mara.workload.tasks import TaskPool, join_pools


def main() -> None:
    """Write the pool (Parquet) and its card (JSON)."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--pools", type=Path, nargs="+", required=True)
    parser.add_argument("--templates", type=int, required=True, help="of each pool")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--card", type=Path, required=True)
    arguments = parser.parse_args()
    pool = join_pools([TaskPool.load(path) for path in arguments.pools], arguments.templates)
    pool.save(arguments.output)
    with atomic_path(arguments.card) as temporary:
        card = workload_card(pool, load_corpus())
        temporary.write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    exit_on_input_error(main)
