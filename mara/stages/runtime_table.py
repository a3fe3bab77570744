"""Sum up the benchmark files of all jobs by rule: run time, CPU time and memory."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mara.command_line import LineParser
from mara.errors import exit_on_input_error
from mara.files import atomic_path


def main() -> None:
    """Write ``runtime.csv``: seconds summed over the jobs of a rule, memory of the largest."""
    parser = LineParser(description=__doc__)
    parser.add_argument("--benchmarks", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    rows = []
    for file in sorted(arguments.benchmarks.rglob("*.tsv")):
        place = file.relative_to(arguments.benchmarks)
        rule = place.parts[0].removesuffix(".tsv")
        job = pd.read_csv(file, sep="\t", na_values="-").iloc[-1]
        rows.append(
            {"rule": rule, "wall_s": job["s"], "cpu_s": job["cpu_time"], "max_rss_mb": job["max_rss"]}
        )
    jobs = pd.DataFrame(rows, columns=["rule", "wall_s", "cpu_s", "max_rss_mb"])
    by_rule = jobs.groupby("rule", sort=True)
    table = by_rule.agg(wall_s=("wall_s", "sum"), cpu_s=("cpu_s", "sum"), max_rss_mb=("max_rss_mb", "max"))
    table["jobs"] = by_rule.size()
    with atomic_path(arguments.output) as temporary:
        table.round(2).to_csv(temporary)


if __name__ == "__main__":
    exit_on_input_error(main)
