"""A desk's policy in one version: targets, the calendar in which they are counted, and the warning before them.

A version never changes. Tickets name the versions that held at each step of their history.

Business time is counted in whole seconds since 1970, so sums have no rounding. Hours are times as a clock on the wall
shows them: an hour that the clock repeats in autumn counts twice, and one that it skips in spring not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from tickets.ticket.due_marks import TARGETS

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


Facts = tuple[str, str, str]  # priority, group and kind of a ticket, "" for none
ANY: Final = ""


@dataclass(frozen=True)
class TargetRule:
    """Seconds of business time for tickets of a priority, a group and a kind, each ANY or one; 0 for no target."""

    priority: str = ANY
    group: str = ANY
    kind: str = ANY
    first: int = 0
    next: int = 0
    solution: int = 0

    def fits(self, facts: Facts) -> bool:
        """Tell whether it is for such a ticket."""
        return all(mine in (ANY, its) for mine, its in zip((self.priority, self.group, self.kind), facts, strict=True))


@dataclass(frozen=True)
class SlaPolicy:
    """The first rule that fits a ticket counts. `warning` is the percentage of a target that is left when people are
    warned, 0 for no warning. `country` and `region` say whose holidays the days off were taken from."""

    version: int
    calendar: Calendar
    rules: tuple[TargetRule, ...]
    warning: int = 0
    country: str = ""
    region: str = ""

    def targets(self, facts: Facts) -> Mapping[str, int]:
        """Return the targets of a ticket in seconds by their names, without those that it does not have."""
        rule = next((rule for rule in self.rules if rule.fits(facts)), None)
        return {name: seconds for name in TARGETS if rule and (seconds := getattr(rule, name))}

    def dump(self) -> str:
        found = asdict(self) | {"calendar": asdict(self.calendar) | {"days_off": sorted(self.calendar.days_off)}}
        return json.dumps(found, separators=(",", ":"), sort_keys=True)

    @classmethod
    def load(cls, text: str) -> SlaPolicy:
        """Return what `dump` wrote, without what a newer version may have added. Raises ValueError, LookupError,
        TypeError."""
        found = json.loads(text)
        calendar = Calendar(
            found["calendar"]["zone"],
            tuple(tuple((int(a), int(b)) for a, b in day) for day in found["calendar"]["hours"]),
            frozenset(found["calendar"]["days_off"]),
        )
        rules = tuple(TargetRule(**_known(TargetRule, rule)) for rule in found["rules"])
        return cls(**_known(cls, found) | {"calendar": calendar, "rules": rules})


def _known(model: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in model.__dataclass_fields__ if name in found}


def duration_text(seconds: int) -> str:
    """Return a target as people type it, "" for none."""
    hours, minutes = divmod(seconds // 60, 60)
    return " ".join([*([f"{hours} h"] if hours else []), *([f"{minutes} min"] if minutes else [])])
