"""``mara record``: forwards to the recorder of the study's training curves."""

from __future__ import annotations


def main(words: list[str]) -> None:
    """Run the recorder's command line on ``words``; it needs torch, which is imported only here."""
    from mara.curves import record

    record.main(words, prog="mara record")
