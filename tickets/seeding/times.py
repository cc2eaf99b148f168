"""When things happen in the demonstration: in office hours, mostly on weekdays, and never later than the given day."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from typing import Final

SPAN: Final = 30  # days before the given one in which tickets are opened
_BY_WEEKDAY: Final = (10, 11, 10, 9, 8, 1, 1)  # how many of them on which day, Monday first
_OFFICE: Final = (7.0, 18.5)  # hours UTC


def opening_time(day: date, position: float) -> datetime:
    """Return the moment at `position` (0 to 1) among all openings in the SPAN days before `day`; it grows with it."""
    days, until = _calendar(day)
    place = position * until[-1]
    index = min(bisect(until, place), len(days) - 1)
    before = until[index - 1] if index else 0
    share = min((place - before) / (until[index] - before), 0.999999)
    begin, end = _OFFICE
    return days[index] + timedelta(hours=begin + share * (end - begin))


@lru_cache(maxsize=8)
def _calendar(day: date) -> tuple[list[datetime], list[int]]:
    """Return the days and, for each, how many are opened until its end, in arbitrary units."""
    end = datetime(day.year, day.month, day.day, tzinfo=UTC)
    days = [end - timedelta(days=back) for back in range(SPAN, 0, -1)]
    return days, list(accumulate(_BY_WEEKDAY[d.weekday()] for d in days))


def spread(rng: random.Random, start: datetime, end: datetime, mean_hours: Sequence[float]) -> list[datetime]:
    """Return one moment per mean, each that long after the former, give or take; all between start and end."""
    gaps = [1 / 60 + rng.expovariate(1 / mean) for mean in mean_hours]
    room = (end - start) / timedelta(hours=1) * 0.98
    scale = min(1.0, room / sum(gaps)) if gaps else 1.0
    return [start + timedelta(hours=passed * scale) for passed in accumulate(gaps)]
