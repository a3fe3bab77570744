"""The file that says what is wanted of running jobs: ``jobs.yaml`` beside their logs.

jobs:
  - log: resnet/metrics.csv        # from the file's folder; or a run's folder
    target: 0.3
    deadline: 12h                  # s, m, h or d from now; or a date: 2031-05-01 18:00
  - log: ppo
    name: cartpole
    metric: rollout/ep_rew_mean
    target: 475
    best: 500
    deadline_steps: 20000          # steps left of the log's axis
    seconds_per_step: 0.01         # where the log has no clock
"""

from __future__ import annotations

import contextlib
import datetime
import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, field_validator

from mara.config.base import Section
from mara.config.problems import describe
from mara.curves.readers.files import check_file
from mara.curves.readers.read import READERS, read_log
from mara.errors import InputError
from mara.live.advice import MOST_JOBS, Job
from mara.live.forecast import Question

LARGEST = 1_000_000
"""Bytes of the file."""
DEEPEST = 10
"""Levels of nesting."""
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
"""What YAML takes 12:30 for: 750, to the base of 60."""
EXPECTED = "expected `jobs:` and a list of jobs, as `mara advise --help` shows"
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class JobEntry(Section):
    """One job."""

    log: str = Field(min_length=1)
    """Its log or folder, from the folder of the file."""
    target: float = Field(allow_inf_nan=False)
    """Wanted value of its metric."""
    name: str = ""
    """What to call it; the log's path where not given."""
    metric: str | None = None
    """Column; the likeliest where not given."""
    axis: str | None = None
    """step, epoch, time, row or a column."""
    format: str | None = None
    """Format of the log."""
    maximise: bool | None = None
    """Whether more is better; by the metric's name where not given."""
    best: float | None = Field(default=None, allow_inf_nan=False)
    """Best value that the metric can have."""
    deadline: str | float | datetime.datetime | datetime.date | None = None
    """Time left (12h, 90m, 2d; a number counts hours) or the date."""
    deadline_steps: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Steps left of its axis if it trained without a pause."""
    seconds_per_step: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Time a step of its axis takes on a node."""

    @field_validator("target", "best", "deadline", "deadline_steps", "seconds_per_step", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        """Refuse what would pass for a number or cannot be one."""
        if isinstance(value, bool):
            raise ValueError("a number is expected, not yes or no")
        if isinstance(value, list | dict):
            raise ValueError("a single value is expected")
        if isinstance(value, int):
            try:
                return float(value)
            except OverflowError:
                raise ValueError("a number of so many digits cannot be read") from None
        return value

    @field_validator("format")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        """Refuse a format that there is not."""
        if value is not None and value not in READERS:
            raise ValueError(f"{value[:40]!r} is no format; known are {', '.join(READERS)}")
        return value


class JobsFile(Section):
    """The whole file."""

    jobs: list[JobEntry]
    """The jobs."""


def read_jobs(path: Path, now: datetime.datetime | None = None) -> list[Job]:
    """Read the file and all logs that it names.

    Args:
        path: of the file.
        now: from when deadlines given as dates are counted; None for the present.

    Raises:
        InputError: naming the file, the entry and what would be right.
    """
    entries = _entries(path)
    places: dict[str, int] = {}
    for place, entry in enumerate(entries):
        name = entry.name or entry.log
        if places.setdefault(name, place) != place:
            raise InputError(
                f"{path}: jobs.{place}: called {name[:80]}, as jobs.{places[name]} is; give it a name"
            )
    now = now or datetime.datetime.now().astimezone()
    jobs = []
    for place, entry in enumerate(entries):
        log = read_log(path.parent / entry.log, entry.format, entry.metric, entry.axis, entry.maximise)
        where = f"{path}: jobs.{place}.deadline"
        jobs.append(
            Job(
                name=entry.name or entry.log,
                question=Question(log, entry.target, entry.best, entry.deadline_steps),
                seconds_left=_seconds_left(entry.deadline, now, where),
                seconds_per_step=entry.seconds_per_step,
            )
        )
    return jobs


def _entries(path: Path) -> list[JobEntry]:
    if not path.exists():
        raise InputError(f"{path}: no such file; write one as `mara advise --help` shows")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path}: {EXPECTED}")
    if check_file(path) > LARGEST:
        raise InputError(f"{path}: above {LARGEST:,} bytes; expected a short YAML file of jobs")
    try:
        content = yaml.load(path.read_text(encoding="utf-8-sig"), Loader=_Loader)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200] or "nested too deeply"
        raise InputError(f"{path}: not YAML ({reason})") from None
    listed = content.get("jobs") if isinstance(content, dict) else None
    if not isinstance(listed, list) or not listed:
        raise InputError(f"{path}: {EXPECTED}")
    if len(listed) > MOST_JOBS:
        raise InputError(f"{path}: {len(listed):,} jobs; at most {MOST_JOBS:,} are advised on at once")
    strange = [str(key) for key in content if key != "jobs"]
    if strange:
        raise InputError(f"{path}: {strange[0][:40]}: unknown setting; {EXPECTED}")
    try:
        return JobsFile.model_validate(content).jobs
    except ValidationError as error:
        problems = describe(error, JobsFile, [])
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise InputError(f"{path}: " + "; ".join(problems[:3])[:500] + more) from None


