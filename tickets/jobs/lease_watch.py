"""Tell which jobs nobody carries out. Clocks are never compared: who wants to take over looks on for a while."""

from __future__ import annotations

import time

from tickets.jobs.items import JobItem

LEASE_SECONDS = 15.0  # without a heartbeat before a job may be taken over


class LeaseWatch:
    """Remembers when one observer saw each holder's heartbeat move, by its own monotonic clock."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[tuple[str, int], float]] = {}

    def is_free(self, item: JobItem) -> bool:
        """Tell whether it has no holder, or one that gave no heartbeat for so long as this looked on."""
        sign = (item.holder, int(item.counter))
        known = self._seen.get(item.name)
        if known is None or known[0] != sign:
            known = self._seen[item.name] = (sign, time.monotonic())
        return not item.holder or time.monotonic() - known[1] >= LEASE_SECONDS
