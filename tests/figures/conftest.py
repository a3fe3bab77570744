"""Invented tables in the contracted formats, one for each that a figure reads."""

import numpy as np
import pandas as pd
import pytest

METHODS = {
    "clairvoyant": 0.70,
    "mara": 0.63,
    "index": 0.625,
    "gittins": 0.61,
    "lara_slope": 0.595,
    "lara_tuned": 0.575,
    "lara_deadline": 0.57,
    "lara": 0.55,
    "laira": 0.54,
    "srpt": 0.53,
    "edf": 0.47,
    "fifo": 0.28,
    "random": 0.22,
}
FAMILIES = ("supervised", "vision", "rl")


@pytest.fixture(scope="session")
def tables() -> dict[str, pd.DataFrame | str]:
    rng = np.random.default_rng(0)
    places = [("in_distribution", "supervised", 1.0)]
    places += [("unseen_load", "supervised", load) for load in (1.25, 1.5, 2.0)]
    places += [("held_out_family", family, 1.0) for family in ("vision", "rl")]
    completion = pd.concat([completion_rows(*place) for place in places], ignore_index=True)
    stress = pd.concat(
        [
            completion_rows("stress", f"{kind}_{level}", 1.0, shift=-0.03 * i).assign(
                stress=kind, level=level
            )
            for i, (kind, level) in enumerate(
                [
                    ("bursts", "mild"),
                    ("bursts", "heavy"),
                    ("nodes", "4 nodes"),
                    ("nodes", "64 nodes"),
                    ("noise", "2x"),
                ]
            )
        ],
        ignore_index=True,
    )
    attribution = attribution_rows()
    ablation = completion_rows(
        "ablation", "supervised", 1.0, ("mara", "lara", "mara_no_mask", "mara_scratch_no_shaping")
    )
    ablation = ablation[ablation["train_seed"] == "all"].assign(
        label=["", "", "no feasibility mask", "no shaping"],
        difference_to_mara=[0.0, -0.08, -0.35, -0.002],
        mara_low=[0.0, -0.10, -0.38, -0.006],
        mara_high=[0.0, -0.06, -0.32, 0.002],
        p_value=[np.nan, 0.001, 0.0001, 0.4],
        p_holm=[np.nan, np.nan, 0.0002, 0.4],
    )
    return {
        "prediction": prediction_rows(),
        "completion": completion,
        "gap": gap_rows(completion),
        "fans": fan_rows(rng),
        "calibration": calibration_rows(),
        "prefixes": pd.concat([prediction_rows().assign(prefix=prefix) for prefix in (20, 40, 80)]),
        "attribution": attribution,
        "effects": effect_rows(),
        "ablation": ablation,
        "history": history_rows(),
        "stress": stress,
        "fairness": fairness_rows(),
        "groups": group_rows(),
        "events": event_rows(rng)[0],
        "tasks": event_rows(rng)[1],
        "training_flow": long_rows(
            rng, ("flow", "flow_deadline"), (None,), ("loss", "calibration_ncrps", "learning_rate")
        ),
        "training_mat": long_rows(
            rng, ("1", "2", "3"), ("imitation", "ppo"), ("completion_rate", "entropy", "approx_kl")
        ).assign(method="mara"),
        "training_shaping": pd.concat(
            long_rows(rng, ("1", "2"), ("ppo",), ("completion", "slots")).assign(method=method)
            for method in ("mara_scratch", "mara_scratch_no_shaping")
        ),
        "runtime": pd.DataFrame(
            {
                "rule": ["record_corpus", "train_flow", "train_mat", "evaluate", "report"],
                "wall_s": [700.0, 420.0, 800.0, 60.0, 5.0],
                "cpu_s": [690.0, 415.0, 790.0, 100.0, 4.0],
                "max_rss_mb": [900.0, 1200.0, 1500.0, 700.0, 300.0],
            }
        ),
        "curves": curve_rows(rng),
        "rulegraph": RULEGRAPH,
    }


