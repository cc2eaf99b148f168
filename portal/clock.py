"""Time as it is stored: ISO 8601, UTC, microseconds, a fixed width that sorts as text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_STAMP: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z\Z", re.ASCII)


def now() -> datetime:
    return datetime.now(UTC)


def stamp(at: datetime | None = None, *, offset: int = 0) -> str:
    """Return `at` (default: now) plus `offset` microseconds, as 2026-01-31T12:00:00.000000Z."""
    moment = (at or now()).astimezone(UTC) + timedelta(microseconds=offset)
    # Not strftime, which writes the year 202 with three digits.
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def in_words(text: str) -> str:
    """Return a text as it is, but a stored stamp as pages write a moment: "23 November 2026, 08:23:29 UTC"."""
    return f"{parse(text):%-d %B %Y, %H:%M:%S} UTC" if is_stamp(text) else text


def is_stamp(text: str) -> bool:
    """Tell whether a text has the form of a stored stamp, so that it can stand among sort keys."""
    return _STAMP.match(text) is not None


def parse(value: str) -> datetime:
    """Return the moment in a stored stamp. Raises ValueError for anything else."""
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("a stored moment names its zone")
    return moment
