"""What all settings share: unknown keys are refused, and a read setting never changes."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