def completion_rows(suite, workload, load, methods=tuple(METHODS), shift=0.0):
    rows = []
    for method in methods:
        rate = METHODS.get(method, 0.5) / load**0.6 + shift
        lead = rate - METHODS["lara"] / load**0.6 - shift
        for seed in ("all", "1", "2") if method.startswith("mara") else ("all",):
            rows.append(
                {
                    "suite": suite,
                    "workload": workload,
                    "load": load,
                    "method": method,
                    "predictor": "wls" if method.startswith("lara") else "flow",
                    "allocator": method,
                    "train_seed": seed,
                    "n_episodes": 100 if method == "clairvoyant" else 400,
                    "arrived": 40_000,
                    "completed": int(40_000 * rate),
                    "completion_rate": rate,
                    "ci_low": rate - 0.02,
                    "ci_high": rate + 0.02,
                    "difference_to_lara": lead,
                    "diff_low": lead - 0.01 * (method != "lara"),
                    "diff_high": lead + 0.01 * (method != "lara"),
                    "ci_low_episodes": rate - 0.005,
                    "ci_high_episodes": rate + 0.005,
                    "n_groups": 80,
                    "n_seeds": 2,
                }
            )
    return pd.DataFrame(rows)


def prediction_rows():
    rows = []
    errors = {"flow": 0.13, "direct": 0.135, "kalman": 0.15, "wls": 0.23, "marginal": 0.3, "oracle": 0.0}
    for i, family in enumerate(FAMILIES):
        for predictor, error in errors.items():
            nmae = error * (1 + 0.4 * i)
            row = {
                "predictor": predictor,
                "family": family,
                "split": "held_out" if i else "in_distribution",
                "n_cases": 1200,
                "n_groups": 60,
                "nmae": nmae,
                "nmae_low": 0.9 * nmae,
                "nmae_high": 1.1 * nmae,
                "ncrps": 0.75 * nmae,
                "ncrps_low": 0.68 * nmae,
                "ncrps_high": 0.82 * nmae,
            }
            rows.append(row)
    return pd.DataFrame(rows)


def gap_rows(completion):
    rows = []
    for method, share in {"mara": 0.55, "index": 0.5, "lara_tuned": 0.2}.items():
        for place, part in completion.groupby(["suite", "workload", "load"], sort=False):
            for kind, floor, less in (("reference", "lara", 0.0), ("strongest", "index", 0.5)):
                value = share - less
                rows.append(
                    {
                        "suite": place[0],
                        "workload": place[1],
                        "load": place[2],
                        "method": method,
                        "floor_kind": kind,
                        "floor": floor,
                        "rate": 0.6,
                        "floor_rate": 0.5,
                        "bound_rate": 0.7,
                        "share_closed": value,
                        "share_low": value - 0.1,
                        "share_high": value + 0.1,
                        "n_groups": 80,
                        "n_episodes": int(part["n_episodes"].min()),
                    }
                )
    return pd.DataFrame(rows)


def fan_rows(rng):
    rows = []
    units = np.arange(200)
    for case, family in enumerate(("supervised", "vision", "rl", "rl")):
        loss = 2.0 * (units + 1.0) ** -0.4 * np.exp(0.03 * rng.normal(size=200))
        prefix = 20 + 20 * case
        shapes = {"wls": 1.15, "q05": 0.75, "q25": 0.9, "q50": 1.0, "q75": 1.1, "q95": 1.3}
        ahead = units >= prefix
        parts = {"history": (units[~ahead], loss[~ahead]), "truth": (units[ahead], loss[ahead])}
        parts |= {
            k: (units[ahead], loss[prefix] * f ** ((units[ahead] - prefix) / 60)) for k, f in shapes.items()
        }
        parts["target"] = (np.array([0, 199]), np.full(2, 0.6 * loss[prefix]))
        for kind, (unit, value) in parts.items():
            rows.append(
                pd.DataFrame(
                    {"case": f"c{case}", "family": family, "kind": kind, "unit": unit, "loss": value}
                )
            )
    return pd.concat(rows, ignore_index=True)


