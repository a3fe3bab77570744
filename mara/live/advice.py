"""What each node should train next, and which jobs will miss their deadlines.

Every job's forecast is laid out in common slots of time. A job's index is the study's Gittins index with
urgency (see :mod:`mara.allocators.index`): the best rate of completions that it offers within the time left,
times how much its chance falls if it waits some slots. The jobs of highest index get the nodes. What will
come of it is played through many times: remaining demands are drawn from the forecasts and the same rule
hands out the nodes slot by slot, each job knowing only that it has not finished yet.

Shapes: J jobs, B slots that are looked ahead, K plays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mara.config.allocators import GittinsWeights
from mara.errors import InputError
from mara.live.forecast import Forecaster, Question, Remaining, forecast_all
from mara.predictors.forecast import HORIZON

MOST_SLOTS = 200
PLAYS = 200
MOST_JOBS = 1000
LIKELY, UNLIKELY = 0.8, 0.5
"""A chance from which on a job counts as on time, and one below which it counts as missed."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Job:
    """A running job.

    name: unique. question: its log, target and, as steps of its axis if it trained without a pause, deadline.
    seconds_left: the deadline as time instead. seconds_per_step: time of one step of the log's axis on a
    node; None to go by the log's clock, if it has one.
    """

    name: str
    question: Question
    seconds_left: float | None = None
    seconds_per_step: float | None = None

    @property
    def pace(self) -> float | None:
        """Seconds a step: as given, or the median by the log's clock, so that pauses do not count."""
        log = self.question.log
        if self.seconds_per_step is not None:
            return self.seconds_per_step
        if log.seconds is None or len(log) < 2:
            return None
        pace = float(np.median(np.diff(log.seconds) / np.diff(log.position)))
        return pace if 0 < pace < np.inf else None


@dataclass(frozen=True)
class JobAdvice:
    """Advice on one job.

    node: which node (1..M) should train it next, None for none. rank: its place among the unfinished, from 1;
    None for jobs that are done or broken. index: its worth, only the order means anything.
    remaining: the forecast. chance_alone: to be in time with a node from now on to the end; chance: as the
    nodes will be shared; both None without a deadline, then ``chance`` is that of finishing in the time
    looked ahead. state: reached, diverged, on time, at risk, will miss, or no deadline. reason: in a sentence.
    """

    job: Job
    node: int | None
    rank: int | None
    index: float
    remaining: Remaining
    chance_alone: float | None
    chance: float | None
    state: str
    reason: str


@dataclass(frozen=True)
class Advice:
    """Advice on all jobs, in order of rank, finished and diverged ones last.

    slot_seconds: length of a slot; None where no log has a clock and a slot is one unit of every job.
    """

    jobs: tuple[JobAdvice, ...]
    nodes: int
    slot_seconds: float | None
    notes: tuple[str, ...]


def advise(jobs: Sequence[Job], nodes: int, predictor: Forecaster | None = None, seed: int = 0) -> Advice:
    """Say which jobs ``nodes`` alike nodes should train next.

    Args:
        jobs: those running or waiting; a job can use one node at a time.
        nodes: how many there are.
        predictor: the shipped one unless another, fitted, is given.
        seed: of the plays.

    Raises:
        InputError: for no jobs, more than ``MOST_JOBS``, equal names, less than one node, a deadline as time
            for a job whose time a step is not known, or what :func:`~mara.live.forecast.forecast_all` refuses.
    """
    _check(jobs, nodes)
    forecasts = forecast_all([_question(job) for job in jobs], predictor)
    open_ = [
        row
        for row, (job, forecast) in enumerate(zip(jobs, forecasts, strict=True))
        if not forecast.reached and not job.question.log.diverged
    ]
    notes: list[str] = []
    unit, timed = _unit_times([jobs[row] for row in open_], [forecasts[row] for row in open_], notes)
    left = np.array([_time_left(forecasts[row], u) for row, u in zip(open_, unit, strict=True)])
    slot = _slot(unit, left)
    cdf, slots_left = _in_slots([forecasts[row].cdf for row in open_], unit, left, slot)
    rule = _Rule(cdf, np.isfinite(left))
    index = rule.index(np.zeros((1, len(open_)), np.int64), slots_left[None])[0]
    order = np.argsort(-index, kind="stable")
    chances = play(rule, slots_left, nodes, np.random.default_rng(seed))
    advice = []
    for rank, place in enumerate(order):
        job, forecast = jobs[open_[place]], forecasts[open_[place]]
        alone = float(cdf[place, slots_left[place]]) if np.isfinite(left[place]) else None
        node = rank + 1 if rank < nodes and index[place] > 0 else None
        state, reason = _outlook(alone, float(chances[place]))
        advice.append(
            JobAdvice(
                job,
                node,
                rank + 1,
                float(index[place]),
                forecast,
                alone,
                float(chances[place]),
                state,
                reason,
            )
        )
    for row, (job, forecast) in enumerate(zip(jobs, forecasts, strict=True)):
        if row not in set(open_):
            state = "reached" if forecast.reached else "diverged"
            reason = (
                "the target has been reached: stop it" if forecast.reached else "the newest values are NaN"
            )
            advice.append(JobAdvice(job, None, None, 0.0, forecast, None, None, state, reason))
    return Advice(tuple(advice), nodes, slot if timed else None, tuple(notes))


