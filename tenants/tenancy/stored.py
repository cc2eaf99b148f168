"""Store tenants, memberships and the directory that lists tenants; declare which items are a tenant's own."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.dynamo.placement import Placement
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, TenantArrival, declare_holding
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm
from tenants.sign_in.stored import USERS

MEMBERSHIPS = Table(
    "Platform.Memberships",
    "platform",
    "platform_user_id",
    "tenant_id",
    ttl="kept_until",
    shared="a person's tenants are listed before one of them is chosen",
)
# One partition per kind of object, so that commands and operators find all tenants by a Query.
DIRECTORY = Table(
    "Platform.Directory",
    "platform",
    "kind",
    "name",
    shared="operators, commands and workers find tenants, and their long jobs, without knowing them",
)
PLACED = "PLACED"  # the directory's partition of tables that tenants have to themselves; see placements.py
TENANTS = Table("Tenants.Config", "tenant", "tenant_id")
MOST_SHARDS = 16  # index partitions of a tenant

declare(
    MEMBERSHIPS,
    DIRECTORY,
    TENANTS,
    grants=(
        Grant("platform", DIRECTORY, ("DeleteItem", "PutItem", "Query", "UpdateItem")),
        Grant("worker", DIRECTORY, ("Query",), "FindPlaced", leading_keys=PLACED),
        Grant(
            "platform",
            MEMBERSHIPS,
            ("BatchGetItem", "ConditionCheckItem", "DeleteItem", "PutItem", "Query", "UpdateItem"),
        ),
        Grant("platform", TENANTS, ("BatchGetItem", "ConditionCheckItem", "GetItem", "PutItem", "UpdateItem")),
    ),
)


class TenantStatus(StrEnum):
    """The life of a tenant; nobody works in one that is not active."""

    ACTIVE = "active"
    SUSPENDED = "suspended"  # its members are kept out
    CLOSING = "closing"  # it can be read until it is purged, or until somebody thinks better of it
    PURGING = "purging"  # what it had is being deleted


def slug_key(value: str) -> str:
    """Return the partition key of the item that makes a tenant's slug unique, beside the accounts."""
    return keys.labelled("SLUG", keys.part(value, "a slug"))


def placed_key(tenant_id: str, placement: str) -> str:
    """Return the sort key of a tenant's own tables among those that are followed: `<tenant id>/<placement>`."""
    return f"{keys.tenant(tenant_id)}/{Placement.parse(keys.part(placement, 'a placement'))}"


class MembershipItem(Item):
    """One person in one tenant. The tenant's name and slug are copied here so that choosing one costs one Query.

    That of an auditor has `ends_at`, the stamp from which it counts no more, and `kept_until`, in seconds since 1970,
    when it goes.
    """

    table = MEMBERSHIPS

    platform_user_id = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute(range_key=True)
    role = UnicodeAttribute()
    tenant_name = UnicodeAttribute()
    tenant_slug = UnicodeAttribute()
    created_at = UnicodeAttribute()
    ends_at = UnicodeAttribute(null=True)
    kept_until = NumberAttribute(null=True)


