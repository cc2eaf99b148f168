"""Declare the tables of accounts and of the counters that slow down guessing."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Index, Table

# Of accounts that may not sign in, and no others: an index of all would be one hot partition.
DISABLED_ACCOUNTS = Index(
    "gsi-disabled",
    "disabled",
    "email",
    ("user_id", "name", "is_active", "is_operator", "created_at"),
    "",
    shared="operators list the accounts that are disabled, whatever tenants those are in",
)
USERS = Table(
    "Platform.Users",
    "platform",
    "pk",
    indexes=(DISABLED_ACCOUNTS,),
    shared="an account is a person's, and is read at sign-in, before a tenant is known",
)
THROTTLES = Table(
    "Platform.Throttles",
    "platform",
    "bucket",
    ttl="expires_at",
    shared="attempts to sign in are counted before anybody is known",
)

declare(
    USERS,
    THROTTLES,
    grants=(
        Grant(
            "platform",
            USERS,
            ("BatchGetItem", "DeleteItem", "GetItem", "PutItem", "UpdateItem"),
        ),
        Grant("platform", USERS, ("Query",), "DisabledAccounts", index=DISABLED_ACCOUNTS),
        Grant("platform", THROTTLES, ("BatchGetItem", "UpdateItem")),
    ),
)
