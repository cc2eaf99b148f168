"""Declare the tables of a tenant's members and invitations."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

INVITES = Table("Tenants.Invites", "tenant", "tenant_id", "invite_id")
# Which invitations' mails did not get through. It holds no right of anybody's.
UNREACHED = Table("Tenants.Unreached", "tenant", "tenant_id", "invite_id", ttl="expires_at")
MEMBERS = Table("Admin.Users", "tenant", "tenant_id", "user_id")

declare(
    INVITES,
    UNREACHED,
    MEMBERS,
    grants=(
        Grant("tenant", MEMBERS, ("GetItem", "Query")),
        Grant("tenant", INVITES, ("GetItem", "Query")),
        Grant("tenant", UNREACHED, ("Query", "UpdateItem")),
        Grant("platform", UNREACHED, ("PutItem",)),
        Grant("platform", INVITES, ("BatchGetItem", "ConditionCheckItem", "DeleteItem", "PutItem")),
        Grant("platform", MEMBERS, ("ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem")),
    ),
)
