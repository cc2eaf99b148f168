"""Keep what one writer sends to an index below what a partition of DynamoDB takes.

The blocks of a segment share one partition, and a large merge could send thousands of write units there in a second.
AWS gives a partition 1,000; source: AWS, "Designing partition keys to distribute your workload".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

UNITS_A_SECOND: Final = 600.0
# Write units that may come at once, beside what one group of requests takes: 16 blocks of 16 KB are 256.
BURST: Final = 120.0


class WritePace:
    """Count the write units that were sent, and wait where they would come too fast."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep):
        self._now, self._sleep = now, sleep
        self._sent_until = now()  # when all that was sent would have been sent at an even pace

    def spend(self, units: float) -> None:
        """Take note of write units that were sent."""
        self._sent_until = max(self._sent_until, self._now()) + units / UNITS_A_SECOND

    def wait(self) -> None:
        """Return when there is room for a group of requests."""
        ahead = self._sent_until - self._now() - BURST / UNITS_A_SECOND
        if ahead > 0:
            self._sleep(ahead)