class _Loader(yaml.SafeLoader):
    """Plain YAML in one pass.

    Refused on the way, by an :class:`InputError` without the file's name: what makes a small file cost minutes
    or gigabytes (aliases, deep nesting), tags, numbers to the base of 60, and a key that stands twice in an
    object, of which YAML would keep the last.
    """

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Read a node of the tree unless it is refused."""
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            raise InputError(f"{_line(event)}: YAML aliases (*name) are not read here; write the values out")
        if getattr(event, "tag", None) is not None:
            raise InputError(f"{_line(event)}: not YAML of jobs (tags as {event.tag[:40]} are not read here)")
        self.depth += 1
        if self.depth > DEEPEST:
            raise InputError(f"{_line(event)}: not YAML of jobs (nested {self.depth} deep)")
        node = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(node, yaml.ScalarNode) and node.tag in NUMBERS and ":" in node.value:
            raise InputError(f"{_line(node)}: {node.value}: a time without a date; write 90m or a whole date")
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Read an object whose keys differ."""
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                raise InputError(f"{_line(key)}: {str(key.value)[:40]} stands twice; keep one")
            seen.add(str(key.value))
        return node


def _line(place: Any) -> str:
    """Where an event or node of YAML stands."""
    return f"line {place.start_mark.line + 1}"


def _seconds_left(
    deadline: str | float | datetime.date | None, now: datetime.datetime, where: str
) -> float | None:
    if deadline is None:
        return None
    if isinstance(deadline, str) and re.match(r"\d{4}-", deadline):
        # YAML takes only dates with seconds for dates.
        with contextlib.suppress(ValueError):
            deadline = datetime.datetime.fromisoformat(deadline.strip())
    if isinstance(deadline, datetime.date):
        moment = deadline
        if not isinstance(moment, datetime.datetime):
            moment = datetime.datetime.combine(moment, datetime.time.max)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
        return max((moment - now).total_seconds(), 0.0)
    if isinstance(deadline, int | float):
        seconds = deadline * UNITS["h"]
    else:
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([smhd])", deadline.strip())
        if found is None:
            raise InputError(
                f"{where}: {deadline[:40]!r}; expected 90m, 12h, 2d or a date as 2031-05-01 18:00"
            )
        seconds = float(found[1]) * UNITS[found[2]]
    if not 0 <= seconds < 1e12:
        raise InputError(f"{where}: {deadline}; expected the time left, 0 or more")
    return seconds
