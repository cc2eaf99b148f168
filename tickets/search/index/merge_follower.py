"""Merge the indexes that this process adds to, beside the stream.

A process knows what it has added itself, and not what others have. So it looks at an index after some additions, and
begins to count anywhere: processes that live for a few batches only look as often together.

It comes back to an index that it has merged, to delete what was merged when no reader needs it any more.

A tenant that is moved has an index where it was and one where it will be: they are told apart by whose stream they come
from.
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
from portal.dynamo.library_errors import is_missing
from portal.errors import Unavailable
from portal.quotas import BoundedCache
from portal.streams import background, stream_source
from portal.streams.stream_source import POOLED, StreamSource
from tickets.search.index import merging, publishing
from tickets.search.index.index_store import IndexStore

log = logging.getLogger("pooldesk.stream")

LOOK_SECONDS: Final = 0.5
WAIT_LIMIT: Final = 300.0  # seconds until what failed again and again is tried again
LOOK_ADDITIONS: Final = merging.NEW_ITEMS // 4
LOOK_BYTES: Final = merging.NEW_BYTES // 4
_SHORT: Final = 1 << 20  # bytes of a merge that is done in the pauses of a longer one
_TENANTS: Final = 10_000  # of which a process remembers what it has added

_Name = tuple[StreamSource, str]  # of an index: whose stream fills it, and its tenant


class MergeFollower:
    """Works in a thread of its own, or `turn` is called now and then.

    A tenant whose merge fails waits before it is tried again, twice as long each time.
    """

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._added: BoundedCache[_Name, tuple[int, int]] = BoundedCache(_TENANTS)  # since the last look, with bytes
        self._due: dict[_Name, None] = {}
        self._at_work: set[_Name] = set()
        self._waits: BoundedCache[_Name, tuple[float, float]] = BoundedCache(_TENANTS)  # how long, and until when
        self._graves: dict[_Name, datetime] = {}  # when there is something to delete

    def note(self, added: Mapping[str, int]) -> None:
        """Take note of additions to indexes of the current source: bytes by tenant."""
        source = stream_source.current() if added else POOLED
        for tenant_id, size in added.items():
            name = source, tenant_id
            with self._lock:
                additions, in_all = self._added.get(name) or (_anywhere(), 0)
                additions, in_all = additions + 1, in_all + size
                if additions >= LOOK_ADDITIONS or in_all >= LOOK_BYTES:
                    self._due[name] = None
                    additions, in_all = 0, 0
                self._added.put(name, (additions, in_all))

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing is due or at work."""
        return not self._due and not self._at_work

    def running(self) -> AbstractContextManager[None]:
        """Work while the context lasts."""
        return background.working(self.turn, pause=lambda: LOOK_SECONDS, name="merging of search indexes", log=log)

    def turn(self, again: Callable[[], bool] = lambda: True, *, largest: float = math.inf) -> int:
        """Merge what is due, while `again` says so, and return how many merges were done; none of more than `largest`
        bytes.

        Of a tenant whose index is busy or away the others do not hear; it comes next time. Nor do they wait for one
        whose merge takes long.
        """
        done = 0
        for name in [one for one in list(self._due) if one not in self._at_work and not self._waits_still(one)]:
            if again():
                done += self._merge(name, again, largest)
        for name in [one for one, at in list(self._graves.items()) if at < clock.now() and one not in self._at_work]:
            if again():
                self._clear_up(name)
        return done

    def _merge(self, name: _Name, again: Callable[[], bool], largest: float) -> int:
        self._at_work.add(name)
        with self._lock:
            self._due.pop(name, None)
        others = partial(self.turn, again, largest=min(largest, _SHORT)) if largest > _SHORT else int
        try:
            merge = partial(merging.merge_due, again=again, largest=largest, meanwhile=others)
            done = self._at_index(name, merge)
        except Unavailable as error:
            log.warning("The index of tenant %s is merged later: %s", name[1], error.message)
        except Exception:  # of one tenant's index the others need not hear
            log.exception("The index of tenant %s could not be merged, it is tried again later.", name[1])
        else:
            self._waits.forget(name)
            if done:
                self._graves[name] = clock.now() + publishing.GRACE
            return done
        finally:
            self._at_work.discard(name)
        seconds = min(2 * (self._waits.get(name) or (LOOK_SECONDS,))[0], WAIT_LIMIT)
        self._waits.put(name, (seconds, self._now() + seconds))
        with self._lock:
            self._due[name] = None
        return 0

    def _waits_still(self, name: _Name) -> bool:
        wait = self._waits.get(name)
        return wait is not None and self._now() < wait[1]

    def _clear_up(self, name: _Name) -> None:
        self._graves.pop(name, None)
        try:
            left = self._at_index(name, merging.clear_up)
        except Unavailable as error:
            log.warning("What is left of merges of tenant %s is deleted later: %s", name[1], error.message)
            left = 1
        if left:
            self._graves[name] = clock.now() + publishing.GRACE

    @staticmethod
    def _at_index(name: _Name, work: Callable[[IndexStore], int]) -> int:
        """Work on an index where it is. Return 0 where it is no more. Raises Unavailable."""
        source, tenant_id = name
        try:
            with source.entered():
                return work(IndexStore(tenant_id))
        except Unavailable as error:
            if _is_no_more(source, error):
                return 0
            raise


def _is_no_more(source: StreamSource, error: Unavailable) -> bool:
    """Tell whether it was in a table of the tenant's own that was deleted, or lay at a place that is listed no more."""
    if source == POOLED:
        return False
    try:
        return is_missing(error) or source not in stream_source.placed()
    except Unavailable:
        return False


def _anywhere() -> int:
    return random.randrange(LOOK_ADDITIONS)  # noqa: S311  # no secret
