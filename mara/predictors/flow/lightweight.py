"""A distilled flow as plain arrays: forecasts without a neural-network library, ready in about a second.

The file is an ``.npz`` that :meth:`..distilled.DistilledPredictor.export` writes: the head's weights, the prior
and the standardiser that make its inputs, the window's ratio, and the calibration. The forecasts are those of
the distilled predictor up to rounding.

Shapes: B questions, F inputs, L intervals.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mara.errors import InputError
from mara.files import atomic_path
from mara.predictors.flow.calibration import PlainRecalibration, Recalibration, context
from mara.predictors.flow.features import describe_query
from mara.predictors.flow.inputs import Standardizer, raw_inputs, target_inputs
from mara.predictors.flow.passage import cut, interval_cdf
from mara.predictors.flow.prior import PathPrior
from mara.predictors.flow.reweighting import ratio_inputs, reweighted
from mara.predictors.forecast import HORIZON, Forecast, Query
from mara.predictors.trend import log_target

PRETRAINED = Path(__file__).parents[1] / "pretrained" / "flow_distilled_deadline.npz"
"""The model that comes with the package; it reads the window where one is given. See the README beside it."""

Arrays = Mapping[str, NDArray]


class LightweightPredictor:
    """The distilled head, evaluated with NumPy."""

    def __init__(self, arrays: Arrays) -> None:
        self.name = str(arrays["name"])
        self.prior = PathPrior(**part_of("prior", arrays))
        self.standardizer = Standardizer(**part_of("standardizer", arrays))
        self.head = part_of("head", arrays)
        self.ratio = part_of("ratio", arrays)
        maps = [PlainRecalibration(**part_of(kind, arrays)) for kind in ("windowed", "plain")]
        self.recalibration = Recalibration(*maps)

    @classmethod
    def load(cls, path: Path = PRETRAINED) -> Self:
        """Read an exported model; an :class:`InputError` names a file that is none."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return cls(dict(arrays))
        except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            reason = f"{type(error).__name__}: {error}"
            raise InputError(f"{path}: not an exported predictor ({reason})") from None

    def forecast(self, query: Query, horizon: int = HORIZON) -> Forecast:
        """Distributions on 0..horizon; a window (NaN: not given) is taken into account where there is one."""
        description = describe_query(query)
        raw = [
            target_inputs(description, self.prior, log_target(query) - description.level),
            raw_inputs(description, self.prior),
        ]
        cdf = interval_cdf(self._shares(self.standardizer(np.concatenate(raw, axis=1))))
        given = np.isfinite(query.window)
        if self.ratio and given.any():
            inputs = ratio_inputs(description.units[given], query.window[given])
            cdf[given] = reweighted(cdf[given], self._log_ratio(inputs).astype(np.float64))
        cdf = self.recalibration(cdf, query.window, context(description))
        return Forecast.from_cdf(cut(cdf, horizon)).settled(query)

    def _shares(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Shares (B, L) of the intervals for standardised inputs (B, F)."""
        state = self._linear(self.head, "enter", inputs)
        for block in range(sum(name.startswith("widen") and name.endswith("bias") for name in self.head)):
            wide = _silu(self._linear(self.head, f"widen.{block}", _silu(state)))
            state = state + self._linear(self.head, f"narrow.{block}", wide)
        logits = self._linear(self.head, "leave", _silu(state))
        power = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(power / power.sum(axis=1, keepdims=True), dtype=np.float32)

    def _log_ratio(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Log ratios (B, L) for inputs (B, L, 6)."""
        state = np.tanh(self._linear(self.ratio, "enter", inputs))
        state = np.tanh(self._linear(self.ratio, "middle", state))
        return self._linear(self.ratio, "leave", state)[..., 0]

    @staticmethod
    def _linear(weights: Arrays, layer: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
        return x @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"]


def _silu(x: NDArray[np.float32]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # exp(-x) may be infinite, which is the right limit
        return np.asarray(x / (1.0 + np.exp(-x)), dtype=np.float32)


def fields_of(dataclass: Any) -> dict[str, NDArray]:
    """The arrays of a dataclass by name."""
    return {field.name: getattr(dataclass, field.name) for field in fields(dataclass)}


def prefixed(part: str, arrays: Arrays) -> dict[str, NDArray]:
    """The arrays under the names ``part/name``."""
    return {f"{part}/{name}": value for name, value in arrays.items()}


def part_of(part: str, arrays: Arrays) -> dict[str, NDArray]:
    """The arrays that :func:`prefixed` has named, under their own names."""
    start = f"{part}/"
    return {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}


def save_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays as ``.npz``."""
    with atomic_path(path) as part, part.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **dict(arrays))
