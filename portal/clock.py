"""Time as it is stored: ISO 8601, UTC, microseconds, a fixed width that sorts as text.

And time zones by their names in the database of IANA: which there are, and which day a moment is in one of them.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

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


UTC_NAME: Final = "UTC"
_AREAS: Final = (
    *("Africa/", "America/", "Antarctica/", "Asia/", "Atlantic/"),
    *("Australia/", "Europe/", "Indian/", "Pacific/"),
)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return all names of zones that are known here, those of former times too."""
    return frozenset(available_timezones() - {"Factory", "localtime", "posixrules"})


@lru_cache(maxsize=1)
def choices() -> tuple[tuple[str, str], ...]:
    """Return the zones to choose from, with labels: UTC, and those of places."""
    places = sorted(name for name in zone_names() if name.startswith(_AREAS))
    return ((UTC_NAME, UTC_NAME), *((name, name.replace("_", " ")) for name in places))


@lru_cache(maxsize=1024)
def zone_of(name: str) -> ZoneInfo:
    """Return a zone by its name, UTC for one that is not known here: the lists of two machines may differ."""
    return ZoneInfo(name if name in zone_names() else UTC_NAME)


def day_of(stamp: str, zone: str) -> str:
    """Return the day of a stored moment in a zone: "2026-11-20". In UTC a stamp begins with its day."""
    if zone == UTC_NAME:
        return stamp[:10]
    return parse(stamp).astimezone(zone_of(zone)).date().isoformat()


def today(zone: str) -> date:
    return now().astimezone(zone_of(zone)).date()


def day_begins(day: date, zone: str) -> datetime:
    """Return the first moment of a day in a zone, in UTC.

    Where midnight is left out, because clocks are put forward, it is the first moment after that; where it comes twice,
    the earlier one. A day that a zone has left out whole begins with the next one. The first and the last day that
    there are begin within what can be written.
    """
    try:
        # Fold 0 reads a time that is left out by the offset of before, which leads to the moment of the change itself.
        return datetime(day.year, day.month, day.day, tzinfo=zone_of(zone)).astimezone(UTC)
    except OverflowError:
        return datetime(day.year, day.month, day.day, tzinfo=UTC)


def day_ends(day: date, zone: str) -> datetime:
    """Return the last moment of a day in a zone, in UTC."""
    if day == date.max:
        return datetime.max.replace(tzinfo=UTC)
    return day_begins(day + timedelta(days=1), zone) - timedelta(microseconds=1)


def named(zone: str, moment: datetime) -> str:
    """Name a zone with its offset at a moment: "Europe/Berlin (UTC+1)"."""
    offset = moment.astimezone(zone_of(zone)).utcoffset() or timedelta()
    if zone == UTC_NAME:
        return zone
    minutes = round(abs(offset).total_seconds() / 60)
    hours = f"{minutes // 60}:{minutes % 60:02}" if minutes % 60 else f"{minutes // 60}"
    return f"{zone} (UTC{('+' if offset > timedelta() else '-') + hours if minutes else ''})"
