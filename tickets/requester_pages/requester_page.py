"""Open a ticket, or the list of all tickets of a person, to whoever has a link that still holds.

Every link that does not is one and the same `LinkGone`: of another desk, with a changed letter, too old, revoked, for a
ticket of somebody else or for one that never was. A page costs two round trips: the desk, then all that it shows at the
same time. Nobody is signed in by a link. The context that acts for the requester is a viewer's, who reads no notes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from delivery.outbox.publisher import publish
from portal.dynamo import paging
from portal.dynamo.client import fan_out
from portal.dynamo.models import ByIndex
from portal.dynamo.store import Transaction
from portal.errors import Invalid, NotFound
from tenants.sign_in import attempt_limits
from tenants.sign_in.attempt_limits import AttemptLimit
from tenants.tenancy.context import TenantContext
from tickets.desk import changing, timelines
from tickets.desk.timelines import TicketTimeline
from tickets.outside import looks
from tickets.outside.looks import Looks
from tickets.replies import mail_settings, ticket_links
from tickets.replies.mail_settings import MailSettings
from tickets.replies.ticket_links import TicketLink
from tickets.requesters import requesters
from tickets.requesters.requesters import Requester
from tickets.requesters.stored import PROFILE, ProfileItem
from tickets.requesters.stored import requester as requester_key
from tickets.ticket import fields, stored, ticket_events
from tickets.ticket.fields import Status
from tickets.ticket.stored import OF_REQUESTER, SummaryItem

WRITTEN: Final = 60  # answers and ratings of a person, in a window of SIGN_IN_WINDOW; each costs the desk writes
LISTED: Final = 25  # tickets of a page of the list
_LINKS_OF_PERSON: Final = 3  # letters with a link, in a window of SIGN_IN_WINDOW
_LINKS_OF_NETWORK: Final = 30
_T = TypeVar("_T")
_ROWS: Final = ByIndex(SummaryItem, OF_REQUESTER)


class LinkGone(NotFound):
    """The link leads nowhere. Why it does not, its holder is not told."""

    guest_page = "requester_pages/gone.html"


@dataclass(frozen=True)
class Visit:
    """Somebody who has come by a link: the `person`, and the context in which they act."""

    desk: TenantContext
    person: Requester
    settings: MailSettings
    looks: Looks


# --- one ticket ---


def open_ticket(desk: TenantContext, link: TicketLink, *, before: str | None = None) -> tuple[Visit, TicketTimeline]:
    """Return who has come, and the ticket with its latest messages, or with those before a cursor: one round trip.

    Raises LinkGone, and Invalid for a cursor that is none.
    """
    visit, ticket = _with_visit(desk, link, lambda: _read(desk, link, before))
    if not link.leads_to(ticket.summary, visit.settings, visit.person):
        raise LinkGone
    if ticket.summary.is_aside:
        ticket = timelines.ticket(desk, int(_current(desk, ticket.summary, visit.person).number), before=before)
    return visit, ticket


def let_in(desk: TenantContext, link: TicketLink) -> tuple[Visit, SummaryItem]:
    """Return who has come, and their ticket without its messages: one round trip. Raises LinkGone."""

    def summary() -> SummaryItem:
        try:
            return changing.read(desk, link.number)
        except NotFound:
            raise LinkGone from None

    visit, found = _with_visit(desk, link, summary)
    if not link.leads_to(found, visit.settings, visit.person):
        raise LinkGone
    return visit, _current(desk, found, visit.person)


def _current(desk: TenantContext, summary: SummaryItem, person: Requester) -> SummaryItem:
    """Return the ticket in which the conversation goes on, the one that it was merged into. Raises LinkGone where that
    is somebody else's by now, and for spam."""
    if summary.merged_into:
        summary = changing.read_merged(desk, int(summary.merged_into))
        if summary.requester not in person.ids:
            raise LinkGone
    if summary.spam_at:
        raise LinkGone
    return summary


def _read(desk: TenantContext, link: TicketLink, before: str | None) -> TicketTimeline:
    try:
        return timelines.ticket(desk, link.number, before=before)
    except NotFound:
        raise LinkGone from None
    except Invalid:
        found = timelines.ticket(desk, link.number)
        if not found.summary.merged_into:
            raise
        return found  # the cursor may be of the ticket that this one was merged into


def _with_visit(desk: TenantContext, link: TicketLink, read: Callable[[], _T]) -> tuple[Visit, _T]:
    """Return who has come, and what `read` returns: one round trip. It is consistent, so a revoked link ends at once.

    Raises LinkGone for a person who is no more, and for a blocked sender.
    """
    profile_key = desk.repository.wanted(ProfileItem, requester_key, link.person_id, sort=PROFILE)
    reads: list[Callable[[], Any]] = [
        lambda: desk.repository.get_all([looks.wanted(desk), profile_key], consistent=True),
        lambda: mail_settings.read(desk),
        read,
    ]
    (of_looks, profile), settings, found = fan_out(reads)
    if profile is None:
        raise LinkGone
    person = Requester.of(profile)
    if any(map(settings.is_blocked, person.addresses)):
        raise LinkGone  # a blocked sender writes no letters either, and each page here takes text
    acting = replace(desk, user_id=person.id, user_name=person.label)
    return Visit(acting, person, settings, Looks.of(desk, of_looks)), found


