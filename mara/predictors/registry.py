"""Predictors by name. Modules are imported when first asked for, so that a slope needs no neural network."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mara.config.flow import DirectSettings, DistilledSettings, FlowSettings
from mara.config.predictors import PredictorSettings
from mara.errors import InputError
from mara.predictors.forecast import Predictor


class Sections(NamedTuple):
    """The sections of the settings that predictors read."""

    predictors: PredictorSettings
    flow: FlowSettings
    direct: DirectSettings
    distilled: DistilledSettings


Build = Callable[[Sections, bool], Predictor]
"""Makes an unfitted predictor from the settings; the last argument says whether the deadline is an input."""


def _wls(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.wls import Wls

    return Wls(settings.predictors.wls)


def _wls_tuned(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.wls import Wls

    return Wls(settings.predictors.wls, tuned=True)


def _wls_calibrated(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.calibration import Calibrated
    from mara.predictors.wls import Wls

    tuned = Wls(settings.predictors.wls, tuned=True)
    return Calibrated(tuned, "wls_calibrated", deadline, settings.predictors.calibration)


def _slope_loglog(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.slopes import Slope

    return Slope("loglog", settings.predictors.slopes)


def _slope_semilog(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.slopes import Slope

    return Slope("semilog", settings.predictors.slopes)


def _slope_calibrated(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.calibration import Calibrated
    from mara.predictors.slopes import Slope

    return Calibrated(
        Slope("loglog", settings.predictors.slopes),
        "slope_calibrated",
        deadline,
        settings.predictors.calibration,
    )


def _kalman(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.kalman import Kalman

    return Kalman(settings.predictors.kalman)


def _neighbours(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.neighbours import Neighbours

    return Neighbours(settings.predictors.neighbours)


def _boosting(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.boosting import Boosting

    return Boosting(deadline, settings.predictors.boosting)


def _wls_best(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.parametric import WlsBest

    return WlsBest(settings.predictors.parametric)


def _marginal(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.marginal import Marginal

    return Marginal(deadline, settings.predictors.marginal)


def _flow(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.flow.predictor import FlowPredictor

    return FlowPredictor(settings.flow, deadline)


def _flow_distilled(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.flow.distilled import DistilledPredictor
    from mara.predictors.flow.predictor import FlowPredictor

    return DistilledPredictor(FlowPredictor(settings.flow, deadline), settings.distilled)


def _flow_history(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.flow.history import HistoryFlowPredictor

    return HistoryFlowPredictor(settings.flow, deadline)


def _direct(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.direct import DirectPredictor

    return DirectPredictor(settings.direct, deadline)


def _oracle(settings: Sections, deadline: bool) -> Predictor:
    from mara.predictors.oracle import Oracle

    return Oracle()


_BUILD: dict[str, tuple[Build, bool]] = {
    "wls": (_wls, False),
    "wls_tuned": (_wls_tuned, False),
    "wls_best": (_wls_best, False),
    "slope_loglog": (_slope_loglog, False),
    "slope_semilog": (_slope_semilog, False),
    "kalman": (_kalman, False),
    "neighbours": (_neighbours, False),
    "oracle": (_oracle, False),
    "wls_calibrated": (_wls_calibrated, True),
    "slope_calibrated": (_slope_calibrated, True),
    "boosting": (_boosting, True),
    "marginal": (_marginal, True),
    "direct": (_direct, True),
    "flow": (_flow, True),
    "flow_distilled": (_flow_distilled, True),
    "flow_history": (_flow_history, True),
}
"""Name -> how to build it, and whether there is a variant ``<name>_deadline`` that also reads the window."""

DEADLINE = "_deadline"

PREDICTORS: tuple[str, ...] = tuple(_BUILD) + tuple(
    name + DEADLINE for name, (_, has_variant) in _BUILD.items() if has_variant
)
"""All names."""


def _find(name: str) -> tuple[Build, bool]:
    if name not in PREDICTORS:
        near = difflib.get_close_matches(name, PREDICTORS, 1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(PREDICTORS)}"
        raise InputError(f"predictor {name!r}: unknown; {hint}")
    deadline = name not in _BUILD
    return _BUILD[name.removesuffix(DEADLINE)][0], deadline


def make_predictor(
    name: str,
    settings: PredictorSettings | None = None,
    flow: FlowSettings | None = None,
    direct: DirectSettings | None = None,
    distilled: DistilledSettings | None = None,
) -> Predictor:
    """An unfitted predictor; an :class:`InputError` suggests the nearest name for one that does not exist."""
    build, deadline = _find(name)
    sections = Sections(
        settings or PredictorSettings(),
        flow or FlowSettings(),
        direct or DirectSettings(),
        distilled or DistilledSettings(),
    )
    return build(sections, deadline)


def load_predictor(name: str, path: Path) -> Predictor:
    """Read the fitted predictor that was saved at ``path``."""
    return type(make_predictor(name)).load(path)
