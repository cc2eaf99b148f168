"""Say where a tenant's content lies, over which index partitions it is spread, and for how long that may be believed.

A ticket lies in one of the partitions of its status, and lists read all of them. While their number changes, or the
content moves, some processes know the new answer and others the old one. So no process uses an answer that was read
longer ago than CONTEXT_SECONDS: one that still works by then reads it anew, by a clock that nobody can set. A job that
changes the answer waits for longer than that, and then all other processes know it; see
docs/adr/0019-live-resharding.md.

A move stands in the tenant's own item, which each request reads anyway, as JSON of fixed form: a change of it can
demand that it is what was seen. A placement is listed in the transaction that changes where a tenant's content lies,
and stays listed while an old copy is kept. The listing is a partition of the directory, so one Query finds all of them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from django.conf import settings
from django.utils.translation import gettext as _

from portal import clock
from portal.dynamo.placement import POOL, Location, Move, Placement
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store, Transaction
from portal.errors import Invalid, TransactionRefused
from portal.streams.stream_source import StreamSource
from portal.streams.worker import WORKER
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import PLACED, DirectoryItem, TenantItem, TenantStatus, placed_key

_T = TypeVar("_T")
CONTEXT_SECONDS: float = 20.0  # a torture shortens it


@dataclass(frozen=True)
class ShardLayout:
    """Spread the tickets of each status: lists read the partitions 0 to `readers` - 1, writes go to 0 to `writers` - 1.

    `epoch` grows with every change. While tickets are being moved, `moving_to` says into how many partitions, else it
    is 0.
    """

    readers: int = 1
    writers: int = 1
    epoch: int = 0
    moving_to: int = 0

    @classmethod
    def of(cls, stored: Any) -> ShardLayout:
        """Take it from a tenant as stored, or as a context has it. Writes go where lists read, if nothing else is
        said."""
        readers = int(stored.shards)
        writers, moving_to = int(stored.write_shards or readers), int(stored.moving_to or 0)
        return cls(readers, writers, int(stored.shard_epoch), moving_to)

    @property
    def rests(self) -> bool:
        """Tell whether no ticket is being moved and lists read no more partitions than writes go to."""
        return self.readers == self.writers and not self.moving_to


class FreshRead(Generic[_T]):
    """A value as it was read at a moment of the monotonic clock, read anew once it is older than CONTEXT_SECONDS."""

    def __init__(self, known: _T, read: Callable[[], _T], read_at: float | None = None) -> None:
        self._known, self._read = (known, time.monotonic() if read_at is None else read_at), read

    def current(self) -> _T:
        """Return it, at most CONTEXT_SECONDS old. Raises Unavailable, and NotFound without a tenant."""
        known, read_at = self._known
        return self.again() if time.monotonic() - read_at > CONTEXT_SECONDS else known

    def again(self) -> _T:
        """Read it, and return it. Raises Unavailable, and NotFound without a tenant."""
        began = time.monotonic()
        known = self._read()
        self._known = known, began
        return known


# --- where the content lies ---


def location(tenant: Any) -> Location:
    """Return where the content of a tenant as stored lies."""
    return Location(
        placement=Placement.parse(tenant.placement),
        former=Placement.parse(tenant.former_placement) if tenant.former_placement else None,
        epoch=int(tenant.placement_epoch or 0),
        move=_decoded(tenant.move) if tenant.move else None,
        purged=tenant.status == TenantStatus.PURGING,
    )


def encoded(move: Move) -> str:
    return json.dumps({"id": move.id, "to": str(move.to), "attempt": move.attempt})


def _decoded(text: str) -> Move:
    stored = json.loads(text)
    return Move(stored["id"], Placement.parse(stored["to"]), int(stored["attempt"]))


def stored_location(tenant_id: str) -> Location:
    """Return where a tenant's content lies now: one consistent read. Raises NotFound, Unavailable."""
    return location(tenant_directory.get(tenant_id))


def repository_of(tenant: TenantItem) -> Store:
    """Return the repository of a tenant as it has just been read."""
    return Store("tenant", tenant.tenant_id, MoveLease(tenant.tenant_id, location(tenant)))


def break_hold(tenant_id: str, move: Move) -> bool:
    """Let writes pass that this attempt of a move holds, which then cannot come to its end. Tell whether it stood."""
    transaction = Transaction()
    transaction.update(
        TenantItem(tenant_id),
        [TenantItem.move.set(encoded(replace(move, attempt=move.attempt + 1)))],
        condition=TenantItem.move == encoded(move),
    )
    try:
        PLATFORM.transact(transaction)
    except TransactionRefused:
        return False
    return True


class MoveLease(FreshRead[Location]):
    """Where a tenant's content lies, and whether it is being moved."""

    def __init__(self, tenant_id: str, known: Location, read_at: float | None = None) -> None:
        super().__init__(known, partial(stored_location, tenant_id), read_at)
        self._tenant_id = tenant_id

    def break_hold(self, seen: Location) -> None:
        """Let writes pass that the move that was seen holds, unless it has ended."""
        if seen.move is not None:
            break_hold(self._tenant_id, seen.move)


def repository(tenant_id: str) -> Store:
    """Return the repository of a tenant of which only the id is known, where its content lies: one consistent read.

    That of a tenant which is not there yet lies in the pool.
    """
    stored = tenant_directory.get_many([tenant_id])
    return repository_of(stored[0]) if stored else Store("tenant", tenant_id)


def listed() -> list[StreamSource]:
    """Return every placement beside the pool whose tables are there and whose streams are followed, old copies
    included: one Query a megabyte. Raises Unavailable."""
    found = WORKER.query_all(DirectoryItem, PLACED)
    return [StreamSource(item.tenant_id, Placement.parse(item.title)) for item in found]


def is_listed(tenant_id: str, placement: Placement) -> bool:
    """Tell whether a tenant's tables at this placement are followed: one consistent read."""
    (item,) = PLATFORM.get_all([(DirectoryItem, PLACED, placed_key(tenant_id, str(placement)))], consistent=True)
    return item is not None


def chosen(text: str) -> Placement:
    """Return the placement that somebody names. Raises Invalid for what is none, and for a site that is not set up."""
    try:
        placement = Placement.parse(text)
    except ValueError:
        raise Invalid(_("Use pool, bridge or silo/NAME."), field="placement") from None
    if placement.site and placement.site not in settings.SILOS:
        raise Invalid(_("The settings have no site %(site)s.") % {"site": placement.site}, field="placement")
    return placement


def of_plan(plan: str) -> Placement:
    """Return where the content of a new tenant of this plan lies. Raises Invalid where the settings name no place."""
    return chosen(settings.PLAN_PLACEMENTS.get(plan, "pool"))


def beside_the_pool() -> list[Placement]:
    """Return each placement that the settings know of, but for the pool."""
    return [Placement("bridge"), *(Placement("silo", name) for name in sorted(settings.SILOS))]


def list_it(transaction: Transaction, tenant_id: str, placement: Placement) -> None:
    """Add to the transaction that a tenant's tables at this placement are followed. The pool is, in any case."""
    if placement != POOL:
        transaction.put(_item(tenant_id, placement))


def unlist_it(transaction: Transaction, tenant_id: str, placement: Placement) -> None:
    """Add to the transaction that a tenant's tables at this placement are followed no more."""
    if placement != POOL:
        transaction.delete(_item(tenant_id, placement))


def _item(tenant_id: str, placement: Placement) -> DirectoryItem:
    name = placed_key(tenant_id, str(placement))
    return DirectoryItem(PLACED, name, tenant_id=tenant_id, title=str(placement), created_at=clock.stamp())
