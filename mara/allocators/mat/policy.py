"""The trained transformer as a policy: saved, loaded, and run on a trace.

E episodes, T tasks, M nodes. Decoding is greedy, so an outcome depends on weights and trace alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch

from mara.allocators.mat.features import INDEX_IN_PAIR, INDEX_IN_TASK, SIZES
from mara.allocators.mat.greedy import GreedyDecoder
from mara.allocators.mat.lanes import Lanes
from mara.allocators.mat.mask import MaskState
from mara.allocators.mat.network import MatNetwork, Observation
from mara.config.allocators import MatchingWeights
from mara.config.mat import MatSettings
from mara.errors import InputError
from mara.files import UNREADABLE, why_unreadable
from mara.simulator.cluster import Cluster
from mara.simulator.simulate import Outcome, simulate
from mara.tensor_files import save_tensors
from mara.workload.forecast_table import ForecastTable
from mara.workload.tasks import TaskPool
from mara.workload.trace import Trace

LANES = 128
"""Episodes stepped side by side; no result depends on it."""


def build_network(settings: MatSettings, generator: torch.Generator) -> MatNetwork:
    """Make a network with weights drawn from ``generator``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
        prior = settings.warm_start == "prior"
        hidden = (INDEX_IN_TASK, INDEX_IN_PAIR) if settings.warm_start == "none" else ((), ())
        return MatNetwork(settings.network, SIZES, prior, settings.autoregressive, hidden)


@dataclass(frozen=True)
class MatPolicy:
    """The network, the settings that shape it, and the tuned index it starts from."""

    network: MatNetwork
    settings: MatSettings
    weights: MatchingWeights

    def mask_state(self, observation: Observation, cluster: Cluster) -> MaskState:
        """Return what the feasibility mask needs to know."""
        cap = cluster.max_nodes_per_task
        return MaskState(observation.present, observation.up, cap, self.settings.mask)

    def is_the_index(self) -> bool:
        """Whether nothing was learned beyond the prior, so that the compiled index does the same, much faster."""
        network, settings = self.network, self.settings
        learned = (*network.query.parameters(), *network.bias[-1].parameters())
        blank = not any(bool(parameter.any()) for parameter in learned)
        return blank and network.prior and settings.mask and float(network.gain.detach()) > 0

    def save(self, path: Path | str) -> None:
        """Write one file with plain values and tensors."""
        content = {
            "settings": self.settings.model_dump(mode="json"),
            "weights": self.weights.model_dump(mode="json"),
            "network": self.network.state_dict(),
        }
        save_tensors(path, content)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a policy.

        Raises:
            InputError: when the file is not one, or was made by a network of another shape.
        """
        try:
            content = torch.load(path, weights_only=True)
            settings = MatSettings.model_validate(content["settings"])
            network = build_network(settings, torch.Generator())
            network.load_state_dict(content["network"])
            weights = MatchingWeights.model_validate(content["weights"])
        except UNREADABLE as error:
            raise InputError(
                f"{path}: not a trained transformer ({why_unreadable(error)}); train it anew"
            ) from None
        return cls(network, settings, weights)


def run_policy(
    policy: MatPolicy,
    trace: Trace,
    pool: TaskPool,
    cluster: Cluster,
    forecasts: ForecastTable,
    seed: int = 0,
    lanes: int = LANES,
    weights: MatchingWeights | None = None,
) -> Outcome:
    """Simulate all episodes of a trace, decoding greedily; the outcome does not depend on ``lanes``.

    ``weights`` are those of the index tuned for the setting, where it is not the one the policy carries along.

    Raises:
        InputError: see :func:`mara.simulator.problem.prepare`.
    """
    world = Lanes(
        trace,
        pool,
        cluster,
        forecasts,
        weights or policy.weights,
        policy.settings.network,
        drop_clashes=not policy.settings.mask,
        seed=seed,
    )
    return run_lanes(policy, world, lanes)


def run_lanes(policy: MatPolicy, world: Lanes, lanes: int = LANES) -> Outcome:
    """Simulate all episodes of the trace of ``world``; see :func:`run_policy`."""
    if policy.is_the_index():
        return simulate(world.trace, world.pool, world.cluster, world.index, world.forecasts, world.seed)
    decoder, parts = GreedyDecoder(policy.network), []
    for episodes in _batches(world.trace.episodes, lanes):
        world.reset(episodes)
        with torch.inference_mode():
            while world.live.size:
                observation, _ = world.observe()
                encoded = policy.network.encode(observation)
                state = policy.mask_state(observation, world.cluster)
                world.step(decoder(encoded, state))
        parts.append(world.outcome())
    return _join(parts)


def _batches(count: int, size: int) -> Iterator[np.ndarray]:
    for start in range(0, count, size):
        yield np.arange(start, min(start + size, count))


def _join(parts: list[Outcome]) -> Outcome:
    """Put outcomes of consecutive episodes together."""
    names = [name for name in vars(parts[0]) if name not in ("episode", "totals")]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    shift = np.cumsum([0] + [part.totals["busy"].size for part in parts[:-1]])
    episode = np.concatenate([part.episode + np.int32(by) for part, by in zip(parts, shift, strict=True)])
    totals = {name: np.concatenate([part.totals[name] for part in parts]) for name in parts[0].totals}
    return Outcome(episode=episode, totals=totals, **columns)
