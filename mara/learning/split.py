"""Curve groups to learn from and others to choose on: what was learned by heart must not pass for an improvement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mara.errors import InputError
from mara.learning.rollout import Course


def split_groups(
    courses: list[Course], share: float, rng: np.random.Generator
) -> tuple[list[Course], list[Course]]:
    """Make two sets of courses whose tasks have no curve group in common: to learn from, and to choose on.

    Args:
        courses: settings with tasks of all groups.
        share: of the groups, to choose on; at least one group stands on either side.
        rng: draws the groups, and the tasks in place of those of the other side.

    Raises:
        InputError: when the tasks of a course are all of one side, as those of a single group are.
    """
    names = np.unique(np.concatenate([course.pool.group[course.trace.template] for course in courses]))
    count = min(max(1, round(share * len(names))), len(names) - 1)
    held = rng.permutation(names)[:count]
    sides: tuple[list[Course], list[Course]] = ([], [])
    for course in courses:
        away = np.isin(course.pool.group[course.trace.template], held)
        for side, belongs in zip(sides, (~away, away), strict=True):
            side.append(with_tasks(course, belongs, rng))
    return sides


def with_tasks(course: Course, belongs: np.ndarray, rng: np.random.Generator) -> Course:
    """The same arrivals with only the tasks that belong, (T,) bool; others are replaced by some of these at random.

    So load, kinds of arrival and what the setting draws from stay as they are.
    """
    donors = np.flatnonzero(belongs)
    if not donors.size:
        raise InputError(
            "mat: the training tasks are of too few curve groups to hold some back for choosing; "
            "take more task templates or training episodes"
        )
    trace = course.trace
    source = np.where(belongs, np.arange(len(trace)), rng.choice(donors, len(trace)))
    window = (trace.deadline - trace.arrival)[source]
    return replace(
        course, trace=replace(trace, template=trace.template[source], deadline=trace.arrival + window)
    )
