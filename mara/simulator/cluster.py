"""The cluster: nodes with speeds, and the rules under which they train tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mara.config.cluster import ClusterSettings
from mara.errors import InputError


@dataclass(frozen=True)
class Cluster:
    """M nodes and their rules.

    In one slot a node gives ``speeds[i]`` resource units to at most one task. k nodes that train the
    same task together give (sum of their speeds) x k ** (speedup_exponent - 1). A node that takes up
    another task than it trained last, the first one included, spends ``switching_cost`` slots on
    setting up before it gives any. A working node fails at the start of a slot with probability
    ``failure_rate``, forgets what it had set up, and stays away for ``repair_slots`` slots on average
    (geometric). Training is saved slot by slot, so a failure loses no units.
    """

    speeds: np.ndarray
    max_nodes_per_task: int = 1
    speedup_exponent: float = 1.0
    switching_cost: float = 0.0
    failure_rate: float = 0.0
    repair_slots: float = 10.0

    def __post_init__(self) -> None:
        """Refuse a cluster that cannot be.

        Raises:
            InputError: for no nodes, a speed or a rule outside its range, or a node cap above M.
        """
        speeds = np.asarray(self.speeds, dtype=np.float64)
        object.__setattr__(self, "speeds", speeds)
        if speeds.ndim != 1 or speeds.size == 0:
            raise InputError("cluster: it has no nodes; give at least one speed")
        bad = np.flatnonzero(~(np.isfinite(speeds) & (speeds > 0)))
        if bad.size:
            raise InputError(
                f"cluster: node {bad[0]} has speed {speeds[bad[0]]}; it must be finite and above 0"
            )
        if not 1 <= self.max_nodes_per_task <= speeds.size:
            raise InputError(
                f"cluster: a task may use {self.max_nodes_per_task} nodes, but there are {speeds.size}; "
                f"max_nodes_per_task must lie in 1..{speeds.size}"
            )
        ranges = {
            "speedup_exponent": (0 < self.speedup_exponent <= 1, "in (0, 1]"),
            "switching_cost": (0 <= self.switching_cost < np.inf, ">= 0"),
            "failure_rate": (0 <= self.failure_rate < 1, "in [0, 1)"),
            "repair_slots": (1 <= self.repair_slots < np.inf, ">= 1"),
        }
        for name, (right, limits) in ranges.items():
            if not right:
                raise InputError(f"cluster: {name} is {getattr(self, name)}; it must be {limits}")

    @classmethod
    def of(cls, settings: ClusterSettings) -> Cluster:
        """Build the cluster that the settings describe."""
        rules = settings.model_dump(exclude={"nodes", "speeds"})
        return cls(speeds=np.array(settings.speeds or np.ones(settings.nodes)), **rules)

    @property
    def nodes(self) -> int:
        """Return how many nodes there are."""
        return int(self.speeds.size)
