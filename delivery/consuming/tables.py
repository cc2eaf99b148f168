"""Declare the table of deliveries that are dead, and what an operator who replays one may do with the outbox."""

from __future__ import annotations

from delivery.outbox.tables import OUTBOX
from portal.schema.registry import Grant, declare
from portal.schema.tables import Index, Table

# Those of all tenants by the moment they died, for operators. No tenant reads it.
DEAD_BY_TIME = Index(
    "by-time",
    "listed",
    "at",
    ("event_id", "timestamp", "index", "destination", "event_type", "subject", "reason", "expires_at"),
    leading_keys="",
    shared="operators see what could not be delivered, the newest first, whosever it is",
)

DEAD_DELIVERIES = Table(
    "Events.DeadLetters",
    "tenant",
    "tenant_id",
    "letter_id",
    indexes=(DEAD_BY_TIME,),
    ttl="expires_at",
)

declare(
    DEAD_DELIVERIES,
    grants=(
        # A consumer acts as the tenant whose message it holds.
        Grant("tenant", DEAD_DELIVERIES, ("BatchGetItem", "GetItem", "PutItem", "Query")),
        Grant("platform", DEAD_DELIVERIES, ("DeleteItem",)),
        Grant("platform", DEAD_DELIVERIES, ("Query",), "ListDeadDeliveries", index=DEAD_BY_TIME),
        Grant("platform", OUTBOX, ("UpdateItem",), "ReplayDeadDeliveries"),
        # It puts aside what an operator holds.
        Grant("delivery", OUTBOX, ("UpdateItem",), "PutAsideWhatIsHeld"),
    ),
)
