"""Say what is granted for moves: whoever carries one out writes the copy, and operators read how far it is."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from tenants.tenancy.stored import DIRECTORY
from tickets.moving.keys import MOVES
from tickets.ticket.stored import TICKETS

declare(
    grants=(
        Grant("platform", DIRECTORY, ("GetItem",), "ReadMoves", leading_keys=MOVES),
        Grant("lifecycle", TICKETS, ("ConditionCheckItem", "PutItem", "UpdateItem"), "CopyTickets"),
    ),
)
