"""What columns' names say: which is the axis, which the metric, and whether it is to rise or to fall.

Names are compared in small letters with every other character as ``_``, without the run's name that W&B puts
before `` - ``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from mara.errors import InputError

STEP_NAMES = (
    "global_step",
    "num_updates",
    "total_timesteps",
    "timesteps",
    "total_steps",
    "step",
    "steps",
    "iteration",
    "iterations",
    "iter",
    "iters",
    "itr",
    "it",
    "iter_num",
    "num_iter",
    "update",
    "updates",
    "env_step",
    "env_steps",
    "num_env_steps",
    "total_frames",
    "batch",
    "episode",
    "episodes",
    "num_episodes",
    "round",
    "rounds",
    "generation",
)
EPOCH_NAMES = ("epoch", "epochs")
TIME_NAMES = (
    "wall_time",
    "elapsed_time",
    "time_elapsed",
    "total_time",
    "relative_time",
    "relative_time_process",
    "runtime",
    "wall",
    "timestamp",
    "time",
    "seconds",
    "t",
)
AXIS_NAMES = {"step": STEP_NAMES, "epoch": EPOCH_NAMES, "time": TIME_NAMES}
_PREFIXES = ("train", "training", "valid", "validation", "val", "eval", "test", "trainer", "time", "rollout")
_HELD_OUT = ("val", "valid", "validation", "eval", "test", "dev")

_FALLING = {
    "loss",
    "losses",
    "error",
    "err",
    "perplexity",
    "ppl",
    "mse",
    "mae",
    "rmse",
    "nll",
    "wer",
    "cer",
    "fid",
}
_BOUNDED = {
    *(
        "acc",
        "accuracy",
        "top1",
        "top5",
        "map",
        "map50",
        "map75",
        "map50_95",
        "f1",
        "auc",
        "auroc",
        "precision",
    ),
    *("recall", "iou", "miou", "dice", "jaccard", "kappa", "success", "rouge", "rouge1", "rouge2", "rougel"),
    *("bleu", "meteor", "cider", "ssim", "hit"),
}
_REWARDS = {"reward", "rewards", "rew", "eprewmean", "return", "returns"}
_RISING = {*_REWARDS, "score", "r2", "psnr", "elo", "winrate", "mcc"}
_NEVER_METRIC = {
    *("lr", "learning_rate", "grad_norm", "gnorm", "eta", "fps", "memory", "seed", "index", "rank", "bsz"),
    *("episode_length", "mean_ep_length", "ep_len_mean", "data_time", "runtime", "total_flos", "clip"),
}

PREFERRED = (
    *("val_loss", "valid_loss", "validation_loss", "eval_loss", "test_loss", "dev_loss"),
    *("eval_mean_reward", "rollout_ep_rew_mean", "ep_rew_mean", "eprewmean", "episode_reward_mean"),
    *("episode_reward", "mean_reward", "reward", "episode_return", "return"),
    *("loss", "train_loss", "training_loss", "metrics_map50_95_b", "metrics_map50_95_m"),
    *("metrics_map_0_5_0_95", "value"),
)
"""Metrics that are taken where none is named, the first that there is: a reward says more than the losses of
reinforcement learning, which need not fall."""


def plain(name: str) -> str:
    """A name in small letters and underscores, without what W&B puts before it."""
    return re.sub(r"[^a-z0-9]+", "_", name.rsplit(" - ", 1)[-1].lower()).strip("_")


def _without_prefix(name: str) -> str:
    head, _, rest = name.partition("_")
    return rest if head in _PREFIXES and rest else name


def axis_columns(kind: str, names: Sequence[str]) -> list[str]:
    """The columns that may be a step, epoch or time axis, the likeliest first."""
    known = AXIS_NAMES[kind]
    ranked = []
    for place, name in enumerate(names):
        for short in (plain(name), _without_prefix(plain(name))):
            if short in known:
                ranked.append((known.index(short), place, name))
                break
    return [name for _, _, name in sorted(ranked)]


def is_axis(name: str) -> bool:
    """Whether a name is that of an axis."""
    return any(axis_columns(kind, [name]) for kind in AXIS_NAMES)


def may_be_metric(name: str) -> bool:
    """Whether a column could be what a target is set for."""
    short = plain(name)
    skip = is_axis(name) or short in _NEVER_METRIC or _without_prefix(short) in _NEVER_METRIC
    return bool(short) and not skip and not name.endswith(("__MIN", "__MAX"))


def is_rising(name: str) -> bool:
    """Whether more of it is better, by its name; what is not known counts as a loss."""
    words = set(plain(name).split("_"))
    if words & _FALLING:
        return False
    return bool(words & (_RISING | _BOUNDED))


def is_bounded(name: str) -> bool:
    """Whether it is a rate whose best value is 1, or 100 as a percentage."""
    return bool(set(plain(name).split("_")) & _BOUNDED)


def choose_metric(names: Sequence[str], wanted: str | None, place: str, role: str = "metric") -> str:
    """The column that is asked for, or the one that is most likely meant.

    Args:
        names: columns with numbers.
        wanted: a name, or the end of one after ``/`` or `` - ``, without the ``(B)`` of detectors; None for
            the likeliest.
        place: where this is, for the message.
        role: what the column is to be, for the message.

    Raises:
        InputError: with the names there are, if none or several fit.
    """
    if wanted is not None:
        exact = [name for name in names if name == wanted]
        same = exact or [name for name in names if name.lower() == wanted.lower()]
        same = same or [name for name in names if plain(name) == plain(wanted)]
        same = same or [name for name in names if _end(name) == wanted.lower()]
        same = same or [name for name in names if re.sub(r"\(\w\)$", "", _end(name)) == wanted.lower()]
        if len(same) == 1:
            return same[0]
        near = difflib.get_close_matches(wanted, names, 1)
        hint = f"did you mean {near[0]!r}? " if near and not same else ""
        problem = "fits several columns" if same else "is no column"
        raise InputError(f"{place}: {role} {wanted!r} {problem}; {hint}there are {_listed(same or names)}")
    candidates = [name for name in names if may_be_metric(name)]
    for known in PREFERRED:
        same = [name for name in candidates if plain(name) == known]
        if len(same) == 1:
            return same[0]
        if same:
            raise InputError(f"{place}: several metrics; say which by --metric: {_listed(same)}")
    losses = [name for name in candidates if "loss" in plain(name).split("_")]
    rewards = [name for name in candidates if _REWARDS & set(plain(name).split("_"))]
    for group in (
        [name for name in losses if _held_out(name)],
        rewards or losses,
        [name for name in candidates if is_rising(name) and _held_out(name)],
        candidates,
    ):
        if len(group) == 1:
            return group[0]
    if candidates:
        raise InputError(f"{place}: several metrics; say which by --metric: {_listed(candidates)}")
    raise InputError(f"{place}: no column of a loss or another metric; there are {_listed(names)}")


def _end(name: str) -> str:
    """A name's last part in small letters."""
    return re.split(r"/| - ", name)[-1].lower()


def _held_out(name: str) -> bool:
    """Whether a name says so in front, as ``val_loss``, or at its end, as ``loss/val``."""
    words = plain(name).split("_")
    return words[0] in _HELD_OUT or words[-1] in _HELD_OUT


def _listed(names: Sequence[str]) -> str:
    shown = [repr(name[:60]) for name in names[:12]]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return (", ".join(shown) or "none with numbers") + more
