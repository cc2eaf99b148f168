"""Find the function that delivers to a destination, and say when a delivery that failed is tried again.

A destination is a text: "mail", or an endpoint's id, which begins with its kind ("ep_..."). A package declares its kind
of destination, so that it can go without a trace.

A delivery is tried over some three days. The pauses grow as those that Standard Webhooks recommends, and each is drawn
anew, so that deliveries that failed together are not tried again together.

Source: Standard Webhooks, "Deliverability and reliability" (a schedule over about three days, with jitter).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, Literal

from delivery.outbox.outbox_rows import Work
from portal import clock
from portal.errors import NotFound


@dataclass(frozen=True)
class Outcome:
    """Say what came of a delivery. `retry_after` is in seconds, None where the backoff decides; `note` a sentence."""

    state: Literal["answered", "failed", "dead", "paused"]
    retry_after: float | None = None
    note: str = ""


Deliver = Callable[[Work], Outcome]

_declared: Final[dict[str, Deliver]] = {}
_private: Final[set[str]] = set()


def declare_destination(beginning: str, deliver: Deliver, *, is_private: bool = False) -> None:
    """Let `deliver` do the work for all destinations that begin so. Raises ValueError where another does already.

    The event of a private destination is deleted from its row when it is delivered or given up, so it is never sent
    again.
    """
    if is_private:
        _private.add(beginning)
    if _declared.setdefault(beginning, deliver) is not deliver:
        raise ValueError(f"destinations {beginning} are declared twice")


def deliver_for(destination: str) -> Deliver:
    """Return the function that delivers to a destination. Raises NotFound where there is none."""
    for beginning, deliver in _declared.items():
        if destination.startswith(beginning):
            return deliver
    raise NotFound("Nobody delivers to this destination.")


def is_private(destination: str) -> bool:
    """Tell whether what was told to a destination is not kept, so that it cannot be sent again."""
    return destination.startswith(tuple(_private))


# --- when it is tried again ---

_SECONDS, _MINUTES, _HOURS = 1, 60, 3600
PAUSES: Final = (
    5 * _SECONDS, 5 * _MINUTES, 30 * _MINUTES, 2 * _HOURS, 5 * _HOURS, 10 * _HOURS, 14 * _HOURS, 20 * _HOURS,
    20 * _HOURS,
)  # fmt: skip
ATTEMPTS: Final = len(PAUSES) + 1
JITTER: Final = 0.2  # of a pause, which becomes so much shorter or longer at most
LONGEST_WAIT: Final = 24 * _HOURS  # that a receiver may ask us to wait


def retry_pause(attempt: int, *, uniform: Callable[[float, float], float] = random.uniform) -> timedelta | None:
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
