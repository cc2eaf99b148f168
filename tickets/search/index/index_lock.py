"""Let one process at a time merge a tenant's segments.

It saves work and decides nothing: what makes a merge safe is the condition of its commit, see `publishing.py`. So the
lock may rest on clocks.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from types import TracebackType
from typing import Final

from portal import clock
from portal.errors import Throttled
from tickets.search.index.index_store import IndexStorage

SECONDS: Final = 60.0  # without a sign of life, after which another process may merge


class LockLost(Throttled):
    """Another process merges this tenant's segments: this one was silent for too long."""


class IndexLock:
    """The right to merge one tenant's segments, to be kept from time to time. As a context it ends with it."""

    def __init__(self, store: IndexStorage) -> None:
        self._store = store
        self._me = uuid.uuid4().hex
        self._renew_at = ""

    def take(self) -> bool:
        """Take it. False where another process has it. Raises Throttled, Unavailable."""
        now, until = self._times()
        return self._store.lock(self._me, now=now, until=until)

    def keep(self) -> None:
        """Renew it when it is time to. Raises LockLost, also where the whole index is gone: it is not made again."""
        if clock.stamp() > self._renew_at and not self._store.renew(self._me, until=self._times()[1]):
            raise LockLost("Another process merges this tenant's segments.")

    def _times(self) -> tuple[str, str]:
        now = clock.now()
        self._renew_at = clock.stamp(now + timedelta(seconds=SECONDS / 3))
        return clock.stamp(now), clock.stamp(now + timedelta(seconds=SECONDS))

    def __enter__(self) -> IndexLock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._store.unlock(self._me)