def _check(jobs: Sequence[Job], nodes: int) -> None:
    if not jobs:
        raise InputError("no jobs: give at least one log with a target")
    if len(jobs) > MOST_JOBS:
        raise InputError(f"{len(jobs)} jobs; at most {MOST_JOBS} are advised on at once")
    if nodes < 1:
        raise InputError(f"{nodes} nodes: at least one is needed")
    seen: set[str] = set()
    for job in jobs:
        if job.name in seen:
            raise InputError(f"job {job.name}: two jobs have this name; names must differ")
        seen.add(job.name)
        if job.seconds_per_step is not None and not 0 < job.seconds_per_step < np.inf:
            raise InputError(f"job {job.name}: {job.seconds_per_step:g} seconds a step; expected more than 0")
        if job.seconds_left is not None and not 0 <= job.seconds_left < np.inf:
            raise InputError(f"job {job.name}: {job.seconds_left:g} seconds left; expected 0 or more")


def _question(job: Job) -> Question:
    """The job's question with its deadline as steps of its axis."""
    if job.seconds_left is None:
        return job.question
    if job.pace is None:
        raise InputError(
            f"job {job.name}: a deadline as time, but its log has no clock; give seconds_per_step, "
            "or the deadline as steps"
        )
    steps = job.seconds_left / job.pace
    if not np.isfinite(steps):
        raise InputError(f"job {job.name}: {job.pace:g} seconds a step; so little cannot be reckoned with")
    if job.question.deadline is not None:
        steps = min(steps, job.question.deadline)
    return replace(job.question, deadline=steps)


def _unit_times(jobs: Sequence[Job], forecasts: Sequence[Remaining], notes: list[str]) -> tuple[Floats, bool]:
    """Length (J,) of every job's unit, in seconds if any job has a clock and else in units of its own."""
    pace = np.array([job.pace or np.nan for job in jobs])
    seconds = pace * np.array([forecast.units.size for forecast in forecasts])
    known = np.isfinite(seconds)
    if not known.any():
        if jobs:
            notes.append("no log has a clock: a unit of every job counts as equally long")
        return np.ones(len(jobs)), False
    if not known.all():
        missing = ", ".join(job.name for job, has in zip(jobs, known, strict=True) if not has)
        notes.append(f"without a clock, and taken to be as fast as the others' median: {missing[:200]}")
    return np.where(known, seconds, np.median(seconds[known])), True


def _time_left(forecast: Remaining, unit: float) -> float:
    """Time until the deadline, in the same measure as ``unit``; inf without one."""
    deadline = forecast.question.deadline
    return np.inf if deadline is None else deadline / forecast.units.size * unit


def _slot(unit: Floats, left: Floats) -> float:
    """A slot: the jobs' median unit, or longer if what matters does not fit into ``MOST_SLOTS``."""
    if len(unit) == 0:
        return 1.0
    needed = np.minimum(left, HORIZON * unit).max()
    return float(max(np.median(unit), needed / MOST_SLOTS))


def _in_slots(
    cdfs: Sequence[Floats], unit: Floats, left: Floats, slot: float
) -> tuple[Floats, NDArray[np.int64]]:
    """Chances (J, B+1) that b slots suffice, and whole slots left (J,), B where there is no deadline."""
    grid = np.arange(MOST_SLOTS + 1) * slot
    cdf = np.array([np.interp(grid, np.arange(len(row)) * u, row) for row, u in zip(cdfs, unit, strict=True)])
    slots = np.minimum(np.floor(left / slot + 1e-9), MOST_SLOTS)
    return cdf.reshape(-1, MOST_SLOTS + 1), slots.astype(np.int64)


