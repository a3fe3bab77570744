"""Arrival processes: Poisson, bursty, diurnal, and replay of submit times from a file.

The first three are a unit-rate Poisson process run through the inverse of the cumulative rate; the rate is
constant inside a slot. Replay reads a part of the file (round its end, if need be) and stretches time
so that the mean rate is the asked one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mara.config.workload import ArrivalSettings
from mara.errors import InputError
from mara.workload.traces.read import read_trace


@dataclass(frozen=True)
class Submissions:
    """n submissions read from a file, sorted by time."""

    submit: np.ndarray
    """(n,) float64 seconds since the first submission, rising."""
    patience: np.ndarray | None
    """(n,) float64 seconds from submission to deadline, where the file has deadlines."""


def read_submissions(path: Path | str) -> Submissions:
    """Read the submit times and, where it has them, the deadlines of a trace in any known format.

    InputError for a file that `mara.workload.traces.read.read_trace` refuses, for its first bad row, for
    fewer than two different submit times, and where only some jobs have a deadline.
    """
    jobs = read_trace(path, strict=True, durations=False)
    if jobs.submit[0] == jobs.submit[-1]:
        raise InputError(f"{path}: needs at least two different submit times to replay")
    without = np.isnan(jobs.deadline)
    if without.any() and not without.all():
        line = int(jobs.line[without].min())
        raise InputError(f"{path}: line {line}: no deadline, but other rows have one; give all or none")
    patience = None if without.any() else jobs.deadline - jobs.submit
    return Submissions(jobs.submit - jobs.submit[0], patience)


def arrival_slots(settings: ArrivalSettings, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Arrival slots (n,) int32, non-decreasing, of one episode of a Poisson, bursty or diurnal process.

    ``rate`` is the mean number of arrivals a slot.
    """
    slots = settings.slots
    points, rates = rng.spawn(2)
    intensity = np.concatenate([[0.0], np.cumsum(rate * _relative_rate(settings, rates))])  # (S+1,)
    step = np.zeros(0)
    while step.sum() <= intensity[-1]:  # blocks of one size: the points do not depend on the rate
        step = np.concatenate([step, points.standard_exponential(256)])
    at = np.cumsum(step)
    slot = np.searchsorted(intensity, at[at < intensity[-1]], side="right") - 1
    return np.minimum(slot, slots - 1).astype(np.int32)


def _relative_rate(settings: ArrivalSettings, rng: np.random.Generator) -> np.ndarray:
    """Rate over its mean in each slot: (S,)."""
    slots = settings.slots
    if settings.process == "bursty":
        share, ratio = settings.burst_share, settings.burst_ratio
        calm = 1 / (1 - share + share * ratio)
        leave = 1 / settings.burst_slots
        enter = leave * share / (1 - share)  # the stationary share of bursts is then `share`
        burst, state = rng.uniform() < share, np.zeros(slots, dtype=bool)
        for t, u in enumerate(rng.uniform(size=slots)):
            state[t] = burst
            burst = u >= leave if burst else u < enter
        return np.where(state, ratio * calm, calm)
    if settings.process == "diurnal":
        phase = rng.uniform()
        day = (np.arange(slots) + 0.5) / settings.diurnal_period + phase
        return 1 + settings.diurnal_amplitude * np.sin(2 * np.pi * day)
    return np.ones(slots)


def replay_slots(
    settings: ArrivalSettings, rate: float, submissions: Submissions, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None]:
    """Arrival slots (n,) int32 of one episode that replays a random part of a file, and windows (n,).

    Windows are in slots, and None where the file has no deadlines.
    """
    submit, n = submissions.submit, len(submissions.submit)
    gap = np.diff(submit, append=submit[-1] + submit[-1] / (n - 1))  # the step round the end is a mean one
    length = gap.sum() * rate / n  # seconds a slot
    first = int(rng.integers(n))
    repeats = int(np.ceil(settings.slots * rate / n)) + 2
    index = (first + np.arange(repeats * n)) % n
    at = np.concatenate([[0.0], np.cumsum(gap[index])[:-1]]) / length
    inside = at < settings.slots
    windows = None if submissions.patience is None else submissions.patience[index[inside]] / length
    return np.floor(at[inside]).astype(np.int32), windows
