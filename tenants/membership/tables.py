"""Declare the tables of a tenant's members and invitations."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

INVITES = Table("Tenants.Invites", "tenant", "tenant_id", "invite_id")
MEMBERS = Table("Admin.Users", "tenant", "tenant_id", "user_id")

declare(
    INVITES,
    MEMBERS,
    grants=(
        Grant("tenant", MEMBERS, ("GetItem", "Query")),
        Grant("tenant", INVITES, ("GetItem", "Query")),
        Grant("platform", INVITES, ("BatchGetItem", "ConditionCheckItem", "DeleteItem", "PutItem")),
        Grant("platform", MEMBERS, ("ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem")),
    ),
)
