"""Say what workers and operators may do for a resharding: tell the layout, and note how far it is.

Tickets are moved in their tenant's name.
"""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from tenants.tenancy.stored import DIRECTORY, TENANTS
from tickets.sharding.keys import ALL_HISTORIES, HEAT, RESHARDINGS

declare(
    grants=(
        Grant("platform", DIRECTORY, ("GetItem",), "ReadReshardings", leading_keys=RESHARDINGS),
        Grant(
            "worker", DIRECTORY, ("DeleteItem", "GetItem", "Query", "UpdateItem"), "CarryOutReshardings",
            leading_keys=RESHARDINGS,
        ),
        Grant("worker", DIRECTORY, ("PutItem",), "KeepReshardings", leading_keys=ALL_HISTORIES),
        Grant("worker", DIRECTORY, ("DeleteItem", "Query", "UpdateItem"), "TellHeat", leading_keys=HEAT),
        Grant("worker", TENANTS, ("GetItem", "UpdateItem"), "ChangeLayouts"),
    ),
)  # fmt: skip
