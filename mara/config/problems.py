"""Readable problems: one line each, all at once, with the file and a suggestion where there is one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError


class SettingsError(Exception):
    """Holds all problems of the settings, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


def _holds(tree: Any, location: Sequence[str | int]) -> bool:
    for key in location:
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _section_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section that an annotation is, or that it admits beside None."""
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None


def _fields_at(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Return the settings that exist where ``location`` ends, for suggestions."""
    inner: Any = model
    for key in location[:-1]:
        if get_origin(inner) in (list, tuple):
            inner = get_args(inner)[0]
        elif get_origin(inner) is dict:
            inner = get_args(inner)[1]
        else:
            section = _section_in(inner)
            field = section.model_fields.get(str(key)) if section else None
            inner = field.annotation if field else None
    section = _section_in(inner)
    return list(section.model_fields) if section else []


def _line(model: type[BaseModel], problem: Mapping[str, Any]) -> str:
    location = problem["loc"]
    place = ".".join(str(key) for key in location) or "settings"
    if problem["type"] == "extra_forbidden":
        known = _fields_at(model, location)
        close = difflib.get_close_matches(str(location[-1]), known, n=1, cutoff=0.5)
        hint = f"did you mean '{close[0]}'?" if close else f"known here: {', '.join(known)}"
        return f"{place}: unknown setting; {hint}"
    message = problem["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    if problem["type"] == "value_error" or (isinstance(problem["input"], dict | list) and problem["input"]):
        return f"{place}: {message}"
    return f"{place}: {message}, not {problem['input']!r}"


def describe(error: ValidationError, model: type[BaseModel], files: Iterable[Path]) -> list[str]:
    """Turn a validation error into lines ``file: place: what would be right``.

    The file named is the last of ``files`` (later ones override earlier ones) that holds the place.
    """
    trees = []
    for file in files:
        with file.open(encoding="utf-8") as stream:
            trees.append((file, yaml.safe_load(stream) or {}))
    lines = []
    for problem in error.errors():
        holders = [str(file) for file, tree in trees if _holds(tree, problem["loc"])]
        source = f"{holders[-1]}: " if holders else f"{trees[-1][0]}: " if trees else ""
        lines.append(source + _line(model, problem))
    return lines
