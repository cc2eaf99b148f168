"""Say what a ticket is that stands in no list and no number: merged into another one, or spam.

Its index keys name a place of its own in the stead of its status and of its requester, so that no list reads its row.
No rule changes it: `TicketState.still_holds` is a condition that it does not fulfil.
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from portal.errors import Conflict
from tenants.tenancy.context import TenantContext
from tickets.ticket import stored
from tickets.ticket.fields import Values
from tickets.ticket.stored import SummaryItem


class SetAside(Conflict):
    """The ticket was merged into another one, or is marked as spam. Nothing was written.

    `why` is the sentence without its subject.
    """

    code = "ticket_set_aside"

    def __init__(self, summary: SummaryItem) -> None:
        merged = _("was merged into ticket %(number)s") % {"number": int(summary.merged_into or 0)}
        self.why = merged if summary.merged_into else _("is marked as spam")
        super().__init__(_("Ticket %(number)s %(why)s.") % {"number": int(summary.number), "why": self.why})


def refuse(summary: SummaryItem) -> None:
    """Raise SetAside for a ticket that is in no list."""
    if summary.is_aside:
        raise SetAside(summary)


def out_of_lists(tenant: TenantContext, summary: SummaryItem, why: str) -> Values:
    """Return the attributes that take a ticket out of all lists, `why` as `stored.aside` takes it."""
    place = tenant.repository.key(stored.aside, why)
    return {"tenant_status": place} | ({"tenant_requester": place} if summary.tenant_requester else {})


def into_lists(tenant: TenantContext, summary: SummaryItem) -> Values:
    """Return the attributes that, beside those of each change, bring a ticket back to where `out_of_lists` took it
    from."""
    place = stored.place_of_requester(tenant.tenant_id, summary.requester)
    return {"tenant_requester": place} if place else {}
