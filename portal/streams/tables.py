"""Declare what the followers of a stream store, and what they may do with it."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

LEASES = Table(
    "Streams.Leases",
    "worker",
    "stream",
    "shard",
    ttl="expires_at",
    shared="a shard of a stream carries the changes of all tenants, and has one lease",
)

declare(
    LEASES,
    grants=(
        Grant("worker", LEASES, ("BatchGetItem", "DeleteItem", "PutItem", "Query", "UpdateItem"), "HoldLeases"),
        # It deletes what is kept of the streams of a tenant's own tables, once the tenant is no more.
        Grant("platform", LEASES, ("DeleteItem", "GetItem", "Query")),
    ),
)
