"""Look at the queues of all tenants: found by the directory, without reading a table as a whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.conf import settings

from delivery.queues import allocation, queue_sets
from delivery.queues.allocation import said
from delivery.queues.queue_sets import QueueSet
from portal.dynamo.client import fan_out
from portal.dynamo.repository import BATCH_GET_LIMIT
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import DirectoryItem


@dataclass(frozen=True)
class Survey:
    """All tenants and their sets. `slugs` holds each tenant's id by its slug, in that order; `sets` is by id."""

    queues: int
    slugs: dict[str, str]
    sets: dict[str, QueueSet]

    def named(self) -> dict[str, QueueSet]:
        """Return the sets by slug, of those who have one."""
        return {slug: self.sets[tenant_id] for slug, tenant_id in self.slugs.items() if tenant_id in self.sets}


def survey() -> Survey:
    """Read who has which queues: two Queries at the same time for up to some 5,000 tenants, and a page more for every
    5,000 beyond; about 20 read units for 1,000 tenants."""
    reads: list[Callable[[], Any]] = [lambda: [*tenant_directory.all_tenants()], allocation.allocated]
    tenants, given = fan_out(reads)
    slugs = {item.name: item.tenant_id for item in tenants}
    return Survey(queue_sets.valid_count(settings.DELIVERY_QUEUES), slugs, given)


def problems() -> Iterator[str]:
    """Yield a sentence, without its full stop, for each tenant whose queues are not as they should be, and for each set
    that a tenant has who does not exist.

    Reads each tenant's own item, a hundred in a request.
    """
    beside = allocation.allocated()
    queues = queue_sets.valid_count(settings.DELIVERY_QUEUES)
    items = tenant_directory.all_tenants()
    while batch := list(islice(items, BATCH_GET_LIMIT)):
        stored = tenant_directory.get_many([item.tenant_id for item in batch])
        own = {tenant.tenant_id: allocation.queues_of(tenant) for tenant in stored}
        for item in batch:
            if complaint := _complaint(item, own, beside, queues):
                yield f"{item.name} {complaint}"
    for tenant_id in sorted(of_nobody(beside)):
        yield f"{said(beside[tenant_id])} are given to {tenant_id}, and there is no such tenant"


def of_nobody(given: Collection[str]) -> set[str]:
    """Return which of these tenants, by id, do not exist: consistent reads, a hundred in a request."""
    wanted, found = sorted(given), set()
    for start in range(0, len(wanted), BATCH_GET_LIMIT):
        found |= {tenant.tenant_id for tenant in tenant_directory.get_many(wanted[start : start + BATCH_GET_LIMIT])}
    return set(wanted) - found


def _complaint(item: DirectoryItem, own: dict[str, QueueSet], beside: dict[str, QueueSet], queues: int) -> str | None:
    numbers = own.get(item.tenant_id, frozenset())
    if not numbers:
        return "has no queues"
    if not queue_sets.is_set(numbers, queues):
        return f"has {said(numbers)}, which is no set of {queues} queues"
    if beside.get(item.tenant_id) != numbers:
        return f"has {said(numbers)}, and another set in the list of all"
    return None
