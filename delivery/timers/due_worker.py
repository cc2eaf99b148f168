"""Find the rows that are due, claim each, and call its handler: tenants in turns, of each the longest due first.

Within a minute the index is sorted by tenant, so a reader that has enough of one tenant skips the rest of its rows by
one Query, however many there are. A turn takes SHARE rows of a tenant from each shard and ends; the next one begins at
the front again, also when its handlers are slow: it begins none after two seconds. So a tenant with any number of due
rows lets another one wait for a turn, which is about a second, and no longer than its slowest handler and two more.

A claim is a conditional update that lets nobody look at the row for a while: for longer each time, so a row whose
handler fails, or ends the process, comes again and again and is in nobody's way. No clock has to agree with another:
a handler that is called twice, or beside itself, does its work once, in a conditional transaction of its own.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from delivery.timers import due, stored
from delivery.timers.stored import SHARDS, DueItem, DueRow
from portal import clock
from portal.dynamo import placement
from portal.dynamo.client import fan_out
from portal.dynamo.placement import Placement, at
from portal.dynamo.store import Action
from portal.errors import ConditionFailed, PortalError, Unavailable
from portal.isolation import guard
from portal.schema import keys
from portal.streams import background, stream_source
from portal.streams.stream_source import POOLED, StreamSource
from portal.streams.worker import WORKER
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import TenantContext

log = logging.getLogger("pooldesk.timers")

LOOK_SECONDS: Final = 5.0  # between two looks at an index in which nothing is due; each costs a Query for each shard
LEAST_SECONDS: Final = 0.2  # between two looks, so that many rows of a minute are taken together
SHARE: Final = 16  # rows of one tenant that a turn takes from a shard
PAGE: Final = 50  # rows of one Query
MOST_READS: Final = 200  # Queries of a shard in one turn; the next turn goes on from there
THREADS: Final = 8
TURN_SECONDS: Final = 2.0  # in which a turn begins handlers; what it has not begun by then is read again by the next
LEASE: Final = timedelta(seconds=30)  # of the first claim; each later one is twice as long
LONGEST_LEASE: Final = timedelta(hours=1)
UNKNOWN: Final = timedelta(minutes=5)  # until a kind of a newer version is looked at again


@dataclass(frozen=True)
class Due:
    """A row as the index has it, and where it lies."""

    row: DueRow
    placement: Placement

    @property
    def tenant_id(self) -> str:
        parts = keys.collection_parts(self.row.pk)
        if parts is None:
            raise ValueError("a row of the due index without a tenant")
        return parts[0]

    @property
    def wakes_at(self) -> str:
        return stored.wakes_parts(self.row.wakes)[2]

    @property
    def item(self) -> DueItem:
        return DueItem(self.row.pk, self.row.sk)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Send requests about the row where it lies, in the name of its tenant."""
        with guard.acting_for(self.tenant_id), at(self.placement):
            yield


