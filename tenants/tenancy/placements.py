"""List the placements whose tables are there beside the pool: what follows streams, and what is periodic, serves each.

A placement is listed in the transaction that changes where a tenant's content lies, and stays listed while an old copy
is kept. The listing is a partition of the directory, so that all of them are found by one Query.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from portal import clock
from portal.dynamo import platform
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.repository import TenantRepository, Transaction
from portal.errors import Invalid
from portal.streams import worker
from portal.streams.stream_source import StreamSource
from tenants.tenancy import keys, tenant_directory
from tenants.tenancy.items import DirectoryItem
from tenants.tenancy.places import tenant_moves
from tenants.tenancy.tables import PLACED


@dataclass(frozen=True)
class PlacedTenant:
    """One tenant's own tables: whose, and where."""

    tenant_id: str
    placement: Placement


def repository(tenant_id: str) -> TenantRepository:
    """Return the repository of a tenant of which only the id is known, where its content lies: one consistent read.

    That of a tenant which is not there yet lies in the pool.
    """
    stored = tenant_directory.get_many([tenant_id])
    return tenant_moves.repository(stored[0]) if stored else TenantRepository(tenant_id)


def listed() -> list[PlacedTenant]:
    """Return every placement beside the pool whose tables are there, old copies included: one Query a megabyte."""
    return [PlacedTenant(item.tenant_id, Placement.parse(item.title)) for item in worker.items(DirectoryItem, PLACED)]


def is_listed(tenant_id: str, placement: Placement) -> bool:
    """Tell whether a tenant's tables at this placement are followed: one consistent read."""
    (item,) = platform.get_all([(DirectoryItem, PLACED, keys.placed(tenant_id, str(placement)))], consistent=True)
    return item is not None


def chosen(text: str) -> Placement:
    """Return the placement that somebody names. Raises Invalid for what is none, and for a site that is not set up."""
    try:
        placement = Placement.parse(text)
    except ValueError:
        raise Invalid("Use pool, bridge or silo/NAME.", field="placement") from None
    if placement.site and placement.site not in settings.SILOS:
        raise Invalid(f"The settings have no site {placement.site}.", field="placement")
    return placement


def sources() -> list[StreamSource]:
    """Return whose streams are to be followed beside the pool's: one Query a megabyte. Raises Unavailable."""
    return [StreamSource(placed.tenant_id, placed.placement) for placed in listed()]


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
    name = keys.placed(tenant_id, str(placement))
    return DirectoryItem(PLACED, name, tenant_id=tenant_id, title=str(placement), created_at=clock.stamp())
