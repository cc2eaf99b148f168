"""Tenants that have tables of their own: laid there at once, as no move would, and the site of a silo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from portal.dynamo import placement, provisioning
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.isolation import guard
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.tenancy import placements
from tenants.tenancy.stored import TenantItem
from tests.support.world import World

BRIDGE, SILO = Placement("bridge"), Placement("silo", "there")


def sites() -> dict[str, dict[str, str]]:
    """The settings of one site: the same engine under a prefix of its own."""
    return {"there": {"endpoint_url": settings.DYNAMODB_ENDPOINT_URL, "prefix": "There"}}


def lay(world: World, name: str, where: Placement) -> str:
    """Let a tenant without tickets lie there from now on. Returns its id."""
    tenant_id = world.tenants[name].tenant_id
    transaction = Transaction()
    if where != POOL:
        provisioning.create_placed(tenant_id, where)
        placements.list_it(transaction, tenant_id, where)
        transaction.update(TenantItem(tenant_id), [TenantItem.placement.set(str(where))])
        PLATFORM.transact(transaction)
    return tenant_id


def say(tenant_id: str, where: Placement) -> None:
    """Say that a tenant lies there, as a move does at its end; nothing is copied."""
    transaction = Transaction()
    transaction.update(TenantItem(tenant_id), [TenantItem.placement.set(str(where))])
    PLATFORM.transact(transaction)


def desk(world: World, where: Placement, *, slug: str = "initech", owner: str = "alice") -> TenantItem:
    """Make a desk of the world's on this placement."""
    made = tenant_lifecycle.create(
        name=slug.capitalize(), slug=slug, owner=world.users[owner], placement=where, by=SYSTEM
    )
    world.tenants[slug] = made
    return made


@contextmanager
def inside(tenant: TenantItem) -> Iterator[None]:
    """Let what follows the streams do its work where this tenant's content lies."""
    with guard.acting_for(tenant.tenant_id), placement.at(Placement.parse(tenant.placement)):
        yield


def unlist(tenant_id: str, where: Placement) -> None:
    """Let nobody follow a tenant's tables at this placement any more; they stay."""
    transaction = Transaction()
    placements.unlist_it(transaction, tenant_id, where)
    PLATFORM.transact(transaction)
