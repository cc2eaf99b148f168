"""The life of a tenant: created by an operator, suspended, resumed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from django.conf import settings

from portal import clock
from portal.dynamo import keys, platform
from portal.dynamo.repository import Transaction
from portal.errors import Conflict, Invalid, NotFound, TransactionRefused
from tenants import accounts, members
from tenants.items import DirectoryItem, TenantItem, UniqueItem
from tenants.models import User
from tenants.roles import Role

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\Z")

ACTIVE = "active"
SUSPENDED = "suspended"
_TENANTS = "TENANT"  # the directory's partition that lists them


def slug_of(name: str) -> str:
    """A slug made from a name: "Müller & Söhne" gives "muller-sohne"."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:40].strip("-")


def create(
    *, name: str, owner: User | None = None, slug: str = "", shards: int | None = None, tenant_id: str | None = None
) -> TenantItem:
    """Create a tenant, with its first owner where one is given, in one transaction.

    Raises Invalid for a bad name, slug or shard count and Conflict when the slug is taken.
    """
    name = " ".join(name.split())
    if not 1 <= len(name) <= 80:
        raise Invalid("A tenant's name has 1 to 80 characters.", field="name")
    slug = slug or slug_of(name)
    if not _SLUG.match(slug):
        raise Invalid("A slug has 1 to 40 of a-z, 0-9 and inner hyphens.", field="slug")
    shards = settings.TICKET_SHARDS if shards is None else shards
    if not 1 <= shards <= 16:
        raise Invalid("A tenant has 1 to 16 shards.", field="shards")
    tenant = TenantItem(
        tenant_id or accounts.new_id(),
        name=name,
        slug=slug,
        status=ACTIVE,
        plan="standard",
        shards=shards,
        shard_epoch=0,
        created_at=clock.stamp(),
    )
    transaction = Transaction()
    transaction.put(UniqueItem(keys.slug(slug), owner=tenant.tenant_id), condition=UniqueItem.pk.does_not_exist())
    transaction.put(tenant, condition=TenantItem.tenant_id.does_not_exist())
    transaction.put(DirectoryItem(_TENANTS, slug, tenant_id=tenant.tenant_id, title=name, created_at=tenant.created_at))
    if owner is not None:
        for item in members.pair(
            user=owner, tenant_id=tenant.tenant_id, tenant_name=name, tenant_slug=slug, role=Role.OWNER
        ):
            transaction.put(item)
    try:
        platform.transact(transaction)
    except TransactionRefused as error:
        raise Conflict(f"A tenant with the slug {slug} exists already.") from error
    return tenant


def find(slug: str) -> TenantItem:
    """The tenant with this slug, for commands: two GetItems. Raises NotFound."""
    try:
        (named,) = platform.get_all([(UniqueItem, keys.slug(slug), None)], consistent=True)
    except ValueError:
        named = None
    found = named and platform.get_all([(TenantItem, keys.tenant(named.owner), None)], consistent=True)[0]
    if not found:
        raise NotFound(f"There is no tenant with the slug {slug!r}.")
    tenant: TenantItem = found
    return tenant


def directory() -> Iterator[DirectoryItem]:
    """All tenants by slug, a Query for every megabyte of them; for commands that go through all."""
    yield from DirectoryItem.query(_TENANTS)


def set_status(tenant_id: str, status: str) -> None:
    """Suspend or resume a tenant; it counts at everybody's next click. Raises NotFound."""
    if status not in (ACTIVE, SUSPENDED):
        raise Invalid(f"A tenant is {ACTIVE} or {SUSPENDED}.")
    transaction = Transaction()
    transaction.update(
        TenantItem(keys.tenant(tenant_id)), [TenantItem.status.set(status)], condition=TenantItem.tenant_id.exists()
    )
    try:
        platform.transact(transaction)
    except TransactionRefused as error:
        raise NotFound("There is no such tenant.") from error
