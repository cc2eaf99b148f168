"""Know whose deliveries are held. Dispatchers and consumers ask this for each event before they do anything with it.

All holds lie in one partition and are few, so a process reads them with one Query every few seconds, however many
tenants it serves. An operator's act is therefore obeyed a little later, by REFRESH_SECONDS.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, Literal

from delivery.holding import keys
from delivery.holding.items import HoldItem
from portal.errors import Unavailable
from portal.streams import worker

REFRESH_SECONDS: Final = 2.0

Verdict = Literal["go", "wait", "drop"]


def verdict_on(hold: HoldItem | None, timestamp: str) -> Verdict:
    """Return what is to happen with an event of this moment: it goes out, it waits, or it is dropped."""
    if hold is None:
        return "go"
    if hold.dropped_until and timestamp <= hold.dropped_until:
        return "drop"
    if hold.waits_from and timestamp > hold.waits_from:
        return "wait"
    return "go"


def read() -> dict[str, HoldItem]:
    """Read all holds by tenant id: one Query. Raises Unavailable."""
    return {hold.name: hold for hold in worker.items(HoldItem, keys.HOLDS, consistent=True)}


class HoldBoard:
    """The holds as this process knows them, read again when they are older than REFRESH_SECONDS."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._holds: Mapping[str, HoldItem] | None = None

    def verdict(self, tenant_id: str, timestamp: str) -> Verdict:
        """Return what is to happen with a tenant's event.

        Without an answer from the database the last one counts. Raises Unavailable where there has been none.
        """
        return verdict_on(self._known().get(tenant_id), timestamp)

    def _known(self) -> Mapping[str, HoldItem]:
        with self._lock:
            if self._holds is None or self._clock() - self._read_at >= REFRESH_SECONDS:
                try:
                    self._holds = read()
                except Unavailable:
                    if self._holds is None:
                        raise
                self._read_at = self._clock()
            return self._holds
