"""Each kind of bad input gets one clear line; and no seed of the interpreter's hashes matters."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from mara.allocators.edf import edf
from mara.config.cluster import ClusterSettings
from mara.errors import InputError
from mara.simulator.cluster import Cluster
from mara.simulator.simulate import Outcome, Policy, simulate
from mara.workload.forecast_table import ForecastTable, row_offsets
from tests.simulator.cases import ANYTHING, plain, trace_of
from tests.simulator.test_engine import MIXED, busy_trace

TRACE, POOL = trace_of([[(0, 5, 2), (3, 2, 2), (4, 9, 4)], [(2, 3, 3)]])


def spoil(**columns):
    return lambda: simulate(replace(TRACE, **columns), POOL, plain(2), edf())


def forecasts(demand):
    offset = row_offsets(np.array(demand))
    return ForecastTable(
        "marginal", offset, np.zeros((offset[-1], 5), np.float32), np.zeros(offset[-1], np.float32)
    )


def with_forecasts(demand):
    return lambda: simulate(TRACE, POOL, plain(2), edf(), forecasts(demand))


BLIND = replace(edf(), needs_forecasts=True)
NONE = np.zeros(0, np.int32)

BAD = {
    "no tasks": (spoil(offset=np.array([0]), template=NONE, arrival=NONE, deadline=NONE), "no tasks"),
    "deadline first": (spoil(deadline=np.array([5, 2, 13, 5])), "task 1 has deadline 2 before its arrival 3"),
    "negative time": (spoil(arrival=np.array([0, -3, 4, 2])), "task 1 has arrival -3"),
    "not finite": (spoil(deadline=np.array([5, 5, np.inf, 5])), "task 2 has deadline inf"),
    "not a number": (spoil(arrival=np.array([0, 3, np.nan, 2])), "task 2 has arrival nan"),
    "half a slot": (spoil(arrival=np.array([0, 3, 4.5, 2])), "whole slot"),
    "far future": (spoil(deadline=np.array([5, 5, 2**31, 5], np.int64)), "last slot"),
    "task twice": (spoil(offset=np.array([0, 3, 2, 4])), "two episodes"),
    "task in no episode": (spoil(offset=np.array([0, 3])), "or to none"),
    "template missing": (spoil(template=np.array([0, 1, 2, 7])), "template 7, but the pool has 0..3"),
    "no nodes": (lambda: Cluster(np.array([])), "no nodes"),
    "negative speed": (lambda: Cluster(np.array([1.0, -2.0])), "node 1 has speed -2.0"),
    "endless speed": (lambda: Cluster(np.array([np.inf])), "node 0 has speed inf"),
    "more nodes than there are": (
        lambda: Cluster(np.ones(2), max_nodes_per_task=3),
        "3 nodes, but there are 2",
    ),
    "negative cost": (lambda: Cluster(np.ones(2), switching_cost=-1), "switching_cost is -1"),
    "certain failure": (lambda: Cluster(np.ones(2), failure_rate=1.0), "failure_rate is 1.0"),
    "forecasts lack a task": (with_forecasts([2, 2, 4]), "marginal: the table lacks template 3"),
    "forecasts lack rows": (with_forecasts([2, 2, 3, 3]), "lacks the rows of template 2"),
    "forecasts of another pool": (with_forecasts([2, 2, 4, 3, 1]), "has 5 templates, the pool 4"),
    "no forecasts": (lambda: simulate(TRACE, POOL, plain(2), BLIND), "needs a forecast table"),
    "table of another pool": (
        lambda: simulate(TRACE, POOL, plain(2), replace(edf(), table=np.zeros((3, 1), np.float32))),
        "table has 3 rows, not the 11",
    ),
    "not an outcome": (lambda: Outcome.load("no-such-file.parquet"), "not an outcome"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_clear_line(name):
    attempt, text = BAD[name]
    with pytest.raises(InputError) as caught:
        attempt()
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"nodes": 0}, "nodes"),
        ({"nodes": 2, "speeds": [1.0, -1.0]}, "speeds"),
        ({"nodes": 2, "speeds": [1.0]}, "1 given for 2 nodes"),
        ({"nodes": 2, "max_nodes_per_task": 3}, "more than the 2 nodes"),
        ({"node": 2}, "node"),
    ],
)
def test_settings_are_checked_as_well(settings, text):
    with pytest.raises(ValidationError, match=text):
        ClusterSettings(**settings)


def test_settings_make_the_cluster_they_describe():
    settings = ClusterSettings(
        nodes=2, speeds=(0.5, 2.0), switching_cost=0.5, failure_rate=0.1, repair_slots=4
    )
    cluster = Cluster.of(settings)
    assert cluster.speeds.tolist() == [0.5, 2.0]
    assert (cluster.switching_cost, cluster.failure_rate, cluster.repair_slots) == (0.5, 0.1, 4.0)
    assert Cluster.of(ClusterSettings()).speeds.tolist() == [1.0] * 8


def digest() -> str:
    """A hash of everything that a game leaves behind."""
    trace, pool = busy_trace()
    outcome = simulate(trace, pool, MIXED, Policy("anything", ANYTHING.allocate, ANYTHING.run), seed=3)
    columns = [outcome.finish, outcome.first_served, outcome.units, *outcome.totals.values()]
    return hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest()


def test_the_hash_seed_does_not_matter():
    code = "from tests.simulator.test_bad_input import digest; print(digest())"
    environment = os.environ | {"PYTHONHASHSEED": "77", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == digest()
