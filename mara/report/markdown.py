"""The results as Markdown: the first page to be pasted elsewhere, and the tables in short.

Rates are printed in per cent, differences in points, each with its 95 % interval in brackets. A section whose
table is missing is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from mara.report.pictures import Picture
from mara.report.tables import POOLED, cell
from mara.report.verdicts import claim, flatten, headline, loss

Tables = dict[str, pd.DataFrame]

RATE = ("completion_rate", "ci_low", "ci_high")
DIFFERENCE = ("difference", "diff_low", "diff_high")
MAIN_SUITES = ("in_distribution", "unseen_load", "held_out_family")
FAMILY_NAMES = {"supervised": "supervised", "vision": "vision", "rl": "RL"}
ALLOCATOR_NAMES = {"lara": "LARA search", "index": "index", "mat": "MAT"}
PREDICTOR_NAMES = {"wls": "WLS", "flow_deadline": "flow matching", "oracle": "oracle"}
FLOORS = {"reference": "from faithful LARA", "strongest": "from the strongest baseline"}


def summary(tables: Tables, pictures: list[Picture], provenance: Mapping[str, Any]) -> str:
    """The first page as Markdown, to be pasted elsewhere."""
    lines = [f"# {headline(tables['claims'])}", "", claims_table(tables)]
    losses = [loss(row) for row in tables["losses"].to_dict("records")]
    lines += ["", "## Where MARA completes less than a baseline", ""]
    if not losses:
        lines.append("Nowhere among the settings compared.")
    for lost in losses:
        sure = "" if lost["resolved"] else ", within chance"
        lines.append(
            f"- {lost['setting']}: {lost['difference']} points against {lost['baseline']} "
            f"({lost['low']} to {lost['high']}{sure})"
        )
    lines += ["", "## Figures", ""]
    lines += [f"- `{p.name}`: {p.title}. {p.caption}" for p in pictures]
    lines += ["", "## Made from", ""]
    lines += [f"- {name}: {value}" for name, value in flatten(provenance)]
    return "\n".join(lines) + "\n"


def claims_table(tables: Tables) -> str:
    """The verdicts as one table."""
    rows = []
    for row in tables["claims"].to_dict("records"):
        verdict = claim(row, tables, set())
        cells = (
            verdict["published"],
            f"{verdict['measured']} {verdict['unit']}",
            f"{verdict['low']} to {verdict['high']}",
            verdict["n"],
            "yes" if verdict["holds"] else "**no**",
        )
        rows.append((f"{verdict['id']} {verdict['title']}", [str(c).replace("|", "/") for c in cells]))
    return grid("claim", ["published", "measured", "95 % interval", "n", "holds"], rows)


def results_page(tables: Tables) -> str:
    """Every section for which there is a table, under one heading.

    Args:
        tables: result tables by name, as :func:`mara.report.tables.read_tables` returns them.
    """
    pooled = {name: _pooled(table) for name, table in tables.items()}
    parts = [section(pooled) for name, section in SECTIONS.items() if name in pooled]
    return "# Results in full\n\n" + "\n\n".join(parts) + "\n"


def grid(corner: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A Markdown table: the names of rows in the first column, under ``corner``."""
    lines = [f"| {' | '.join((corner, *columns))} |", "|" + "---|" * (len(columns) + 1)]
    lines += [f"| {' | '.join((name, *cells))} |" for name, cells in rows]
    return "\n".join(lines)


def percent(row: pd.Series, columns: tuple[str, str, str] = RATE) -> str:
    """A rate with its interval, in per cent; the rate alone where there is no interval."""
    value, low, high = (100 * float(row[c]) + 0.0 for c in columns)
    return f"{value:.1f} [{low:.1f}, {high:.1f}]" if low == low else f"{value:.1f}"


def points(row: pd.Series, columns: tuple[str, str, str] = DIFFERENCE) -> str:
    """A difference of rates with its interval, in percentage points."""
    value, low, high = (round(100 * float(row[c]), 1) + 0.0 for c in columns)
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}]" if low == low else f"{value:+.1f}"


def _pooled(table: pd.DataFrame) -> pd.DataFrame:
    """The rows over all training seeds."""
    return table[table["train_seed"] == POOLED] if "train_seed" in table.columns else table


def _in_order(values: pd.Series) -> list[str]:
    return [str(value) for value in dict.fromkeys(values)]


