"""Odd prefixes get defined answers from every predictor that has a network; the others have their own test."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mara.config.flow import (
    DirectSettings,
    DistilledSettings,
    ExampleSettings,
    FlowSettings,
    TrainingSettings,
    WindowSettings,
)
from mara.predictors.direct import DirectPredictor
from mara.predictors.flow.distilled import DistilledPredictor
from mara.predictors.flow.history import HistoryFlowPredictor
from mara.predictors.flow.predictor import FlowPredictor
from mara.predictors.registry import PREDICTORS

torch.set_num_threads(1)

NAMES = [name for name in PREDICTORS if name.startswith(("flow", "direct"))]
EXAMPLES = ExampleSettings(examples=800, synthetic_curves=60, altered_copies=1, trials=150)
TRAINING = TrainingSettings(steps=2, batch=64, warm_up=1, checkpoint_every=2)
FLOW = FlowSettings(
    examples=EXAMPLES,
    training=TRAINING,
    hidden=16,
    width=16,
    depth=1,
    paths=8,
    window=WindowSettings(tasks=100, steps=2),
)
DIRECT = DirectSettings(examples=EXAMPLES, training=TRAINING, hidden=16, depth=1)
DISTILLED = DistilledSettings(prefixes=60, targets=2, hidden=16, depth=1, compared=20, training=TRAINING)


@pytest.fixture(scope="module")
def fitted(corpus):
    rng = np.random.default_rng(0)
    flows = [FlowPredictor(FLOW).fit(corpus, rng), HistoryFlowPredictor(FLOW).fit(corpus, rng)]
    flows += [flow.with_deadline(corpus, rng) for flow in flows]
    heads = [DistilledPredictor(flow, DISTILLED).fit(corpus, rng) for flow in (flows[0], flows[2])]
    direct = [DirectPredictor(DIRECT, deadline).fit(corpus, rng) for deadline in (False, True)]
    return {predictor.name: predictor for predictor in (*flows, *heads, *direct)}


@pytest.mark.parametrize("name", NAMES)
def test_odd_prefixes_get_defined_answers(fitted, defined_answers, name):
    defined_answers(fitted[name])
