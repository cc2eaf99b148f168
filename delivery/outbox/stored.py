"""Declare the outbox: a row of its own for each transaction that publishes events.

The tenants write it. The dispatcher follows its stream and its index of pending rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pynamodb.attributes import ListAttribute, MapAttribute, NumberAttribute, UnicodeAttribute, UnicodeSetAttribute

from portal.dynamo.client import Item
from portal.dynamo.models import IndexModel
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding, declare_texts
from portal.schema.registry import Grant, Table, declare

SHARDS: Final = 8  # partitions of the index of pending rows
NO_TENANT: Final = keys.PLATFORM  # whose are the rows that are no tenant's: the mail to somebody who forgot a password
_PENDING: Final = "PENDING"
_HELD: Final = "HELD"
ANY_HELD: Final = keys.joined("*", _HELD)  # the same, of the rows that wait until an operator lets them go
ANY_PENDING: Final = keys.beginning(_PENDING) + "*"  # the pattern, for a policy, of all partitions of that index


def outbox_row(tenant_id: str, row_id: str) -> str:
    """Return the partition key of a row. `row_id` is a UUID in hex."""
    return keys.composite(tenant_id, row_id)


def row_parts(event_id: str) -> tuple[str, str]:
    """Return tenant id and row id in what `outbox_row` formed."""
    tenant_id, row_id = keys.split(event_id)
    return keys.tenant(tenant_id), row_id


def pending(shard: int) -> str:
    """Return the partition key of the index of pending rows."""
    if not 0 <= shard < SHARDS:
        raise ValueError(f"there are {SHARDS} shards")
    return keys.joined(_PENDING, keys.whole_number(shard, "a shard"))


def pending_of(row_id: str) -> str:
    """Return the partition in which a row is while it is pending: by a digest of its id, so the same in every
    process."""
    return pending(int(keys.digest(row_id, size=4), 16) % SHARDS)


def held(tenant_id: str) -> str:
    """Return the partition of the same index in which a tenant's rows are while an operator lets them wait."""
    return keys.composite(tenant_id, _HELD)


OUTBOX = Table(
    "Events.Outbox",
    "tenant",
    "event_id",
    "timestamp",
    ttl="expires_at",
    stream=True,
    leading_keys=keys.OWN_COMPOSITES,
    placed=True,
)


class PendingRow(IndexModel):
    """The key of a row of which anything is undelivered, by when it has to be looked at. No tenant reads it."""

    table = OUTBOX
    label = "gsi-status"
    leading_keys = ""
    shared = "the sweeper finds due rows of all tenants"

    pending = UnicodeAttribute(hash_key=True)
    due_at = UnicodeAttribute(range_key=True)
    event_id = UnicodeAttribute()
    timestamp = UnicodeAttribute()


class TenantRow(IndexModel):
    """The key of a tenant's row: rows that are no tenant's are missing."""

    table = OUTBOX
    label = "gsi-tenant"
    leading_keys = keys.OWN_ID

    tenant_id = UnicodeAttribute(hash_key=True)
    timestamp = UnicodeAttribute(range_key=True)
    event_id = UnicodeAttribute()


declare(
    OUTBOX,
    grants=(
        Grant("tenant", OUTBOX, ("GetItem", "PutItem", "Query", "UpdateItem")),
        Grant(
            "worker",
            OUTBOX,
            ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"),
            "ReadOutboxStream",
            stream=True,
        ),
        Grant("worker", OUTBOX, ("BatchGetItem", "UpdateItem"), "Dispatch"),
        Grant("worker", OUTBOX, ("Query",), "FindPending", index=PendingRow.gsi, leading_keys=ANY_PENDING),
        Grant("worker", OUTBOX, ("Query",), "FindHeld", index=PendingRow.gsi, leading_keys=ANY_HELD),
    ),
)


class OutboxItem(Item):
    """Hold the events of one transaction, and the destinations that have not answered yet.

    `tenant_id` is missing in rows that are no tenant's. `tenant` is the JSON of the tenant's id, name and slug;
    `events` a list of JSON texts, see `publisher.encoded`; `subject` what they are about, "ticket/7". `queues` are
    the tenant's queues when it was written.

    `open` holds `<index>/<destination>` for each event of the list and each destination that has not answered. It is
    missing when all have, and then `pending` and `due_at` are missing too. `due_at` is when somebody has to look at
    the row again. A member of `open` is due at `sent_until`, or at its own moment in `attempts`: by member, `n` failed
    attempts, `first_at`, `last_at` and `next_at`, and where a worker may have died of it, how often it was `risked`.

    `private` is for whoever delivers alone, such as a mail with its link, and goes with the last member of `open`.
    `gathered` are texts that were added one by one, until `sealed_at`; see gathering.py. With `held_until` nothing of
    the row leaves before that moment, and until it is sealed the row can be withdrawn. `request` is the id of the
    request that made the change, missing where none did; `cause` that of the change, where a rule has made it.
    """

    table = OUTBOX

    event_id = UnicodeAttribute(hash_key=True)
    timestamp = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute(null=True)
    tenant = UnicodeAttribute()
    subject = UnicodeAttribute()
    private = UnicodeAttribute(null=True)
    events: ListAttribute[Any] = ListAttribute(default=list)
    queues: ListAttribute[Any] = ListAttribute(default=list)
    open = UnicodeSetAttribute(null=True)
    sent_until = UnicodeAttribute()
    attempts: MapAttribute[str, Any] = MapAttribute(default=dict)  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
    pending = UnicodeAttribute(null=True)
    due_at = UnicodeAttribute(null=True)
    expires_at = NumberAttribute()
    gathered = UnicodeSetAttribute(null=True)
    sealed_at = UnicodeAttribute(null=True)
    held_until = UnicodeAttribute(null=True)
    request = UnicodeAttribute(null=True)
    cause = UnicodeAttribute(null=True)


def _rows(reader: Reader) -> Iterator[StoredItem]:
    for place in reader.places:  # mail is written in the pool, whoever writes it
        named = place.query(OUTBOX, reader.tenant_id, index=TenantRow.gsi)
        yield from place.get(OUTBOX, *((one.item["event_id"]["S"], one.item["timestamp"]["S"]) for one in named))


declare_holding(
    Holding("outbox", (OUTBOX,), _rows, Stage.NAMED, left_out="what is to be told is told by where it happened")
)
declare_texts("outbox", "delivery.outbox.event_redacting")


declare_keys(
    OUTBOX, {"outbox row": ""}, indexes={"outbox rows by status": "gsi-status", "outbox rows by tenant": "gsi-tenant"}
)
