"""Declare the table of tickets and its indexes."""

from __future__ import annotations

from portal.schema import keys
from portal.schema.registry import Grant, declare
from portal.schema.tables import Index, Table
from tickets.ticket.fields import FIELDS

# A list row, and nothing else: each projected attribute is written to both indexes on every change.
# An index always carries the base table's keys and its own; the other index's key is listed because a row's
# select box states its resolver.
LIST_ROW = (
    *(field.name for field in FIELDS if field.is_listed),
    "number",
    "resolver_name",
    "requester_name",
    "created_at",
    "comment_count",
    "version",
    # Where there is one: when it was last resolved, reopened, commented on. The dashboard's numbers lead to lists.
    "resolved_at",
    "reopened_at",
    "commented_at",
)

STATUS_UPDATED = Index("gsi-status-updated", "tenant_status", "updated_at", (*LIST_ROW, "raised_at"))
STATUS_RESOLVER = Index(
    "gsi-status-resolver", "tenant_status", "resolver_updated", (*LIST_ROW, "updated_at", "raised_at")
)
# Sparse: the tickets whose last change is an internal note, in the order that agents see. See ADR 30.
STATUS_RAISED = Index("gsi-raised", "raised_status", "raised_at", (*LIST_ROW, "tenant_status"))
RESOLVER_RAISED = Index(
    "gsi-raised-resolver", "raised_status", "resolver_raised", (*LIST_ROW, "tenant_status", "raised_at")
)

TICKETS = Table(
    "Support.Tickets",
    "tenant",
    "pk",
    "sk",
    indexes=(STATUS_UPDATED, STATUS_RESOLVER, STATUS_RAISED, RESOLVER_RAISED),
    ttl="expires_at",
    stream=True,
    leading_keys=keys.OWN_COLLECTIONS,
    placed=True,
    copied=("COUNTER", "IMPORT", "IMPORTS", "REQUEST", "TICKET"),  # the stream makes all else of these
)


declare(
    TICKETS,
    grants=(
        Grant("tenant", TICKETS, ("BatchGetItem", "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem")),
        Grant("seed", TICKETS, ("BatchWriteItem",), "WriteInBulk", leading_keys=keys.ALL_COLLECTIONS),
    ),
)
