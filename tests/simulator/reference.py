"""The simulator once more, slow and plain: Python objects, every slot, no skipping, no shared code.

It is the yardstick of the engine; both must agree bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

MASK = (1 << 64) - 1


def scramble(word):
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def uniform(seed, slot, subject):
    return (scramble(scramble(seed ^ slot) ^ subject) >> 11) * 2.0**-53


@dataclass
class Task:
    number: int
    arrival: int
    deadline: int
    demand: int
    units: float = 0.0
    served: int = 0
    first_served: int = -1
    finish: int = -1


@dataclass
class Node:
    speed: float
    up: bool = True
    last: Task | None = None
    setup_left: float = 0.0


@dataclass
class Result:
    tasks: list
    busy: int = 0
    idle: int = 0
    down: int = 0
    set_up: float = 0.0
    switches: int = 0
    slots: int = 0
    log: list = field(default_factory=list)  # (slot, node, task number) of every node that worked


def play(tasks, cluster, seed, choose):
    """One episode. tasks: list of Task sorted by arrival; choose(view) -> one position or -1 a node."""
    nodes = [Node(float(speed)) for speed in cluster.speeds]
    result = Result(tasks)
    horizon = max([task.deadline for task in tasks], default=0)
    for slot in range(horizon):
        if all(t.finish >= 0 or (t.arrival <= slot and t.deadline <= slot) for t in tasks):
            break
        result.slots = slot + 1
        for i, node in enumerate(nodes):
            if cluster.failure_rate > 0:
                luck = uniform(seed, slot, i)
                if node.up and luck < cluster.failure_rate:
                    node.up, node.last, node.setup_left = False, None, 0.0
                elif not node.up:
                    node.up = luck < 1.0 / cluster.repair_slots
        active = [t for t in tasks if t.finish < 0 and t.arrival <= slot < t.deadline]
        assignment = choose(_view(slot, seed, active, nodes, cluster)) if active else [-1] * len(nodes)
        _work(slot, nodes, active, assignment, cluster, result)
    return result


def _work(slot, nodes, active, assignment, cluster, result):
    crew, set_up = {}, 0.0
    for i, (node, position) in enumerate(zip(nodes, assignment, strict=True)):
        if not node.up:
            assert position == -1
            result.down += 1
            continue
        if position == -1:
            result.idle += 1
            continue
        task = active[position]
        result.busy += 1
        result.log.append((slot, i, task.number))
        if node.last is not task:
            node.last, node.setup_left = task, cluster.switching_cost
            result.switches += 1
        spent = min(node.setup_left, 1.0)
        node.setup_left -= spent
        set_up += spent
        crew.setdefault(position, []).append((node, 1.0 - spent))
    result.set_up += set_up
    for position, members in crew.items():
        assert len(members) <= cluster.max_nodes_per_task
        task = active[position]
        training = [node.speed * share for node, share in members if share > 0]
        gain = 0.0
        for units in training:
            gain += units
        if len(training) > 1 and cluster.speedup_exponent != 1:
            gain *= len(training) ** (cluster.speedup_exponent - 1.0)
        if task.served == 0:
            task.first_served = slot
        task.served += 1
        task.units += gain
        if task.units + 1e-9 >= task.demand:
            task.finish = slot


def _view(slot, seed, active, nodes, cluster):
    def last_position(node):
        return next((p for p, task in enumerate(active) if task is node.last), -1)

    n = len(active)
    return SimpleNamespace(
        slot=slot,
        seed=np.uint64(seed),
        active=np.array([t.number for t in active], np.int32),
        units=np.array([t.units for t in active]),
        served=np.array([t.served for t in active], np.int32),
        arrival=np.array([t.arrival for t in active], np.int32),
        deadline=np.array([t.deadline for t in active], np.int32),
        last_position=np.array([last_position(node) for node in nodes], np.int32),
        last_task=np.array([-1 if node.last is None else node.last.number for node in nodes], np.int32),
        setup_left=np.array([node.setup_left for node in nodes]),
        speed=np.array([node.speed for node in nodes]),
        up=np.array([node.up for node in nodes]),
        max_nodes=cluster.max_nodes_per_task,
        switching_cost=cluster.switching_cost,
        speedup_exponent=cluster.speedup_exponent,
        n=n,
    )


def edf(view):
    """Earliest deadlines first; among nodes of one speed a task stays where it was; spares double up."""
    by_deadline = sorted(range(view.n), key=lambda p: (view.deadline[p], p))
    m = len(view.speed)
    queue = (by_deadline[:m] * view.max_nodes)[: len(by_deadline[:m]) * view.max_nodes]
    assignment = [-1] * m
    for speed in sorted(set(view.speed), reverse=True):
        alike = [i for i in range(m) if view.speed[i] == speed and view.up[i]]
        here, queue = queue[: len(alike)], queue[len(alike) :]
        for i in alike:
            if view.last_position[i] in here:
                here.remove(view.last_position[i])
                assignment[i] = view.last_position[i]
        free = [i for i in alike if assignment[i] == -1]
        for i, position in zip(free, sorted(here, key=by_deadline.index), strict=False):
            assignment[i] = position
    return assignment
