"""Form the keys of what processes noted: a partition for each minute, so that no partition is written for long."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from portal.schema import keys

_NOTES: Final = "NOTES"


def notes_of(minute: int) -> str:
    """Return the partition of a minute, counted from the epoch: `NOTES#2026-01-31T12:00`."""
    return keys.joined(_NOTES, f"{datetime.fromtimestamp(minute * 60, UTC):%Y-%m-%dT%H:%M}")
