"""Say when a delivery that failed is tried again, and when it has been tried often enough: over some three days.

The pauses grow as those that Standard Webhooks recommends, and each is drawn anew, so that what failed together is not
tried again together.

Source: Standard Webhooks, "Deliverability and reliability" (a schedule over about three days, with jitter).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from portal import clock

_SECONDS, _MINUTES, _HOURS = 1, 60, 3600
PAUSES: Final = (
    5 * _SECONDS, 5 * _MINUTES, 30 * _MINUTES, 2 * _HOURS, 5 * _HOURS, 10 * _HOURS, 14 * _HOURS, 20 * _HOURS,
    20 * _HOURS,
)  # fmt: skip
ATTEMPTS: Final = len(PAUSES) + 1
JITTER: Final = 0.2  # of a pause, which becomes so much shorter or longer at most
LONGEST_WAIT: Final = 24 * _HOURS  # that a receiver may ask us to wait


def pause(attempt: int, *, uniform: Callable[[float, float], float] = random.uniform) -> timedelta | None:
    """Return how long to wait after the attempt of this number, counted from 1; None after the last one."""
    if attempt >= ATTEMPTS:
        return None
    return timedelta(seconds=PAUSES[max(attempt, 1) - 1] * uniform(1 - JITTER, 1 + JITTER))


def asked_wait(retry_after: str, *, date: str = "") -> float:
    """Return the seconds that an answer asks us to wait, up to LONGEST_WAIT; 0 where it asks for none.

    `retry_after` is the header, in seconds or as a date. A date counts from `date`, the answer's own, so that the
    clocks need not agree; without one it counts from now. Source: RFC 9110, 10.2.3.
    """
    text = retry_after.strip()
    if text.isdecimal() and text.isascii():
        digits = text.lstrip("0")
        return float(LONGEST_WAIT if len(digits) > len(str(LONGEST_WAIT)) else min(int(digits or 0), LONGEST_WAIT))
    until, since = _http_date(text), _http_date(date) or clock.now()
    return min(max((until - since).total_seconds(), 0.0), LONGEST_WAIT) if until else 0.0


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # asctime's form, and -0000, mean UTC
