"""Declare the tables of accounts and of the counters that slow down guessing."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

USERS = Table("Platform.Users", "platform", "pk")
THROTTLES = Table("Platform.Throttles", "platform", "bucket", ttl="expires_at")

declare(
    USERS,
    THROTTLES,
    grants=(
        Grant(
            "platform",
            USERS,
            ("BatchGetItem", "BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "UpdateItem"),
        ),
        Grant("platform", THROTTLES, ("DeleteItem", "UpdateItem")),
    ),
)
