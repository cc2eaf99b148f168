"""Form the keys of the outbox: a row of its own for each transaction that tells something."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

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
