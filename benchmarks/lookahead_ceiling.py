"""What look-ahead adds to a tuned index: ``python benchmarks/lookahead_ceiling.py results --forecasts TABLE``.

Every few slots of a validation episode, single deviations from the index ("this task on a node of that speed", "this
task on no node", held for some slots, the index doing the rest) are judged by paired roll-outs of the index. The best
is done if its mean gain is surely above nothing. Two kinds of roll-out:

- as a scheduler could: remaining demands are drawn from the forecasts, future arrivals from training episodes;
- with ``--clairvoyant``: true demands and true arrivals to the end of the episode: what the same deviations would be
  worth with the future known.

The index is read from tables over whole units here, in roll-outs and in the episodes alike: the clairvoyant gain then
is exactly what its roll-outs promised. Printed after each episode: completion of the index, the gain in points and in
tasks, and the tasks promised, by fresh roll-outs made after the choice. Half-widths are those of 95 % intervals over
episodes. A gain that is promised and does not come is a fault of the forecasts; one that is not even promised is not
to be had from them by one step of improvement with so many roll-outs.

E episodes, D deviations.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from rollouts import Library, Room, Tables, advance, judge, propose

from mara.allocators.mat.features import row_table
from mara.allocators.mat.lanes import Lanes
from mara.config.allocators import MatchingWeights
from mara.config.cluster import ClusterSettings
from mara.config.mat import NetworkSettings
from mara.config.study import SCENARIOS, Scenario
from mara.config.workload import ArrivalSettings
from mara.curves.corpus import load_corpus
from mara.curves.smoothing import NEVER
from mara.learning.lookahead import Deviations, score_table
from mara.learning.worth import FEATURES
from mara.predictors.registry import load_predictor
from mara.predictors.table import tabulate
from mara.simulator.cluster import Cluster
from mara.simulator.engine import SLOT, State, new_state, open_slot, start
from mara.simulator.problem import new_ledger, prepare
from mara.stages.tuned import read_index
from mara.workload.forecast_table import ForecastTable, join_tables
from mara.workload.tasks import TaskPool, join_pools
from mara.workload.trace import Trace, make_trace

HOLD, HORIZON = 4, 60
"""Slots for which a deviation is held, and of a roll-out; what comes after is judged by the worth of the state."""
DEVIATIONS = 16
"""Deviations that are judged, those nearest to the index by its own summed worth."""
HALVING = ((16, 16), (4, 32), (2, 64))
"""How many of them are judged by how many roll-outs each, the better ones further."""
FRESH = 32
"""Roll-outs after the choice, for what was promised."""
FIRST, LAST = 100, 420
"""Slots in which there is look-ahead: from before the first scored arrivals until arrivals end."""


class LookAhead:
    """Plays validation episodes with the index improved by look-ahead.

    Args:
        results: of a full run.
        setting: ``standard`` or ``mixed_speeds``.
        base: ``index`` or ``index_matching``, as tuned there.
        forecasts: of the validation pool.
        episodes: E.
        known: roll-outs know demands and arrivals.
        sure: standard errors that a deviation's mean gain must exceed.
    """

    def __init__(
        self, results: Path, setting: str, base: str, forecasts: ForecastTable, episodes: int, known: bool, sure: float
    ) -> None:  # fmt: skip
        self.known, self.sure, self.rng = known, sure, np.random.default_rng(0)
        scenario = SCENARIOS.get(setting, Scenario())
        cluster = Cluster.of(scenario.cluster or ClusterSettings())
        weights = read_index(results / f"tuned/{setting}/load1/{base}.json")
        pools = [TaskPool.load(results / f"pools/{name}.parquet") for name in ("validation", "training")]
        seen = ForecastTable.load(results / "forecasts/flow_deadline/training")
        rehearsal = Trace.load(results / f"traces/training/{setting}/load1.parquet")
        pool = join_pools(pools, max(map(len, pools)))
        table = join_tables([forecasts, seen], len(pool))
        rate = rehearsal.meta["rate"]
        self.trace = make_trace(pools[0], ArrivalSettings(), rate, episodes, np.random.default_rng(0))
        prepared = prepare(self.trace, pool, cluster, table)
        moved = Trace(**{**vars(rehearsal), "template": rehearsal.template + np.int32(len(pools[0]))})
        other = prepare(moved, pool, cluster, table)
        self.problem, self.donor, self.prepared = prepared.problem, other.problem, prepared
        self.state = new_state(1, prepared.width, cluster.nodes, 0, 0)
        self.ledger = new_ledger(self.problem)
        width = prepared.width + other.width
        room = width + max(int(np.diff(p.offset).max()) for p in (self.problem, self.donor))
        self.box = self.problem._replace(
            offset=np.zeros(2, np.int64),
            **{
                name: np.zeros(room, np.int32)
                for name in ("arrival", "deadline", "demand", "template", "rows")
            },
            row0=np.zeros(room, np.int64),
        )
        self.to = State(*(value[0] for value in new_state(1, width, cluster.nodes, 0, 0)))
        self.to_ledger = new_ledger(self.box)
        self.library = _library(pool, table, int(forecasts.offset[-1]))
        world = Lanes(rehearsal, pools[1], cluster, seen, weights, NetworkSettings())
        world.reset(np.arange(1))
        states = Deviations(world, 1, HOLD, HORIZON, self.rng)
        states.fit_worth(self.rng.integers(rehearsal.episodes, size=32))
        self.tables = _tables(pool, table, cluster, weights, base == "index_matching", states.weights)
        nodes, candidates = cluster.nodes, 3 * cluster.nodes
        self.room = Room(
            np.zeros(candidates, np.int64), np.zeros((nodes, candidates)), np.zeros(nodes, np.int64),
            np.zeros(nodes, np.int32), np.zeros(len(FEATURES)),
        )  # fmt: skip
        most = width * (1 + len(self.tables.worth))
        self.task, self.group, self.loss = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most)

    def play(self, e: int, ahead: bool = True) -> tuple[int, int, int, float]:
        """Play an episode: tasks completed, scored ones, deviations done, and the gain that they promised."""
        first, last = self.problem.offset[e], self.problem.offset[e + 1]
        self.ledger.completed[first:last] = False
        now = State(*(value[0] for value in self.state))
        start(now)
        going = open_slot(self.problem, e, now, self.ledger)
        done, promised = 0, 0.0
        while going:
            slot, task, group = int(now.counter[SLOT]), -1, -1
            if ahead and FIRST <= slot < LAST:
                task, group, gain = self._choose(e, now)
                done += task >= 0
                promised += gain
                task = int(now.active[task]) if task >= 0 else -1
            stop = slot + HOLD if slot >= FIRST else FIRST
            going = advance(self.problem, e, now, self.ledger, self.tables, self.room, task, group, stop)
        completed = self.ledger.completed[first:last]
        scored = self.trace.scored[self.prepared.order[first:last]]
        return int(completed.sum()), int((completed & scored).sum()), done, promised

    def _choose(self, e: int, now: State) -> tuple[int, int, float]:
        """Return position and speed of the deviation to be done (-1: none), and its gain in fresh roll-outs."""
        count = propose(self.problem, e, now, self.tables, self.room, self.task, self.group, self.loss)
        if not count:
            return -1, -1, 0.0
        near = np.argsort(self.loss[:count], kind="stable")[:DEVIATIONS]
        task, group = self.task[near], self.group[near]
        total, square, tries = np.zeros(len(near)), np.zeros(len(near)), 0
        open_ = np.arange(len(near))
        for kept, more in HALVING[:1] if self.known else HALVING:
            open_ = open_[np.argsort(-total[open_], kind="stable")[:kept]]
            more = 1 if self.known else more
            found = self._judge(e, now, task[open_], group[open_], more)
            total[open_] += found[0]
            square[open_] += found[1]
            tries += more
        best = open_[np.argmax(total[open_])]
        mean = total[best] / tries
        error = np.sqrt(max(square[best] / tries - mean**2, 0.0) / tries)
        if mean <= (1e-9 if self.known else self.sure * error):
            return -1, -1, 0.0
        chosen = np.array([best])
        gain = mean if self.known else self._judge(e, now, task[chosen], group[chosen], FRESH)[0][0] / FRESH
        return int(task[best]), int(group[best]), float(gain)

    def _judge(
        self, e: int, now: State, task: np.ndarray, group: np.ndarray, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        total, square = np.zeros(len(task)), np.zeros(len(task))
        seeds = self.rng.integers(2**63, size=count).astype(np.uint64)
        judge(
            self.problem, e, now, self.donor, self.library, self.box, self.to, self.to_ledger, self.tables,
            self.room, task, group, seeds, HOLD, 10_000 if self.known else HORIZON, self.known, total, square,
        )  # fmt: skip
        return total, square


def _library(pool: TaskPool, table: ForecastTable, first: int) -> Library:
    """Rows from ``first`` on, by the units that really remained."""
    template = np.repeat(np.arange(len(pool)), np.diff(table.offset))
    units = np.arange(len(table)) - table.offset[template]
    demand = pool.demand[template].astype(np.int64)
    remaining = np.where(demand == NEVER, NEVER, demand - units)
    bucket = np.minimum(remaining[first:], table.horizon + 1)
    order = np.argsort(bucket, kind="stable")
    wanted = np.arange(table.horizon + 2)
    there = np.unique(bucket)
    nearest = there[np.abs(there[None] - wanted[:, None]).argmin(axis=1)]
    begin, end = (np.searchsorted(bucket[order], nearest, side=side) for side in ("left", "right"))
    feature = np.concatenate([row_table(table)[:, :6], np.log1p(units)[:, None] / 5], axis=1)
    left = table.offset[template + 1] - np.arange(len(table))
    return Library(
        order + first,
        begin,
        end,
        remaining.astype(np.int32),
        left.astype(np.int32),
        feature.astype(np.float32),
    )


def _tables(
    pool: TaskPool, table: ForecastTable, cluster: Cluster, weights: MatchingWeights, matched: bool, state: np.ndarray
) -> Tables:  # fmt: skip
    """Tabulate the index at the mean speed and at every speed of the cluster."""
    zero, one = np.zeros(1, np.int32), np.ones(1, np.bool_)
    longest = Trace(np.array([0, 1]), zero, zero, np.full(1, pool.window.max(), np.int32), one, {})

    def at(speed: float) -> np.ndarray:
        world = Lanes(
            longest, pool, Cluster(np.full(cluster.nodes, speed)), table, weights, NetworkSettings()
        )
        world.reset()
        return score_table(world)

    speeds, group = np.unique(cluster.speeds, return_inverse=True)
    power = weights.speed if matched else 0.0
    each = np.stack([np.float32(speed**power) * np.exp(at(float(speed))) for speed in speeds])
    mean = float(cluster.speeds.mean())
    return Tables(at(mean), each, group.astype(np.int64), float(weights.sticky), matched, state, mean)


def validation_forecasts(results: Path, path: Path) -> ForecastTable:
    """Load the forecasts of the validation pool, made by the run's flow where they are missing."""
    if not path.exists():
        pool, corpus = TaskPool.load(results / "pools/validation.parquet"), load_corpus()
        predictor = load_predictor("flow_deadline", results / "predictors/flow_deadline/model")
        tabulate(predictor, pool, corpus.select(np.isin(corpus.group, pool.group))).save(path)
    return ForecastTable.load(path)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="results of a full run")
    parser.add_argument(
        "--forecasts", type=Path, required=True, help="of the validation pool; made if missing"
    )
    parser.add_argument("--setting", choices=("standard", "mixed_speeds"), default="mixed_speeds")
    parser.add_argument("--base", choices=("index", "index_matching"), default="index_matching")
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--sure", type=float, default=1.0, help="standard errors that a gain must exceed")
    parser.add_argument("--clairvoyant", action="store_true", help="roll-outs know demands and arrivals")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    forecasts = validation_forecasts(arguments.results, arguments.forecasts)
    ahead = LookAhead(
        arguments.results, arguments.setting, arguments.base, forecasts, arguments.episodes, arguments.clairvoyant,
        arguments.sure,
    )  # fmt: skip
    scored = np.bincount(ahead.trace.episode, ahead.trace.scored)
    rows: list[tuple[float, ...]] = []
    for e in range(arguments.episodes):
        base, counted, _, _ = ahead.play(e, ahead=False)
        more, more_counted, done, promised = ahead.play(e)
        rows.append((counted, more_counted - counted, more - base, promised, done))
        before, points, gain, hoped, acted = np.array(rows).T
        share = 100 / scored[: e + 1].mean()
        found = {"episodes": e + 1, "index_completion": share * before.mean(), "deviations": acted.mean()}
        for name, values in (
            ("gain_points", share * points), ("gain_tasks", gain), ("promised_tasks", hoped)
        ):  # fmt: skip
            found[name] = values.mean()
            found[f"{name}_half_width"] = 1.96 * values.std(ddof=1) / np.sqrt(e + 1) if e else np.inf
        found["cpu_s"] = time.process_time()
        print(json.dumps({name: round(float(value), 3) for name, value in found.items()}), flush=True)


if __name__ == "__main__":
    main()
