"""Say when a delivery that failed is tried again, and when it has been tried often enough: over some three days.

The pauses grow as those that Standard Webhooks recommends, and each is drawn anew, so that what failed together is not
tried again together.

Source: Standard Webhooks, "Deliverability and reliability" (a schedule over about three days, with jitter).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Final

_SECONDS, _MINUTES, _HOURS = 1, 60, 3600
PAUSES: Final = (
    5 * _SECONDS, 5 * _MINUTES, 30 * _MINUTES, 2 * _HOURS, 5 * _HOURS, 10 * _HOURS, 14 * _HOURS, 20 * _HOURS,
    20 * _HOURS,
)  # fmt: skip
ATTEMPTS: Final = len(PAUSES) + 1
JITTER: Final = 0.2  # of a pause, which becomes so much shorter or longer at most


def pause(attempt: int, *, uniform: Callable[[float, float], float] = random.uniform) -> timedelta | None:
    """Return how long to wait after the attempt of this number, counted from 1; None after the last one."""
    if attempt >= ATTEMPTS:
        return None
    return timedelta(seconds=PAUSES[max(attempt, 1) - 1] * uniform(1 - JITTER, 1 + JITTER))