def calibration_rows():
    rows = []
    for family in FAMILIES:
        for predictor, skew in {"flow": 1.0, "wls_calibrated": 0.8, "direct": 1.3}.items():
            for x in np.linspace(0.1, 0.9, 9):
                rows.append((predictor, family, "reliability", x, x**skew, 600))
            for x in np.linspace(0.0, 0.9, 10):
                rows.append((predictor, family, "pit", x, 1.0 + (skew - 1.0) * (x - 0.45), 600))
    return pd.DataFrame(rows, columns=["predictor", "family", "kind", "x", "value", "n"])


def attribution_rows():
    rates = {("wls", "lara"): 0.55, ("flow", "lara"): 0.60, ("wls", "mat"): 0.57, ("flow", "mat"): 0.63}
    rates |= {("wls", "index"): 0.56, ("flow", "index"): 0.625}
    parts = []
    for (predictor, allocator), rate in rates.items():
        row = completion_rows("attribution", "supervised", 1.0, ("lara",))
        ends = {"completion_rate": rate, "ci_low": rate - 0.02, "ci_high": rate + 0.02}
        parts.append(
            row.assign(method=f"{allocator}_{predictor}", predictor=predictor, allocator=allocator, **ends)
        )
    return pd.concat(parts, ignore_index=True)


def history_rows():
    pairs = {
        ("index_history_0", "index"): 0.002,
        ("index_history_1", "index"): 0.015,
        ("index_history", "index"): 0.03,
        ("index_history", "index_history_0"): 0.028,
        ("mara_history", "mara"): 0.031,
    }
    return pd.DataFrame(
        [
            {
                "suite": "history",
                "workload": family,
                "load": 1.0,
                "method": method,
                "baseline": baseline,
                "difference": gain,
                "diff_low": gain - 0.01,
                "diff_high": gain + 0.01,
                "diff_low_episodes": gain - 0.004,
                "diff_high_episodes": gain + 0.004,
                "p_value": 0.01,
                "n_groups": 80,
                "n_episodes": 400,
                "rate": 0.6 + gain,
                "baseline_rate": 0.6,
            }
            for family in FAMILIES
            for (method, baseline), gain in pairs.items()
        ]
    )


def effect_rows():
    values = {
        "total": 0.08,
        "predictor": 0.055,
        "allocator": 0.025,
        "interaction": 0.01,
        "predictor_minus_allocator": 0.03,
    }
    return pd.DataFrame(
        [
            {
                "suite": "attribution",
                "workload": "supervised",
                "load": 1.0,
                "method": "mara",
                "predictor": "flow",
                "allocator": "mat",
                "base_method": "lara",
                "effect": effect,
                "value": value,
                "low": value - 0.01,
                "high": value + 0.01,
                "p_value": 0.01,
                "n_groups": 80,
                "n_episodes": 400,
            }
            for effect, value in values.items()
        ]
    )


def fairness_rows():
    methods = ("mara", "lara", "edf", "index", "fair_0", "fair_1", "fair_4")
    rows = completion_rows("fairness", "mix", 1.0, methods)
    rows = rows[rows["train_seed"] == "all"].copy()
    rows["allocator"] = [m if not m.startswith("fair") else "fair_index" for m in rows["method"]]
    rows["completion_rate"] = [0.63, 0.55, 0.47, 0.625, 0.62, 0.61, 0.58]
    rows["n_families"] = 3
    rows["worst_family"] = "rl"
    rows["worst_family_rate"] = [0.50, 0.45, 0.44, 0.49, 0.50, 0.54, 0.56]
    rows["worst_family_low"] = rows["worst_family_rate"] - 0.03
    rows["worst_family_high"] = rows["worst_family_rate"] + 0.03
    rows["jain_family"] = 0.97
    return rows


