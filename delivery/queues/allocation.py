"""Give each tenant its set of queues: the next one of the list, in the transaction that makes the tenant.

The number of sets given out is counted for each number of queues. After queues were added the count begins anew, with
the sets that use the added ones: existing tenants keep theirs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from django.conf import settings

from delivery.queues import queue_sets
from delivery.queues.queue_sets import QueueSet
from delivery.queues.stored import GIVEN, SETS, GivenItem, QueueSetItem, count_of
from portal.dynamo.client import fan_out
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import BATCH_GET_LIMIT, Transaction
from portal.errors import Conflict, Invalid, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import DirectoryItem, TenantItem

PLACE: Final = "place in the list of sets"  # the member that somebody else's allocation refuses
_TENANT: Final = "the tenant's queues"


def give(transaction: Transaction, tenant: TenantItem) -> None:
    """Give a tenant that is about to be written the next set: adds two members, at the cost of one Query."""
    chosen = _take_next(transaction)
    tenant.queues = _stored(chosen)
    transaction.update(QueueSetItem(SETS, tenant.tenant_id), [QueueSetItem.queues.set(tenant.queues)])


def assign(tenant_id: str, *, by: Actor) -> QueueSet | None:
    """Give a tenant that has no set, or one of queues that are no more, the next set. Returns it, None where the tenant
    has one already.

    Raises NotFound.
    """
    tenant = tenant_directory.get(tenant_id)
    if _is_good(queues_of(tenant)):
        return None
    return _change(tenant, None, by)


def move(
    tenant_id: str, *, to: Collection[int] | None = None, seen: Collection[int] | None = None, by: Actor
) -> QueueSet:
    """Give a tenant another set: this one, or the next of the list. Returns it.

    Messages in the former queues are still delivered from there. `seen` is the set that the caller was shown.

    Raises NotFound, Invalid for numbers that are no set, Conflict where somebody else was faster.
    """
    tenant = tenant_directory.get(tenant_id)
    if seen is not None and frozenset(seen) != queues_of(tenant):
        raise Conflict("Somebody else has just changed this tenant's queues. Please check and try again.")
    if to is not None and not _is_good(frozenset(to)):
        raise Invalid(f"{said(to)} is no set of {_queues()} queues: any three of its numbers give the fourth.")
    if to is not None and frozenset(to) == queues_of(tenant):
        return frozenset(to)
    return _change(tenant, None if to is None else frozenset(to), by)


def allocated() -> dict[str, QueueSet]:
    """Return the set of each tenant that has one, by tenant id: a Query for every 1 MB, some 8,000 tenants."""
    return {item.name: frozenset(json.loads(item.queues)) for item in PLATFORM.query_all(QueueSetItem, SETS)}


def forget(tenant_id: str) -> None:
    """Delete the entry of a tenant that does not exist from the list of all sets."""
    transaction = Transaction()
    transaction.delete(QueueSetItem(SETS, tenant_id))
    PLATFORM.transact(transaction)


def queues_of(tenant: TenantItem) -> QueueSet:
    """Return the set that a tenant's own item names, empty where it names none."""
    return frozenset(json.loads(tenant.queues)) if tenant.queues else frozenset()


def said(queues: Collection[int]) -> str:
    """Return a set as people read it: `0 5 10 15`."""
    return " ".join(map(str, sorted(queues))) or "none"


def _queues() -> int:
    return queue_sets.valid_count(settings.DELIVERY_QUEUES)


def _is_good(numbers: QueueSet) -> bool:
    return queue_sets.is_set(numbers, _queues())


def _stored(numbers: QueueSet) -> str:
    return json.dumps(sorted(numbers))


def _take_next(transaction: Transaction) -> QueueSet:
    """Return the next set, and count it in the transaction. Costs one Query."""
    queues = _queues()
    counts = {int(item.name): int(item.given) for item in PLATFORM.query_all(GivenItem, GIVEN)}
    beyond = max((number for number in counts if number < queues), default=0)
    given = counts.get(queues)
    unchanged = GivenItem.given.does_not_exist() if given is None else GivenItem.given == given
    counter = GivenItem(GIVEN, count_of(queues))
    transaction.update(counter, [GivenItem.given.set((given or 0) + 1)], name=PLACE, condition=unchanged)
    return queue_sets.nth(given or 0, queues, beyond=beyond)


