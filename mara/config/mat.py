"""Settings of the multi-agent transformer: its network, its training and the switches of its ablations."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mara.config.base import Section


class NetworkSettings(Section):
    """Shape of the network; the defaults decide one slot of 8 nodes and 60 tasks in under 2 ms on one core."""

    width: int = Field(32, ge=8, le=512)
    """Width D of every token."""
    heads: int = Field(4, ge=1, le=16)
    """Attention heads; must divide the width."""
    blocks: int = Field(2, ge=1, le=8)
    """Encoder blocks."""
    feedforward: int = Field(2, ge=1, le=8)
    """Hidden width of a block's perceptron, in multiples of D."""
    candidates_per_node: int = Field(4, ge=1)
    """Tasks kept as tokens per node, the best by the index; a policy picks one per node, so 4 M is ample."""
    candidates_min: int = Field(24, ge=1)
    """Tasks kept as tokens at the least, however few nodes there are."""
    idle_margin: float = Field(12.0, gt=0)
    """How far (in the logits) idling starts below the best task; learning may move it."""


class LookaheadSettings(Section):
    """Policy improvement by paired roll-outs: "task i on node m for `hold` slots, then the index" against the index."""

    rounds: int = Field(1, ge=1)
    """Rounds of labelling and regression; from the second on the states are those that the policy itself visits."""
    states: int = Field(2_000, ge=1)
    """States at which deviations are tried, in all rounds together."""
    deviations: int = Field(16, ge=1)
    """Deviations (node, task) tried in each state."""
    hold: int = Field(4, ge=1)
    """Slots for which a deviation is held."""
    horizon: int = Field(60, ge=1)
    """Slots of each roll-out; what comes after is judged by the worth of the state. Of the advantages predicted from
    labels of 20 slots, labels of 60 slots confirmed 0.6 and of 150 slots 0.4 (one experiment, mixed speeds)."""
    epochs: int = Field(3, ge=1)
    """Passes over the labelled states."""
    batch: int = Field(256, ge=1)
    """States per gradient step."""
    learning_rate: float = Field(3e-3, gt=0)
    """Peak of the cosine schedule while the pair bias is fitted."""
    pointer_rate: float = Field(3e-4, gt=0)
    """The same while the whole network is fitted."""
    weight_decay: float = Field(1e-2, ge=0)
    """Of AdamW."""
    scale: float = Field(100.0, gt=0)
    """Logits per completed task of advantage: the inverse temperature of the improved policy."""
    trust: tuple[float, ...] = (0.0, 0.3, 1.0)
    """Factors on the learned part of the logits among which `held_back` chooses; 0 is the policy of before."""
    trust_episodes: int = Field(48, ge=1)
    """Episodes of each setting on which they are compared."""


class ImitationSettings(Section):
    """Cloning the index from soft targets, for the network without the index as a prior."""

    states: int = Field(40_000, ge=1)
    """States visited for cloning."""
    rounds: int = Field(3, ge=1)
    """Rounds of collection; from the second on half of the episodes follow the network itself (DAgger)."""
    epochs: int = Field(2, ge=1)
    """Passes over all states after each round."""
    batch: int = Field(256, ge=1)
    """States per gradient step."""
    learning_rate: float = Field(2e-3, gt=0)
    """Of Adam."""


class PpoSettings(Section):
    """Proximal policy optimisation with a team reward and γ = 1."""

    updates: int = Field(3, ge=0)
    """Updates; 0 leaves the policy as the stage before made it."""
    sharpen: float = Field(8.0, ge=1)
    """Factor on the logits before the first update, where the index is their prior: greedy choices stay as they
    are, and sampled ones come near them."""
    episodes: int = Field(16, ge=1)
    """Whole episodes played for each update."""
    epochs: int = Field(2, ge=1)
    """Passes over each roll-out."""
    minibatch: int = Field(256, ge=1)
    """Slots per gradient step."""
    learning_rate: float = Field(3e-4, gt=0)
    """Of Adam."""
    clip: float = Field(0.2, gt=0)
    """Half-width of the trust interval of the probability ratio."""
    gae_lambda: float = Field(0.95, ge=0, le=1)
    """λ of the generalised advantage estimate."""
    entropy: float = Field(1e-3, ge=0)
    """Weight of the entropy bonus."""
    value_weight: float = Field(0.5, ge=0)
    """Weight of the value loss."""
    max_gradient: float = Field(0.5, gt=0)
    """Gradients are scaled down to this norm."""
    target_kl: float = Field(0.02, gt=0)
    """An update stops early once the approximate divergence passes it."""
    selection_episodes: int = Field(32, ge=1)
    """Episodes of each setting, of the groups held back, on which the policies before and after are compared."""


class MatSettings(Section):
    """The multi-agent transformer (MAT) allocator."""

    network: NetworkSettings = NetworkSettings()
    """Shape of the network."""
    warm_start: Literal["prior", "imitation", "none"] = "prior"
    """Where learning begins: the index as a prior in the logits, a clone of the index, or nothing. With nothing the
    index is hidden from the network's inputs as well, and PPO alone teaches it by the settings of `scratch`."""
    held_back: float = Field(0.3, gt=0, lt=1)
    """Share of the training tasks' curve groups that nothing is learned from. On them it is chosen how far look-ahead
    is trusted and whether PPO's policy is kept; with nothing to begin with there is no choice, and all are learned
    from."""
    lookahead: LookaheadSettings | None = LookaheadSettings()
    """Policy improvement by look-ahead; null skips it."""
    imitation: ImitationSettings = ImitationSettings()
    """Used with `warm_start: imitation`."""
    ppo: PpoSettings = PpoSettings()
    """Polish by policy gradients."""
    scratch: PpoSettings = PpoSettings(
        updates=24,
        episodes=32,
        epochs=1,
        minibatch=512,
        learning_rate=3e-3,
        gae_lambda=0.4,
        entropy=0.0,
        target_kl=0.2,
    )
    """The same with `warm_start: none`; of what costs the same, many episodes seen once teach most."""
    mask: bool = True
    """Forbid tasks that earlier nodes took; without it a clash leaves the later node idle."""
    shaping: bool = True
    """Give the log-progress potential's differences as intermediate reward."""
    autoregressive: bool = True
    """Let each node see what the nodes before it picked; without it the heads are independent."""
