"""Declare the tables of tenants and of who belongs where."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

MEMBERSHIPS = Table(
    "Platform.Memberships",
    "platform",
    "platform_user_id",
    "tenant_id",
    shared="which tenants a person is in is asked before one of them is chosen",
)
# One partition per kind of object, so that commands and operators find all tenants by a Query.
DIRECTORY = Table(
    "Platform.Directory",
    "platform",
    "kind",
    "name",
    shared="operators, commands and workers find tenants, and their long jobs, without knowing them",
)
PLACED = "PLACED"  # the directory's partition of tables that tenants have to themselves; see placements.py
TENANTS = Table("Tenants.Config", "tenant", "tenant_id")

declare(
    MEMBERSHIPS,
    DIRECTORY,
    TENANTS,
    grants=(
        Grant("platform", DIRECTORY, ("DeleteItem", "PutItem", "Query", "UpdateItem")),
        Grant("worker", DIRECTORY, ("Query",), "FindPlaced", leading_keys=PLACED),
        Grant(
            "platform",
            MEMBERSHIPS,
            (
                "BatchGetItem",
                "ConditionCheckItem",
                "DeleteItem",
                "PutItem",
                "Query",
                "UpdateItem",
            ),
        ),
        Grant(
            "platform",
            TENANTS,
            ("BatchGetItem", "ConditionCheckItem", "GetItem", "PutItem", "UpdateItem"),
        ),
    ),
)
