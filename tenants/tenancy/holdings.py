"""Declare a tenant's own item, its names, and its places in the directory."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, TenantArrival, declare_holding
from tenants.identity.tables import USERS
from tenants.tenancy import keys
from tenants.tenancy.tables import DIRECTORY, PLACED, TENANTS

_NAMED_AGAIN = "it follows from the tenant's own item"
_KINDS = ("TENANT", "SUSPENDED", "CLOSING")


def _tenant(reader: Reader) -> Iterator[StoredItem]:
    return reader.get(TENANTS, (reader.tenant_id, None))


def _fit(item: Raw, arrival: TenantArrival) -> Raw:
    """Leave out what is about the place that the tenant comes from: queues, placement, a resharding, a deletion that
    was asked for, an import, and subscriptions of endpoints that do not work without their secrets."""
    gone = {"queues", "placement", "former_placement", "placement_epoch", "move", "write_shards", "moving_to"}
    gone |= {"former_slug", "closes_at", "status_before", "arriving"} | (
        set() if arrival.with_secrets else {"subscriptions"}
    )
    as_here = {
        "shards": item.get("write_shards") or item["shards"],
        "status": item.get("status_before") or item["status"],
    }
    return {name: value for name, value in item.items() if name not in gone} | as_here


def _slugs(reader: Reader) -> list[str]:
    """Return its name in addresses, and the one before it: the index by name may still have that."""
    named = [row.get(name, {}).get("S") for _, row, _ in _tenant(reader) for name in ("slug", "former_slug")]
    return [slug for slug in named if slug]


def _names(reader: Reader) -> Iterator[StoredItem]:
    for stored in reader.get(USERS, *((keys.slug(slug), None) for slug in _slugs(reader))):
        if stored.item["owner"]["S"] == reader.tenant_id:  # a former one may be another tenant's by now
            yield stored


def _entries(reader: Reader) -> Iterator[StoredItem]:
    for slug in _slugs(reader):
        for kind in _KINDS:
            for stored in reader.query(DIRECTORY, kind, begins_with=slug):
                if stored.item["tenant_id"]["S"] == reader.tenant_id:
                    yield stored


def _placed(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(DIRECTORY, PLACED, begins_with=reader.tenant_id)


declare_holding(
    Holding("own tables", (DIRECTORY,), _placed, Stage.OWN, left_out="an installation gives its own tables"),
    Holding("tenant", (TENANTS,), _tenant, Stage.TRAIL, fit=_fit),
    Holding("names", (USERS,), _names, Stage.OWN, left_out=_NAMED_AGAIN),
    Holding("directory", (DIRECTORY,), _entries, Stage.OWN, left_out=_NAMED_AGAIN),
)