def has_written_often(visit: Visit) -> bool:
    """Count something that a person writes by a link, and tell whether it is too much: for all who have their links."""
    limit = AttemptLimit("requester's page", f"{visit.desk.tenant_id} {visit.person.id}", WRITTEN)
    return attempt_limits.begin((limit,)).wait_minutes is not None


def has_just_said(visit: Visit, summary: SummaryItem, body: str) -> bool:
    """Tell whether this text is the last message of an open ticket, and the visitor's own: one Query at most.

    Going back in the browser brings a sent text again, in a form with a new id.
    """
    if summary.status != Status.OPEN:
        return False
    last = timelines.last_comment(visit.desk, summary)
    if last is None or last.author not in visit.person.ids or last.files:
        return False
    return last.body == fields.comment(body)


# --- all tickets of a person ---


@dataclass(frozen=True)
class OwnTickets:
    """A page of somebody's tickets, the newest first. `next` is a cursor to the older ones."""

    rows: list[SummaryItem]
    next: str | None


def open_list(desk: TenantContext, link: TicketLink, *, after: str = "") -> tuple[Visit, OwnTickets]:
    """Return who has come, and a page of their own tickets: one Query beside what a visit reads. Raises LinkGone, and
    Invalid for a cursor that is none. Tickets of people who were merged into them open by links of their own."""
    visit, found = _with_visit(desk, link, lambda: _list(desk, link, after))
    if not link.leads_to_all(visit.settings, visit.person):
        raise LinkGone
    return visit, found


def _list(desk: TenantContext, link: TicketLink, after: str) -> OwnTickets:
    place = ("tickets of", link.person_id)
    (pk, sk, at) = (paging.load(after, tenant_id=desk.tenant_id, query=place) if after else None) or ("", "", "")
    partition = desk.repository.key(stored.tenant_requester, link.person_id)
    start = (
        {"pk": {"S": pk}, "sk": {"S": sk}, "tenant_requester": {"S": partition}, "created_at": {"S": at}}
        if pk
        else None
    )
    page = desk.repository.query(
        _ROWS, stored.tenant_requester, link.person_id, descending=True, limit=LISTED, start=start
    )
    # The row's key says whose ticket it is, whatever else is in it.
    rows = [row for row in page.items if stored.ticket_number(desk.tenant_id, row.pk) == int(row.number)]
    last = page.last_key
    further = [last[name]["S"] for name in ("pk", "sk", "created_at")] if last else None
    return OwnTickets(rows, paging.dump(further, tenant_id=desk.tenant_id, query=place) if further else None)


def link_from_list(desk: TenantContext, link: TicketLink, number: int) -> TicketLink:
    """Return the link to one of the tickets to which `link` leads all together: one round trip. Raises LinkGone."""

    def summary() -> SummaryItem | None:
        try:
            return changing.read(desk, number)
        except NotFound:
            return None

    visit, found = _with_visit(desk, link, summary)
    if not link.leads_to_all(visit.settings, visit.person) or found is None or found.requester not in visit.person.ids:
        raise LinkGone
    return ticket_links.ticket_link(desk, found, visit.person, visit.settings)


# --- links that are asked for ---


def send_link(desk: TenantContext, person_id: str, number: int, *, to: str, network: str) -> bool:
    """Send a letter with a link to the address on record: to this ticket, or to all where `to` says so.

    False where the person or the network has asked too often. The letter is written when it is sent, and only if the
    ticket is the person's then.
    """
    limits = [
        AttemptLimit("link to tickets, person", f"{desk.tenant_id} {person_id}", _LINKS_OF_PERSON),
        AttemptLimit("link to tickets, network", network, _LINKS_OF_NETWORK),
    ]
    if attempt_limits.begin(limits).wait_minutes:
        return False
    transaction = Transaction()
    asked = ticket_events.link_asked(number, person=person_id, link=to)
    publish(desk, transaction, asked, subject=ticket_events.subject(number))
    desk.repository.transact(transaction)
    return True


def send_new_link(desk: TenantContext, link: TicketLink, *, network: str) -> None:
    """Send a new link in the place of a former one to the address on record, where the ticket is still the person's.
    The caller answers the same in either case."""
    person = requesters.find(desk, link.person_id) if link.number else None
    if person is None:
        return
    try:
        is_theirs = changing.read(desk, link.number).requester in person.ids
    except NotFound:
        return
    if is_theirs and not any(map(mail_settings.read(desk).is_blocked, person.addresses)):
        send_link(desk, person.id, link.number, to=ticket_events.TO_TICKET, network=network)
