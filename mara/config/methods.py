"""The methods that can be compared: an allocator, the predictor it reads, and how it comes to its weights.

Only names stand here, so that the workflow can lay out its jobs without loading any algorithm. To add a
method, add a row; to add an allocator or a predictor, also register it in ``mara.allocators.registry`` or
``mara.predictors.registry``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Method(NamedTuple):
    """One row of the completion table."""

    allocator: str
    """Name in ``mara.allocators.registry``, or ``mat``."""
    predictor: str | None
    """Name in ``mara.predictors.registry``; None for allocators that read no forecast."""
    weights: Literal["fixed", "tuned", "borrowed", "trained"]
    """``fixed``: none to set; ``tuned``: by search on training episodes; ``trained``: once per train seed;
    ``borrowed``: those of the tuned index, or of the trained transformer, on forecasts of the whole model."""


METHODS: dict[str, Method] = {
    "random": Method("random", None, "fixed"),
    "fifo": Method("fifo", None, "fixed"),
    "edf": Method("edf", None, "fixed"),
    "srpt": Method("srpt", "flow_deadline", "fixed"),
    "least_laxity": Method("least_laxity", "flow_deadline", "fixed"),
    "moore_hodgson": Method("moore_hodgson", "flow_deadline", "fixed"),
    "gittins": Method("gittins", "flow_deadline", "fixed"),
    "index": Method("index", "flow_deadline", "tuned"),
    "index_matching": Method("index_matching", "flow_deadline", "tuned"),
    "index_marginal": Method("index", "marginal_deadline", "tuned"),
    "index_slope": Method("index", "slope_calibrated_deadline", "tuned"),
    "index_wls": Method("index", "wls", "tuned"),
    "index_flow": Method("index", "flow", "tuned"),
    "index_direct": Method("index", "direct_deadline", "tuned"),
    "index_history": Method("index", "flow_history_deadline", "tuned"),
    "index_history_0": Method("index", "flow_history_0_deadline", "borrowed"),
    "index_history_1": Method("index", "flow_history_1_deadline", "borrowed"),
    "index_8_paths": Method("index", "flow_8_paths_deadline", "borrowed"),
    "index_2_paths": Method("index", "flow_2_paths_deadline", "borrowed"),
    "index_distilled": Method("index", "flow_distilled_deadline", "tuned"),
    "index_oracle": Method("index", "oracle", "tuned"),
    "lara": Method("lara", "wls", "fixed"),
    "lara_tuned": Method("lara", "wls", "tuned"),
    "lara_slope": Method("lara", "slope_loglog", "tuned"),
    "lara_deadline": Method("lara_deadline", "wls", "tuned"),
    "lara_flow": Method("lara", "flow_deadline", "tuned"),
    "lara_oracle": Method("lara", "oracle", "tuned"),
    "laira": Method("laira", None, "tuned"),
    "mara": Method("mat", "flow_deadline", "trained"),
    "mara_no_deadline": Method("mat", "flow", "trained"),
    "mara_8_paths": Method("mat", "flow_8_paths_deadline", "borrowed"),
    "mara_2_paths": Method("mat", "flow_2_paths_deadline", "borrowed"),
    "mara_history": Method("mat", "flow_history_deadline", "trained"),
    "mara_wls": Method("mat", "wls", "trained"),
    "mara_oracle": Method("mat", "oracle", "trained"),
}

FROM_NOTHING: dict[str, object] = {"warm_start": "none", "lookahead": None}

MAT_VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "mara_scratch": ("learned from nothing by PPO alone", FROM_NOTHING),
    "mara_scratch_no_shaping": (
        "learned from nothing, reward without the log-progress potential",
        FROM_NOTHING | {"shaping": False},
    ),
    "mara_no_mask": ("nodes may clash: no mask on what earlier nodes took", {"mask": False}),
    "mara_independent": ("independent heads: nodes do not see earlier picks", {"autoregressive": False}),
    "mara_no_deadline": ("forecasts without the deadline as an input", {}),
    "mara_8_paths": ("forecasts from 8 sampled paths", {}),
    "mara_2_paths": ("forecasts from 2 sampled paths", {}),
}
"""Ablations of ``mara``: what is changed, in words and as settings of the transformer."""

FAIR_STRENGTHS = {"fair_4": 4.0, "fair_8": 8.0, "fair_16": 16.0, "fair_32": 32.0, "fair_64": 64.0}
"""The index constrained to even completion over families, from loose to strict."""

METHODS |= {name: Method("fair_index", "flow_deadline", "borrowed") for name in FAIR_STRENGTHS}
METHODS |= {name: METHODS["mara"] for name in MAT_VARIANTS if name not in METHODS}


class Predictor(NamedTuple):
    """What a job that runs a predictor depends on."""

    modules: tuple[str, ...]
    """Modules that ``mara.predictors.registry`` loads for it."""
    settings: tuple[str, ...]
    """Sections of the settings that it reads, dotted."""
    logs_training: bool = False
    """Whether fitting it is a training with a log."""


_WLS = Predictor(("predictors.wls",), ("predictors.wls",))
_SLOPE = Predictor(("predictors.slopes",), ("predictors.slopes",))
_FLOW = Predictor(("predictors.flow.predictor",), ("flow",), logs_training=True)
_DISTILLED = Predictor(("predictors.flow.distilled",), ("distilled",))
_HISTORY = Predictor(("predictors.flow.history",), ("flow",), logs_training=True)
_DIRECT = Predictor(("predictors.direct",), ("direct",), logs_training=True)
_CALIBRATION = Predictor(("predictors.calibration",), ("predictors.calibration",))


def _both(first: Predictor, second: Predictor) -> Predictor:
    return Predictor(first.modules + second.modules, first.settings + second.settings)


PREDICTORS: dict[str, Predictor] = {
    "marginal": Predictor(("predictors.marginal",), ("predictors.marginal",)),
    "wls": _WLS,
    "wls_tuned": _WLS,
    "wls_best": Predictor(("predictors.parametric",), ("predictors.parametric",)),
    "wls_calibrated": _both(_WLS, _CALIBRATION),
    "slope_loglog": _SLOPE,
    "slope_semilog": _SLOPE,
    "slope_calibrated": _both(_SLOPE, _CALIBRATION),
    "kalman": Predictor(("predictors.kalman",), ("predictors.kalman",)),
    "neighbours": Predictor(("predictors.neighbours",), ("predictors.neighbours",)),
    "boosting": Predictor(("predictors.boosting",), ("predictors.boosting",)),
    "direct": _DIRECT,
    "flow": _FLOW,
    "flow_distilled": _DISTILLED,
    "flow_history": _HISTORY,
    "oracle": Predictor(("predictors.oracle",), ()),
}
"""Predictors; those that learn from tasks also exist as ``<name>_deadline``, which reads the window too."""

DEADLINE = "_deadline"


FEWER_RUNS = {f"flow_history_0{DEADLINE}": 0, f"flow_history_1{DEADLINE}": 1}
"""Forecasts of ``flow_history_deadline`` that know so many earlier runs at most, in place of three."""

FEWER_PATHS = {f"flow_8_paths{DEADLINE}": 8, f"flow_2_paths{DEADLINE}": 2}
"""``flow_deadline`` with so many sampled paths a forecast, calibrated anew."""


def predictor_row(name: str) -> Predictor:
    """Look up a predictor, with or without the deadline as an input."""
    return PREDICTORS[name.removesuffix(DEADLINE)]
