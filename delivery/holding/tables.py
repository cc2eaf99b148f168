"""Let the workers read whose deliveries are held, and those that carry holds out note what they have done."""

from __future__ import annotations

from delivery.holding.keys import HOLDS
from portal.schema.registry import Grant, declare
from tenants.tenancy.stored import DIRECTORY

declare(
    grants=(
        Grant("platform", DIRECTORY, ("GetItem", "Query"), "ReadHolds", leading_keys=HOLDS),
        Grant("delivery", DIRECTORY, ("Query",), "ObeyHolds", leading_keys=HOLDS),
        Grant("worker", DIRECTORY, ("DeleteItem", "Query", "UpdateItem"), "CarryOutHolds", leading_keys=HOLDS),
    ),
)
