"""Form the keys of tickets: one item collection per ticket, the tenant's counters, and the two list indexes."""

from __future__ import annotations

import hashlib
from typing import Final

from portal.schema import keys

SUMMARY: Final = "SUMMARY"
DETAIL: Final = "DETAIL"
COUNTER_TICKET: Final = "TICKET"
_REQUEST: Final = "REQUEST"
MADE_TICKET: Final = "TICKET"  # sort keys of the records of requests, by what they made
MADE_COMMENT: Final = "COMMENT"
UNASSIGNED: Final = "UNASSIGNED"
_TICKET: Final = "TICKET"
_ACTIVITY: Final = "ACTIVITY"
_RAISED: Final = "RAISED"
ACTIVITY_PREFIX: Final = keys.beginning(_ACTIVITY)


def ticket(tenant_id: str, number: int) -> str:
    """Return the partition key of one ticket's item collection. `number` counts from 1 within the tenant."""
    return keys.collection(tenant_id, _TICKET, keys.whole_number(number, "a ticket number", least=1))


def counter(tenant_id: str) -> str:
    """Return the partition key of the tenant's counters; sort key `COUNTER_TICKET` holds the last ticket number."""
    return keys.collection(tenant_id, "COUNTER")


def request(tenant_id: str, request_id: str) -> str:
    """Return the partition key of an idempotency record: one request id creates one ticket, however often it is
    sent."""
    return keys.collection(tenant_id, _REQUEST, request_id)


def is_request(pk: str) -> bool:
    """Tell whether a partition key is that of an idempotency record."""
    parts = keys.collection_parts(pk)
    return parts is not None and parts[1] == _REQUEST


def activity(at: str, entry_id: str) -> str:
    """Return the sort key of a comment, note or timeline event. `at` is ISO 8601 UTC with microseconds, so keys sort by
    time."""
    return keys.joined(_ACTIVITY, at, entry_id)


def activity_from(at: str) -> str:
    """Return the sort key before those of all entries of this moment and later, and after all earlier ones."""
    return keys.joined(_ACTIVITY, at)


def entry_id(activity_key: str) -> str:
    """Return the entry id in what `activity` formed."""
    return keys.split(activity_key)[-1]


def tenant_status(tenant_id: str, status: str, shard: int) -> str:
    """Return the partition key of both ticket indexes: one tenant, one status, one shard."""
    return keys.collection(tenant_id, status, keys.whole_number(shard, "a shard"))


def raised_status(tenant_id: str, status: str) -> str:
    """Return the partition key of both indexes of noted tickets: one tenant, one status, however many shards."""
    return keys.collection(tenant_id, _RAISED, status)


def shelf_of(tenant_status_key: str) -> tuple[str, int] | None:
    """Return status and shard in what `tenant_status` formed, None for anything else."""
    parts = keys.collection_parts(tenant_status_key)
    if parts is None or len(parts[2]) != 1 or not (parts[2][0].isascii() and parts[2][0].isdigit()):
        return None
    return parts[1], int(parts[2][0])


def resolver_updated(resolver: str, updated_at: str) -> str:
    """Return the sort key of gsi-status-resolver. `resolver` is a user id, or "" for nobody: UNASSIGNED keeps the row
    indexed."""
    return keys.joined(resolver or UNASSIGNED, updated_at)


def resolver_prefix(resolver: str) -> str:
    """Return the beginning of every `resolver_updated` of this resolver, delimiter included."""
    return keys.beginning(resolver or UNASSIGNED)


def status_shard(number: int, shards: int) -> int:
    """Choose the shard of a ticket among `shards` (1 or more): blake2b of its number, so stable across processes.

    The character-product hash printed in AWS's write-sharding page sends 20,000 UUIDs into one suffix; this
    one spreads evenly.
    """
    if shards < 1:
        raise ValueError("there is at least one shard")
    if shards == 1:
        return 0
    digest = hashlib.blake2b(str(number).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


def ticket_number(tenant_id: str, pk: str) -> int | None:
    """Return the number in a ticket's partition key, or None when the key is not a ticket of this tenant.

    Lists use it to drop an index row that another tenant has planted: the row's base key gives it away.
    """
    tenant, owner = keys.tenant(tenant_id), owner_of(pk)
    return owner[1] if owner and owner[0] == tenant else None


def owner_of(pk: str) -> tuple[str, int] | None:
    """Return tenant and number of a ticket's partition key, or None for anything else."""
    parts = keys.collection_parts(pk)
    if parts is None or parts[1] != _TICKET or len(parts[2]) != 1:
        return None
    number = parts[2][0]
    return (parts[0], int(number)) if number.isascii() and number.isdigit() and number[0] != "0" else None