class DueWorker:
    """Works in a thread of its own, or `turn` is called now and then. `leads` tells whether this process is the one
    that looks; two that do call some handlers twice, which changes nothing. It looks every `look_seconds`, and when the
    next row is due that it has seen."""

    def __init__(self, *, leads: Callable[[], bool] = lambda: True, look_seconds: float = LOOK_SECONDS) -> None:
        self._leads, self._look_seconds = leads, look_seconds
        self._from: dict[tuple[StreamSource, int], str] = {}  # where the last turn stopped reading, by shard
        self._pause = 0.0
        self._unknown: set[str] = set()  # kinds that were told of
        self._waited: set[str] = set()  # tenants of which the last turn had no time to begin a row

    def running(self) -> AbstractContextManager[None]:
        """Work while the context lasts."""
        return background.working(self.turn, pause=lambda: self._pause, name="due index", log=log)

    def turn(self, again: Callable[[], bool] = lambda: True) -> int:
        """Call the handlers of what is due, a share of each tenant. Return how many rows were claimed.

        Costs a Query for each shard of each placement where nothing is due. Raises Unavailable for the pool's.
        """
        self._pause = self._look_seconds
        if not self._leads():
            return 0
        found = list[Due]()
        for source in (POOLED, *stream_source.placed()):
            try:
                with source.entered():
                    found += self._due_in(source)
            except Unavailable as error:
                if source is POOLED:
                    raise
                log.warning("The due rows of %s are looked at later: %s", source, error.message)
        return self._call_all(list(_in_turns(found, self._waited)), again) if found else 0

    def catch_up(self, *, seconds: float) -> int:
        """Call the handlers of what is due or will be within so many seconds; return at once where nothing will.

        Returns how many rows were claimed. Raises Unavailable.
        """
        until, claimed = time.monotonic() + seconds, 0
        while True:
            claimed += self.turn(lambda: time.monotonic() < until)
            if self._pause >= self._look_seconds or time.monotonic() + self._pause >= until:
                return claimed
            time.sleep(self._pause)

    # --- finding ---

    def _due_in(self, source: StreamSource) -> list[Due]:
        """Return rows of the current source that are due, a share of each tenant; note when to look again."""
        now = clock.now()
        until = stored.behind(stored.minute(clock.stamp(now + timedelta(seconds=self._look_seconds))))
        found, stamp = list[Due](), clock.stamp(now)
        for some, is_all in fan_out([partial(self._read, source, number, until) for number in range(SHARDS)]):
            found += some
            if not is_all:
                self._look_in(0)
        if later := [one.wakes_at for one in found if one.wakes_at > stamp]:
            self._look_in((clock.parse(min(later)) - now).total_seconds())
        return [one for one in found if one.wakes_at <= stamp]

    def _look_in(self, seconds: float) -> None:
        self._pause = max(LEAST_SECONDS, min(self._pause, seconds))

    def _read(self, source: StreamSource, number: int, until: str) -> tuple[list[Due], bool]:
        """Read a shard up to a minute, and tell whether these are all rows: of a tenant no more than SHARE are taken,
        and the rest of its rows of that minute is skipped."""
        where, taken, found, is_all = placement.current(), Counter[str](), list[Due](), True
        begin, start = self._from.pop((source, number), stored.FIRST), None
        begin = begin if begin < until else stored.FIRST  # the clock was set back
        for _ in range(MOST_READS):
            page = WORKER.query(DueRow, stored.shard(number), between=(begin, until), limit=PAGE, start=start)
            for one in (Due(row, where) for row in page.items):
                if taken[one.tenant_id] < SHARE:
                    taken[one.tenant_id] += 1
                    found.append(one)
                else:
                    is_all = False
            start = page.last_key
            if start is None:
                return found, is_all
            minute, tenant_id, _ = stored.wakes_parts(start[DueRow.wakes.attr_name]["S"])
            if taken[tenant_id] >= SHARE:
                is_all, begin, start = False, stored.behind(minute, tenant_id), None
        self._from[source, number] = begin if start is None else start[DueRow.wakes.attr_name]["S"]
        return found, False

    # --- calling ---

    def _call_all(self, found: list[Due], again: Callable[[], bool]) -> int:
        ids = list(dict.fromkeys(one.tenant_id for one in found))
        tenants = {one.tenant_id: context.for_system(one) for one in tenant_directory.get_many(ids)}

        until, begun = time.monotonic() + TURN_SECONDS, set[str]()

        def call(one: Due) -> bool:
            if time.monotonic() >= until:
                self._look_in(0)
                return False
            begun.add(one.tenant_id)
            return again() and self._call(one, tenants.get(one.tenant_id))

        with ThreadPoolExecutor(THREADS, thread_name_prefix="due") as pool:
            futures = [pool.submit(copy_context().run, call, one) for one in found]
        self._waited = tenants.keys() - begun
        return sum(future.result() for future in futures)

    def _call(self, one: Due, tenant: TenantContext | None) -> bool:
        """Claim a row and call its handler; delete the row when that has returned. Tell whether it was claimed."""
        kind, entity, version = stored.waiting_of(one.row.sk)
        handler = due.handler_of(kind)
        if handler is None and kind not in self._unknown:
            self._unknown.add(kind)
            log.warning("Nobody here does the work of the kind %s; its rows wait for a newer version.", kind)
        claimed = _claim(one, None if handler else UNKNOWN)
        if claimed is None or handler is None:
            return False
        if tenant is None:  # it is being made or deleted, and its rows come or go with it
            return True
        try:
            handler(tenant, entity, version, clock.parse(one.row.at))
        except PortalError as error:
            log.warning("%s of %s waits, it is tried again: %s", kind, one.tenant_id, error.message)
        except Exception:  # the other rows do not wait for this one
            log.exception("%s of %s failed, it is tried again.", kind, one.tenant_id)
        else:
            with suppress(ConditionFailed), one.held():  # written anew meanwhile, or claimed again
                WORKER.delete(one.item, condition=DueItem.wakes == claimed.wakes)
        return True


def _in_turns(found: list[Due], waited: Collection[str]) -> Iterator[Due]:
    """Yield one row of each tenant after the other, of each the longest due first; of the tenants first those that have
    `waited` for this turn, and then those that wait longest."""
    by_tenant: dict[str, list[Due]] = defaultdict(list)
    for one in sorted(found, key=lambda one: (one.tenant_id not in waited, one.wakes_at)):
        by_tenant[one.tenant_id].append(one)
    for turn in range(max(map(len, by_tenant.values()))):
        yield from (rows[turn] for rows in by_tenant.values() if turn < len(rows))


def _claim(one: Due, rest: timedelta | None) -> DueItem | None:
    """Let nobody look at the row until its handler has certainly ended, or for `rest`. None where another process was
    first, or the row is gone."""
    tries = int(one.row.tries)
    lease = rest or min(LEASE * 2 ** min(tries, 12), LONGEST_LEASE)
    until = stored.wakes(clock.stamp(clock.now() + lease), one.tenant_id)
    actions: list[Action] = [DueItem.wakes.set(until), DueItem.tries.set(tries if rest else tries + 1)]
    try:
        with one.held():
            return WORKER.update(one.item, actions, condition=DueItem.wakes == one.row.wakes)
    except ConditionFailed:
        return None
