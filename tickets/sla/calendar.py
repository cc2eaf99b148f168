"""Count business time: the seconds in which a desk is open, by its hours, its days off and its zone.

Hours are times as a clock on the wall shows them. An hour that the clock repeats in autumn counts twice, and one that
it skips in spring counts not at all. Moments are whole seconds since 1970, so sums have no rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

_DAY: Final = 86_400
_EPOCH: Final = date(1970, 1, 1).toordinal()
_LAST_DAY: Final = 4_000  # days from a start within which a target lies: settings allow none beyond ten years

Span = tuple[int, int]


@dataclass(frozen=True)
class Calendar:
    """`hours` are spans of minutes for each day of the week from Monday on, in order and apart; `days_off` are dates
    such as 2026-12-25."""

    zone: str
    hours: tuple[tuple[Span, ...], ...]
    days_off: frozenset[str] = frozenset()

    def spans(self, start: int, end: int) -> Iterator[Span]:
        """Yield the open spans between two moments, in order."""
        for day in range(start // _DAY, (end - 1) // _DAY + 1):
            for opens, closes in _open(self, day):
                if max(opens, start) < min(closes, end):
                    yield max(opens, start), min(closes, end)

    def between(self, start: int, end: int) -> int:
        """Return the open seconds from a moment to a later one, 0 where it is not later."""
        return sum(closes - opens for opens, closes in self.spans(start, end))

    def after(self, start: int, seconds: int) -> int:
        """Return the first moment at which so many open seconds have passed since the start."""
        left, end = seconds, start + _LAST_DAY * _DAY
        if left <= 0:
            return start
        for opens, closes in self.spans(start, end):
            if closes - opens >= left:
                return opens + left
            left -= closes - opens
        return end


@lru_cache(maxsize=50_000)
def _open(calendar: Calendar, day: int) -> tuple[Span, ...]:
    """Return the open spans of one day of UTC, which has parts of two or three days of the desk."""
    found: list[Span] = []
    for begin, end, offset in _stretches(calendar.zone, day * _DAY, (day + 1) * _DAY):
        for local in range((begin + offset) // _DAY, (end - 1 + offset) // _DAY + 1):
            on = date.fromordinal(_EPOCH + local)
            if on.isoformat() in calendar.days_off:
                continue
            midnight = local * _DAY - offset
            for opens, closes in calendar.hours[on.weekday()]:
                span = max(begin, midnight + opens * 60), min(end, midnight + closes * 60)
                if span[0] < span[1]:
                    found.append(span)
    return tuple(found)


def _stretches(zone: str, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Divide a time at the second at which the zone's clock is changed: begin, end, and seconds ahead of UTC."""
    first, low, high = _offset(zone, begin), begin, end - 1
    if _offset(zone, high) == first:
        yield begin, end, first
        return
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(zone, middle) == first else (low, middle)
    yield begin, high, first
    yield from _stretches(zone, high, end)


def _offset(zone: str, at: int) -> int:
    ahead = datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(zone)).utcoffset()
    return int(ahead.total_seconds()) if ahead else 0
