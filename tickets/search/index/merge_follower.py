"""Merge the indexes that this process adds to, beside the stream.

A process knows what it has added itself, and not what others have. So it looks at an index after some additions, and
begins to count anywhere: processes that live for a few batches only look as often together.

It comes back to an index that it has merged, to delete what was merged when no reader needs it any more.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Final

from portal import clock
from portal.errors import Unavailable
from portal.streams import beside
from portal.streams.memory import Memory
from tickets.search.index import merging, publishing
from tickets.search.index.index_store import IndexStore

log = logging.getLogger("pooldesk.stream")

LOOK_SECONDS: Final = 0.5
WAIT_LIMIT: Final = 300.0  # seconds until what failed again and again is tried again
LOOK_ADDITIONS: Final = merging.NEW_ITEMS // 4
LOOK_BYTES: Final = merging.NEW_BYTES // 4
_SHORT: Final = 1 << 20  # bytes of a merge that is done in the pauses of a longer one
_TENANTS: Final = 10_000  # of which a process remembers what it has added


class MergeFollower:
    """Works in a thread of its own, or `turn` is called now and then.

    A tenant whose merge fails waits before it is tried again, twice as long each time.
    """

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._waits: Memory[str, tuple[float, float]] = Memory(_TENANTS)  # how long, and until when, by tenant
        self._at_work: set[str] = set()
        self._lock = Lock()
        self._added: Memory[str, tuple[int, int]] = Memory(_TENANTS)  # additions and their bytes since the last look
        self._due: dict[str, None] = {}
        self._graves: dict[str, datetime] = {}  # when there is something to delete

    def note(self, added: Mapping[str, int]) -> None:
        """Take note of additions: bytes by tenant."""
        for tenant_id, size in added.items():
            with self._lock:
                additions, in_all = self._added.get(tenant_id) or (_anywhere(), 0)
                additions, in_all = additions + 1, in_all + size
                if additions >= LOOK_ADDITIONS or in_all >= LOOK_BYTES:
                    self._due[tenant_id] = None
                    additions, in_all = 0, 0
                self._added.put(tenant_id, (additions, in_all))

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing is due or at work."""
        return not self._due and not self._at_work

    def running(self) -> AbstractContextManager[None]:
        """Work while the context lasts."""
        return beside.working(self.turn, pause=lambda: LOOK_SECONDS, name="merging of search indexes", log=log)

    def turn(self, again: Callable[[], bool] = lambda: True, *, largest: float = math.inf) -> int:
        """Merge what is due, while `again` says so, and return how many merges were done; none of more than `largest`
        bytes.

        Of a tenant whose index is busy or away the others do not hear; it comes next time. Nor do they wait for one
        whose merge takes long.
        """
        done = 0
        for tenant_id in [one for one in list(self._due) if one not in self._at_work and not self._waits_still(one)]:
            if not again():
                break
            done += self._merge(tenant_id, again, largest)
        for tenant_id in [
            one for one, at in list(self._graves.items()) if at < clock.now() and one not in self._at_work
        ]:
            if not again():
                break
            self._clear_up(tenant_id)
        return done

    def _merge(self, tenant_id: str, again: Callable[[], bool], largest: float) -> int:
        self._at_work.add(tenant_id)
        with self._lock:
            self._due.pop(tenant_id, None)
        others = partial(self.turn, again, largest=min(largest, _SHORT)) if largest > _SHORT else int
        try:
            done = merging.merge_due(IndexStore(tenant_id), again, largest=largest, meanwhile=others)
        except Unavailable as error:
            log.warning("The index of tenant %s is merged later: %s", tenant_id, error.message)
        except Exception:  # of one tenant's index the others need not hear
            log.exception("The index of tenant %s could not be merged, it is tried again later.", tenant_id)
        else:
            self._waits.forget(tenant_id)
            if done:
                self._graves[tenant_id] = clock.now() + publishing.GRACE
            return done
        finally:
            self._at_work.discard(tenant_id)
        seconds, _ = self._waits.get(tenant_id) or (LOOK_SECONDS, 0.0)
        seconds = min(2 * seconds, WAIT_LIMIT)
        self._waits.put(tenant_id, (seconds, self._now() + seconds))
        with self._lock:
            self._due[tenant_id] = None
        return 0

    def _waits_still(self, tenant_id: str) -> bool:
        wait = self._waits.get(tenant_id)
        return wait is not None and self._now() < wait[1]

    def _clear_up(self, tenant_id: str) -> None:
        self._graves.pop(tenant_id, None)
        try:
            left = merging.clear_up(IndexStore(tenant_id))
        except Unavailable as error:
            log.warning("What is left of merges of tenant %s is deleted later: %s", tenant_id, error.message)
            left = 1
        if left:
            self._graves[tenant_id] = clock.now() + publishing.GRACE


def _anywhere() -> int:
    return random.randrange(LOOK_ADDITIONS)  # noqa: S311  # no secret
