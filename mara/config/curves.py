"""Settings of the corpus of learning curves."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from mara.config.base import Section


class CurveSettings(Section):
    """Where the recorded curves come from."""

    directory: Path | None = None
    """Folder of supervised.parquet, vision.parquet and rl.parquet; null for those that the package brings."""
    recording_jobs: int = Field(default=2, ge=1)
    """Worker processes when the corpus is recorded again."""