def _family(name: str) -> str:
    return FAMILY_NAMES.get(name, name.replace("_", " "))


def _by_setting(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of the main suites, split by setting under the setting's name."""
    settings = {}
    rows = table[table["suite"].isin(MAIN_SUITES)]
    for (suite, workload, load), part in rows.groupby(["suite", "workload", "load"], sort=False):
        heavier = f"{load:g} × the load"
        names = {"in_distribution": "training load", "unseen_load": heavier}
        name = names.get(str(suite), _family(str(workload)))
        settings[name] = part
    return settings


def _cross(
    parts: dict[str, pd.DataFrame], key: str, show: Callable[[pd.Series], str]
) -> list[tuple[str, list[str]]]:
    """Rows by ``key``, one cell of each part; a dash where a part lacks the row."""
    names = _in_order(pd.concat([part[key] for part in parts.values()]))
    return [
        (
            f"`{name}`",
            [
                show(part[part[key] == name].iloc[0]) if (part[key] == name).any() else "–"
                for part in parts.values()
            ],
        )
        for name in names
    ]


def _completion(tables: Tables) -> str:
    parts = _by_setting(tables["completion"])
    n = pd.concat(parts.values())
    n = n[n["method"] == "mara"] if (n["method"] == "mara").any() else n
    return (
        "## Completion\n\n"
        "Tasks completed, % of those that arrived [95 % over curve groups and training seeds]; "
        f"{_span(n['n_episodes'])} test episodes and {_span(n['n_groups'])} curve groups a setting, "
        f"{_span(n['n_seeds'])} training seeds.\n\n" + grid("", list(parts), _cross(parts, "method", percent))
    )


def _comparisons(tables: Tables) -> str:
    parts = _by_setting(tables["comparisons"])
    parts = {name: part[part["method"] == "mara"] for name, part in parts.items()}
    return "## MARA less each baseline\n\nIn points, on the same episodes [95 %].\n\n" + grid(
        "", list(parts), _cross(parts, "baseline", points)
    )


def _prediction(tables: Tables) -> str:
    table = tables["prediction"]
    parts = {_family(f): table[table["family"] == f] for f in _in_order(table["family"])}
    one = table[table["predictor"] == table["predictor"].iloc[0]]

    def score(row: pd.Series) -> str:
        return f"{row['nmae']:.3f} / {row['ncrps']:.3f} / {100 * row['coverage80']:.0f}"

    return (
        "## Forecasts\n\nnMAE of the median / nCRPS / coverage of the 80 % interval in %, with 20, 40 or 80 of 200 "
        f"points seen; n = {int(one['n_cases'].sum()):,} cases of {int(one['n_groups'].sum())} curve groups.\n\n"
        + grid("", list(parts), _cross(parts, "predictor", score))
    )


def _prediction_differences(tables: Tables) -> str:
    table = tables["prediction_differences"]
    table = table[(table["predictor"] == "flow") & (table["score"] == "ncrps")]
    parts = {_family(f): table[table["family"] == f] for f in _in_order(table["family"])}

    def score(row: pd.Series) -> str:
        return f"{row['difference']:+.4f} [{row['diff_low']:+.4f}, {row['diff_high']:+.4f}]"

    return (
        "### The flow's nCRPS less that of the others\n\nBelow zero the flow is better [95 % over curve groups].\n\n"
        + grid("", list(parts), _cross(parts, "baseline", score))
    )


def _history(tables: Tables) -> str:
    table = tables["history"]
    table = table[table["baseline"] != "lara"]
    parts = {_family(f): table[table["workload"] == f] for f in _in_order(table["workload"])}

    def gain(row: pd.Series) -> str:
        return f"{points(row)} to {100 * row['rate']:.1f} %"

    return (
        "## What earlier runs are worth\n\nPoints of completion that forecasts gain by the run's configuration (`_0`), "
        "and by up to 1 (`_1`) and 3 earlier runs of its group besides [95 %].\n\n"
        + grid("", list(parts), _cross(parts, "method", gain))
    )


def _attribution(tables: Tables) -> str:
    table = tables["attribution"]
    table = table[table["allocator"].isin(ALLOCATOR_NAMES) & table["predictor"].isin(PREDICTOR_NAMES)]
    predictors = [p for p in PREDICTOR_NAMES if (table["predictor"] == p).any()]
    parts = {PREDICTOR_NAMES[p]: table[table["predictor"] == p] for p in predictors}
    rows = [(ALLOCATOR_NAMES[name.strip("`")], cells) for name, cells in _cross(parts, "allocator", percent)]
    return "## Predictor × allocator\n\nTasks completed at the training load, % [95 %].\n\n" + grid(
        "", list(parts), rows
    )


def _ablation(tables: Tables) -> str:
    table = tables["ablation"]
    table = table[~table["method"].isin(("clairvoyant", "mara"))]
    to_mara = ("difference_to_mara", "mara_low", "mara_high")
    rows = [
        (f"`{row['method']}`", [cell(row["label"]), percent(row), points(row, to_mara)])
        for _, row in table.iterrows()
    ]
    columns = ["what differs", "completed, %", "less MARA, points"]
    return "## Ablation\n\nAt the training load [95 %].\n\n" + grid("", columns, rows)


def _stress(tables: Tables) -> str:
    table = tables["stress"]
    parts = {f"`{m}`": table[table["method"] == m] for m in _in_order(table["method"])}
    rows = [(name.strip("`").replace("_", " "), cells) for name, cells in _cross(parts, "workload", percent)]
    return (
        f"## Stress\n\nTasks completed, % [95 %]; {_span(table['n_episodes'])} episodes a setting, fewer on larger "
        "clusters.\n\n" + grid("", list(parts), rows)
    )


def _fairness(tables: Tables) -> str:
    table = tables["fairness"]
    table = table[(table["suite"] == "fairness") & (table["workload"] == "mixed") & (table["load"] == 1.0)]
    rows = [
        (
            f"`{row['method']}`",
            [
                percent(row),
                f"{_family(row['worst_family'])}: "
                + percent(row, ("worst_family_rate", "worst_family_low", "worst_family_high")),
                points(row, ("family_gap", "family_gap_low", "family_gap_high")).replace("+", ""),
                f"{row['jain_family']:.3f}",
                f"{row['mean_waiting']:.1f}",
                f"{row['mean_slowdown']:.2f}",
            ],
        )
        for _, row in table.iterrows()
    ]
    columns = [
        "completed, %",
        "worst-served family, %",
        "gap to the best, points",
        "Jain's index",
        "slots waited",
        "slow-down",
    ]
    return (
        "## Fairness\n\nA pool of all families at the training load [95 %]. `fair_n` favours the family that is served "
        "worst, the more the larger n.\n\n" + grid("", columns, rows)
    )


def _gap(tables: Tables) -> str:
    table = tables["gap"]
    rows = []
    for name, part in _by_setting(table[table["method"] == "mara"]).items():
        cells = []
        for kind in FLOORS:
            row = part[part["floor_kind"] == kind]
            cells.append("–" if row.empty else _share(row.iloc[0]))
        rows.append((name, cells))
    return (
        "## Share of the gap to the clairvoyant optimum that MARA closes\n\n"
        f"On the {_span(table['n_episodes'])} episodes a setting whose optimum is computed, % [95 %].\n\n"
        + grid("", list(FLOORS.values()), rows)
    )


def _share(row: pd.Series) -> str:
    value, low, high = (round(100 * float(row[c])) + 0 for c in ("share_closed", "share_low", "share_high"))
    return f"{value} [{low}, {high}] (`{row['floor']}`)"


def _prediction_cost(tables: Tables) -> str:
    table = tables["prediction_cost"]
    rows = [
        (f"`{row['predictor']}`", [f"{row['ms_per_curve']:.3f}", f"{int(row['n_cases']):,}"])
        for _, row in table[table["curves"] == "corpus"].iterrows()
    ]
    return "## Cost of a forecast\n\nMilliseconds of one core, amortised over batches.\n\n" + grid(
        "", ["ms a forecast", "forecasts"], rows
    )


def _span(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


SECTIONS: dict[str, Callable[[Tables], str]] = {
    "completion": _completion,
    "comparisons": _comparisons,
    "gap": _gap,
    "prediction": _prediction,
    "prediction_differences": _prediction_differences,
    "prediction_cost": _prediction_cost,
    "history": _history,
    "attribution": _attribution,
    "ablation": _ablation,
    "stress": _stress,
    "fairness": _fairness,
}
"""The table that each section needs, in the page's order."""
