"""Settings of the cluster: its nodes and what they cost to switch, share and lose."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from mara.config.base import Section


class ClusterSettings(Section):
    """The nodes. Defaults are the published setting: alike nodes, free pre-emption, one node a task."""

    nodes: Annotated[int, Field(ge=1)] = 8
    """How many nodes there are."""
    speeds: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...] | None = None
    """Resource units that each node gives in a slot; leave out for 1 everywhere."""
    max_nodes_per_task: Annotated[int, Field(ge=1)] = 1
    """How many nodes may train one task in the same slot."""
    speedup_exponent: Annotated[float, Field(gt=0, le=1)] = 1.0
    """k alike nodes on one task are worth k to this power; 1 is linear speed-up."""
    switching_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Slots, or a fraction of one, that a node spends on setting up a task it did not train last."""
    failure_rate: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Probability that a working node fails at the start of a slot."""
    repair_slots: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 10.0
    """Mean number of slots that a failed node stays away."""

    @model_validator(mode="after")
    def _consistent(self) -> ClusterSettings:
        if self.speeds is not None and len(self.speeds) != self.nodes:
            raise ValueError(f"speeds: {len(self.speeds)} given for {self.nodes} nodes; give one a node")
        if self.max_nodes_per_task > self.nodes:
            raise ValueError(
                f"max_nodes_per_task: {self.max_nodes_per_task} is more than the {self.nodes} nodes there are"
            )
        return self
