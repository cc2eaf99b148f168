"""Declare a tenant's own item, its names, and its places in the directory."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema import row_forms
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, TenantArrival, declare_holding
from portal.schema.row_forms import RowForm
from tenants.sign_in.stored import USERS
from tenants.tenancy import keys, tenant_directory
from tenants.tenancy.items import TenantItem
from tenants.tenancy.shard_layout import MOST_SHARDS
from tenants.tenancy.tables import DIRECTORY, PLACED, TENANTS

_NAMED_AGAIN = "it follows from the tenant's own item"
_KINDS = ("TENANT", "SUSPENDED", "CLOSING")
_SHARDS = row_forms.between(1, MOST_SHARDS)
_ERASED = row_forms.json_object(lambda value: row_forms.is_text(value) or row_forms.are_texts(value))


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


def _wrong(tenant_id: str, item: Raw) -> str:
    """Say what is wrong with a tenant's own item: it arrives as one that works, or as one that is suspended."""
    status: Raw = item.get("status_before") or item["status"]
    is_whole = all(item[name]["S"] for name in ("name", "slug", "created_at"))
    can_be_here = status["S"] in (tenant_directory.ACTIVE, tenant_directory.SUSPENDED)
    return "" if is_whole and can_be_here else "is no tenant that can be here"


def _forms() -> tuple[RowForm, ...]:
    checks = {
        **dict.fromkeys(("shards", "write_shards", "moving_to"), _SHARDS),
        **row_forms.moments("created_at"),
        "defaults": row_forms.json_object(row_forms.is_text),
        "subscriptions": row_forms.json_object(row_forms.are_texts),
        "erased": _ERASED,
    }
    always, fractions = ("shards", "status"), ("request_rate",)
    return (RowForm(TenantItem, lambda own, _: (own,), checks=checks, whole=_wrong, needs=always, fractions=fractions),)


declare_holding(
    Holding("own tables", (DIRECTORY,), _placed, Stage.OWN, left_out="an installation gives its own tables"),
    Holding("tenant", (TENANTS,), _tenant, Stage.TRAIL, fit=_fit, forms=_forms),
    Holding("names", (USERS,), _names, Stage.OWN, left_out=_NAMED_AGAIN),
    Holding("directory", (DIRECTORY,), _entries, Stage.OWN, left_out=_NAMED_AGAIN),
)
