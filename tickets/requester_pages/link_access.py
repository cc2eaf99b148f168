"""Find the desk of a signed link. Every link that leads nowhere is one and the same `LinkGone`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from portal.errors import NotFound
from portal.web.access import guest
from tenants.tenancy.context import TenantContext
from tickets.letters import desk_addresses
from tickets.outside import guest_access
from tickets.replies.ticket_links import TicketLink
from tickets.requester_pages.requester_page import LinkGone


def _desk(link: TicketLink | None, *, is_former: bool = False) -> TenantContext:
    """Return the desk that a link names, also where the link is over if `is_former`: one read. Raises LinkGone."""
    if link is None or (link.is_over and not is_former):
        raise LinkGone
    try:
        return guest_access.of_tenant(desk_addresses.desk_at_work(link.tenant_id))
    except NotFound:
        raise LinkGone from None


def _of_ticket(arguments: Mapping[str, Any]) -> TenantContext:
    return _desk(TicketLink.read(arguments["token"]))


def _of_all(arguments: Mapping[str, Any]) -> TenantContext:
    return _desk(TicketLink.read_all(arguments["token"]))


def _of_former(arguments: Mapping[str, Any]) -> TenantContext:
    return _desk(TicketLink.read(arguments["token"]), is_former=True)


# Declare a view whose address has as `token` a link to one ticket, or to all tickets of a person.
of_ticket: Final = guest(_of_ticket)
of_all: Final = guest(_of_all)
of_former: Final = guest(_of_former)  # a link to one ticket that may be over
