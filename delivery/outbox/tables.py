"""Declare the outbox. The tenants write it, and the dispatcher follows its stream and its index of pending rows."""

from __future__ import annotations

from delivery.outbox.keys import ANY_HELD, ANY_PENDING
from portal.schema import keys
from portal.schema.registry import Grant, declare
from portal.schema.tables import Index, Table

# Sparse: a row is in it while anything of it is undelivered. It holds the rows of all tenants, and no tenant reads it.
PENDING = Index(
    "gsi-status", "pending", "due_at", (), leading_keys="", shared="the sweeper finds what is due, whosever it is"
)

# Of the rows of tenants, and no others: what is a tenant's is found by it when the whole tenant is taken up.
OUTBOX_BY_TENANT = Index("gsi-tenant", "tenant_id", "timestamp", (), keys.OWN_ID)

OUTBOX = Table(
    "Events.Outbox",
    "tenant",
    "event_id",
    "timestamp",
    indexes=(PENDING, OUTBOX_BY_TENANT),
    ttl="expires_at",
    stream=True,
    leading_keys=keys.OWN_COMPOSITES,
    placed=True,
)

declare(
    OUTBOX,
    grants=(
        Grant("tenant", OUTBOX, ("GetItem", "PutItem", "UpdateItem")),
        Grant(
            "worker",
            OUTBOX,
            ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"),
            "ReadOutboxStream",
            stream=True,
        ),
        Grant("worker", OUTBOX, ("BatchGetItem", "UpdateItem"), "Dispatch"),
        Grant("worker", OUTBOX, ("Query",), "FindPending", index=PENDING, leading_keys=ANY_PENDING),
        Grant("worker", OUTBOX, ("Query",), "FindHeld", index=PENDING, leading_keys=ANY_HELD),
    ),
)