def group_rows():
    rows = []
    for method in ("mara", "lara", "edf", "index"):
        for i, family in enumerate(FAMILIES):
            rate = METHODS[method] - 0.06 * i
            rows.append(
                {
                    "suite": "fairness",
                    "workload": "mix",
                    "load": 1.0,
                    "method": method,
                    "kind": "family",
                    "name": family,
                    "family": family,
                    "arrived": 9000,
                    "completed": int(9000 * rate),
                    "completion_rate": rate,
                    "ci_low": rate - 0.03,
                    "ci_high": rate + 0.03,
                    "mean_waiting": 8.0 + i,
                    "mean_slowdown": 1.5 + 0.2 * i,
                    "n_groups": 30,
                }
            )
    return pd.DataFrame(rows)


def event_rows(rng):
    events, tasks = [], []
    for method, good in (("lara", 0.55), ("mara", 0.65)):
        free = np.zeros(4, int)
        for task in range(40):
            arrival = 3 * task
            window = int(rng.integers(10, 40))
            node = int(np.argmin(free))
            start = max(int(free[node]), arrival)
            length = int(rng.integers(4, 16))
            served = rng.random() < 0.85
            completed = served and rng.random() < good / 0.85
            if served:
                events += [(method, slot, node, task) for slot in range(start, start + length)]
                free[node] = start + length
            tasks.append(
                (
                    method,
                    task,
                    FAMILIES[task % 3],
                    arrival,
                    arrival + window,
                    completed,
                    start + length - 1 if completed else -1,
                )
            )
    return (
        pd.DataFrame(events, columns=["method", "slot", "node", "task"]),
        pd.DataFrame(
            tasks, columns=["method", "task", "family", "arrival", "deadline", "completed", "finish"]
        ),
    )


def long_rows(rng, runs, phases, metrics):
    rows = []
    for run in runs:
        for phase in phases:
            for metric in metrics:
                for step in range(0, 100, 5):
                    value = np.exp(-step / 40) + 0.02 * rng.random()
                    row = {"run": run, "step": step, "metric": metric, "value": value}
                    rows.append(row if phase is None else row | {"phase": phase})
    return pd.DataFrame(rows)


def curve_rows(rng):
    rows = []
    for family in (*FAMILIES, "synthetic"):
        for curve in range(6):
            loss = (np.arange(200) + 1.0) ** -rng.uniform(0.1, 0.8) * np.exp(0.05 * rng.normal(size=200))
            rows.append(
                pd.DataFrame(
                    {"family": family, "curve": f"{family}{curve}", "unit": np.arange(200), "loss": loss}
                )
            )
    return pd.concat(rows, ignore_index=True)


RULEGRAPH = """digraph snakemake_dag {
    graph[bgcolor=white, margin=0];
    0[label = "all", color = "0.1 0.6 0.85", style="rounded"];
    1[label = "report", color = "0.1 0.6 0.85", style="rounded"];
    2[label = "tables", color = "0.1 0.6 0.85", style="rounded"];
    3[label = "evaluate", color = "0.1 0.6 0.85", style="rounded"];
    4[label = "forecasts", color = "0.1 0.6 0.85", style="rounded"];
    5[label = "train_flow", color = "0.1 0.6 0.85", style="rounded"];
    6[label = "corpus", color = "0.1 0.6 0.85", style="rounded"];
    7[label = "train_mat", color = "0.1 0.6 0.85", style="rounded"];
    8[label = "traces", color = "0.1 0.6 0.85", style="rounded"];
    1 -> 0
    2 -> 1
    3 -> 2
    4 -> 3
    7 -> 3
    8 -> 3
    5 -> 4
    8 -> 4
    6 -> 5
    4 -> 7
    6 -> 8
}
"""