class _Rule:
    """The index of jobs that have been trained for u slots without finishing, with T slots left."""

    def __init__(self, cdf: Floats, has_deadline: NDArray[np.bool_]) -> None:
        self.cdf = cdf
        self.has_deadline = has_deadline
        self.wait = round(GittinsWeights().wait)
        self.floor = GittinsWeights().floor
        jobs, width = cdf.shape
        self.rate = np.zeros((jobs, width, width), dtype=np.float32)
        for job in range(jobs):
            self.rate[job] = _rates(cdf[job])

    def chance(self, units: NDArray[np.int64], left: NDArray[np.int64]) -> Floats:
        """P(finished within ``left`` further slots) of all jobs after ``units``: (K, J)."""
        job = np.arange(len(self.cdf))
        last = self.cdf.shape[1] - 1
        now = self.cdf[job, np.minimum(units, last)]
        then = self.cdf[job, np.clip(units + np.maximum(left, 0), 0, last)]
        return (then - now) / np.maximum(1.0 - now, 1e-9)

    def index(self, units: NDArray[np.int64], left: NDArray[np.int64]) -> Floats:
        """The index of all jobs, (K, J); 0 for those that cannot finish."""
        job = np.arange(len(self.cdf))
        last = self.cdf.shape[1] - 1
        fall = self.chance(units, left) - self.chance(units, left - self.wait)
        rate = self.rate[job, np.minimum(units, last), np.clip(left, 0, last)]
        return rate * (self.floor + np.where(self.has_deadline, fall, 0.0))


def _rates(cdf: Floats) -> NDArray[np.float32]:
    """Gittins' rate (u, T) = max over 1 <= b <= T of P(R <= u+b | R > u) / E[min(R-u, b) | R > u].

    cdf: (B+1,). The common factor P(R > u) cancels.
    """
    width = len(cdf)
    survival = 1.0 - cdf
    spent = np.concatenate([[0.0], np.cumsum(survival)])
    u, b = np.ogrid[:width, :width]
    end = np.minimum(u + b, width - 1)
    finished = cdf[end] - cdf[:, None]
    expected = spent[end] - spent[:width, None] + (u + b - end) * survival[-1]
    ratio = np.where(expected > 1e-9, finished / np.maximum(expected, 1e-9), 0.0)
    ratio[:, 0] = 0.0
    return np.maximum.accumulate(ratio, axis=1).astype(np.float32)


def play(rule: _Rule, slots_left: NDArray[np.int64], nodes: int, rng: np.random.Generator) -> Floats:
    """Share (J,) of the plays in which each job finishes in time if the rule hands out ``nodes`` nodes."""
    jobs = len(rule.cdf)
    if jobs == 0:
        return np.zeros(0)
    draw = (rng.permuted(np.tile(np.arange(PLAYS), (jobs, 1)), axis=1) + rng.random((jobs, PLAYS))) / PLAYS
    demand = np.array(
        [np.searchsorted(rule.cdf[job], draw[job], side="left") for job in range(jobs)]
    ).T  # (K, J); B + 1 where the forecast does not say
    units = np.zeros((PLAYS, jobs), dtype=np.int64)
    row = np.arange(PLAYS)[:, None]
    for slot in range(int(slots_left.max())):
        left = np.where(rule.has_deadline, slots_left - slot, slots_left)
        score = rule.index(units, np.broadcast_to(left, units.shape))
        score = np.where((units >= demand) | (left <= 0), -1.0, score)
        if jobs > nodes:
            chosen = np.argpartition(-score, nodes - 1, axis=1)[:, :nodes]
        else:
            chosen = np.broadcast_to(np.arange(jobs), (PLAYS, jobs))
        units[row, chosen] += score[row, chosen] > 0
    return (units >= demand).mean(axis=0)


def _outlook(alone: float | None, chance: float) -> tuple[str, str]:
    if alone is None:
        return "no deadline", "only how soon it may finish counts"
    if chance >= LIKELY:
        return "on time", f"in time in {chance:.0%} of the plays"
    if chance >= UNLIKELY:
        return "at risk", f"in time in {chance:.0%} of the plays"
    if alone < UNLIKELY:
        return "will miss", f"even with a node all the time only {alone:.0%} likely"
    return "will miss", f"{alone:.0%} likely with a node all the time, {chance:.0%} as nodes are shared"