class TenantItem(Item):
    """A tenant's own settings. `shards`, `write_shards` (missing where it is the same), `moving_to` (missing where
    nothing moves) and `shard_epoch` spread its ticket indexes; see tenants/tenancy/placements.py.

    `former_slug` is its slug before the last renaming. `member_limit` is missing where there is none. `seatings` and
    `last_seat` are for the counting, see tenants/membership/seats.py. `defaults` is what its forms begin with, as JSON;
    see tenants/lifecycle/desk_settings.py. `subscriptions` is the JSON of who is told of what, by event type a list of
    destinations; `rule_events` says for which types the desk's rules are, behind a number that grows with each change
    ("7:ticket.created,ticket.commented"), and is missing while none was on; `queues` is the JSON of the numbers of its
    queues. These are for delivery. `request_rate` is what operators
    let it ask for in place of its plan's rate, in units a second (portal/load/tenant_limiter.py). `needs_second_factor`
    keeps out members who have none, and is missing where the owners have not asked for that. `placement` is where its
    content lies, missing in the pool; `placement_epoch` grows with each change of it, `former_placement` is where the
    old copy still is, and `move` is the JSON of a move that is under way; see portal/dynamo/placement.py. `closes_at`
    is when the grace of a tenant ends that is closing, `status_before` what an undo brings back. `counts_months` is 1
    where all of its tickets count in months; see tickets/ticket/status_dates.py. `erased` is the JSON of whom the
    desk has forgotten; see tenants/audit_trail/erased_people.py. `arriving` is the
    id of the import that brings the tenant in, and is missing once that has ended.
    """

    table = TENANTS

    tenant_id = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute()
    slug = UnicodeAttribute()
    former_slug = UnicodeAttribute(null=True)
    status = UnicodeAttribute(default="active")
    plan = UnicodeAttribute(default="standard")
    shards = NumberAttribute(default=1)
    write_shards = NumberAttribute(null=True)
    moving_to = NumberAttribute(null=True)
    shard_epoch = NumberAttribute(default=0)
    member_limit = NumberAttribute(null=True)
    seatings = NumberAttribute(null=True)
    last_seat = UnicodeAttribute(null=True)
    defaults = UnicodeAttribute(null=True)
    subscriptions = UnicodeAttribute(null=True)
    rule_events = UnicodeAttribute(null=True)
    counts_months = NumberAttribute(null=True)
    queues = UnicodeAttribute(null=True)
    request_rate = NumberAttribute(null=True)
    placement = UnicodeAttribute(null=True)
    former_placement = UnicodeAttribute(null=True)
    placement_epoch = NumberAttribute(default=0)
    move = UnicodeAttribute(null=True)
    closes_at = UnicodeAttribute(null=True)
    status_before = UnicodeAttribute(null=True)
    erased = UnicodeAttribute(null=True)
    needs_second_factor = BooleanAttribute(null=True)
    arriving = UnicodeAttribute(null=True)
    created_at = UnicodeAttribute()


class DirectoryItem(Item):
    """A tenant in the directory, by its slug, where commands and operators find all of them without a scan.

    A suspended tenant has a second item, in the partition of the suspended; so has one that is closing, with the
    moment at which its grace ends.
    """

    table = DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute()
    title = UnicodeAttribute()
    created_at = UnicodeAttribute()
    status = UnicodeAttribute(default="active")
    closes_at = UnicodeAttribute(null=True)


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
    for stored in reader.get(USERS, *((slug_key(slug), None) for slug in _slugs(reader))):
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
    can_be_here = status["S"] in (TenantStatus.ACTIVE, TenantStatus.SUSPENDED)
    return "" if is_whole and can_be_here else "is no tenant that can be here"


def _forms() -> tuple[RowForm, ...]:
    checks = {
        **dict.fromkeys(("shards", "write_shards", "moving_to"), _SHARDS),
        **row_forms.moments("created_at"),
        "defaults": row_forms.json_object(row_forms.is_text),
        "subscriptions": row_forms.json_object(row_forms.are_texts),
        "counts_months": row_forms.between(0, 1),
        "rule_events": row_forms.like(r"[1-9][0-9]{0,9}:[a-z_.,]*"),
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


declare_keys(MEMBERSHIPS, {"invited": "INVITED#<address>, <tenant>", "membership": ""})
declare_keys(
    DIRECTORY,
    {
        "tenant by name": "TENANT, <slug>",
        "placed tenant": "PLACED, <tenant>",
        "suspended tenant": "SUSPENDED, <slug>",
        "closing tenant": "CLOSING, <slug>",
    },
)
declare_keys(TENANTS, {"tenant": ""})
declare_keys(USERS, {"slug": "SLUG#<slug>"})