def _change(tenant: TenantItem, to: QueueSet | None, by: Actor) -> QueueSet:
    """Write another set, the next one where `to` is None. Raises Conflict."""
    chosen = frozenset[int]()
    after: dict[str, object] = {}  # filled in by `build`, before the audit row is made of it

    def build() -> Transaction:
        nonlocal chosen
        transaction = Transaction()
        chosen = _take_next(transaction) if to is None else to
        unchanged = TenantItem.queues == tenant.queues if tenant.queues else TenantItem.queues.does_not_exist()
        # The tenant must still be there: an update would make an item of nothing else.
        unchanged &= TenantItem.slug.exists()
        transaction.update(tenant, [TenantItem.queues.set(_stored(chosen))], name=_TENANT, condition=unchanged)
        transaction.update(QueueSetItem(SETS, tenant.tenant_id), [QueueSetItem.queues.set(_stored(chosen))])
        after["queues"] = said(chosen)
        return transaction

    before = {"queues": said(queues_of(tenant))}
    action, about = AuditAction.TENANT_QUEUES_CHANGED, (tenant.tenant_id, tenant.name)
    entry = AuditEntry(tenant.tenant_id, action, by, "tenant", *about, before, after)
    try:
        recording.commit_built(build, [entry], depending=[PLACE])
    except TransactionRefused as error:
        raise Conflict("Somebody else has just changed this tenant's queues. Please check and try again.") from error
    return chosen


# --- looking at all tenants ---


@dataclass(frozen=True)
class Survey:
    """All tenants and their sets. `slugs` holds each tenant's id by its slug, in that order; `sets` is by id."""

    queues: int
    slugs: dict[str, str]
    sets: dict[str, QueueSet]

    def named(self) -> dict[str, QueueSet]:
        return {slug: self.sets[tenant_id] for slug, tenant_id in self.slugs.items() if tenant_id in self.sets}


def survey() -> Survey:
    """Read who has which queues: two Queries at the same time for up to some 5,000 tenants, and a page more for every
    5,000 beyond; about 20 read units for 1,000 tenants."""
    reads: list[Callable[[], Any]] = [lambda: [*tenant_directory.all_tenants()], allocated]
    tenants, given = fan_out(reads)
    slugs = {item.name: item.tenant_id for item in tenants}
    return Survey(queue_sets.valid_count(settings.DELIVERY_QUEUES), slugs, given)


def problems() -> Iterator[str]:
    """Yield a sentence, without its full stop, for each tenant whose queues are not as they should be, and for each set
    that a tenant has who does not exist.

    Reads each tenant's own item, a hundred in a request.
    """
    listed = allocated()
    queues = queue_sets.valid_count(settings.DELIVERY_QUEUES)
    items = tenant_directory.all_tenants()
    while batch := list(islice(items, BATCH_GET_LIMIT)):
        stored = tenant_directory.get_many([item.tenant_id for item in batch])
        own = {tenant.tenant_id: queues_of(tenant) for tenant in stored}
        for item in batch:
            if complaint := _complaint(item, own, listed, queues):
                yield f"{item.name} {complaint}"
    for tenant_id in sorted(of_nobody(listed)):
        yield f"{said(listed[tenant_id])} are given to {tenant_id}, and there is no such tenant"


def of_nobody(given: Collection[str]) -> set[str]:
    """Return which of these tenants, by id, do not exist: consistent reads, a hundred in a request."""
    wanted, found = sorted(given), set()
    for start in range(0, len(wanted), BATCH_GET_LIMIT):
        found |= {tenant.tenant_id for tenant in tenant_directory.get_many(wanted[start : start + BATCH_GET_LIMIT])}
    return set(wanted) - found


def _complaint(item: DirectoryItem, own: dict[str, QueueSet], listed: dict[str, QueueSet], queues: int) -> str | None:
    numbers = own.get(item.tenant_id, frozenset())
    if not numbers:
        return "has no queues"
    if not queue_sets.is_set(numbers, queues):
        return f"has {said(numbers)}, which is no set of {queues} queues"
    if listed.get(item.tenant_id) != numbers:
        return f"has {said(numbers)}, and another set in the list of all"
    return None
