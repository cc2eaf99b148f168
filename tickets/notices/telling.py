"""Decide whom an event of a ticket concerns, and add it to the next mail of each of them.

The destination "notice" of the outbox. Nobody hears of what they did themselves, of a ticket that they muted, of a kind
of event that they do not want, or of a text that their role may not read. Here only people and entries are named: the
texts are read when the mail is sent, by digest.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Self

from delivery.outbox import gathering
from delivery.outbox.destinations import Outcome
from delivery.outbox.event_types import EventType
from delivery.outbox.gathering import RowGroup
from delivery.outbox.outbox_rows import Work
from portal.errors import NotFound
from tenants.membership import members
from tenants.membership.mail_choices import MailKind
from tenants.membership.members import Member
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tickets.notices.mentions import mentioned
from tickets.ticket import fields, stored, ticket_events
from tickets.ticket.stored import ActivityItem, SummaryItem

_DIGEST: Final = EventType("mail.notices", 1, "A person is to be told of what happened.", ())
EVENT: Final = "event"  # the kind of an entry that is no text but a rating, among those that people are told of
_NAME: Final = "notices/"  # of the group of a person, before their id


class TicketNotice(NamedTuple):
    """One event that a person is to be told of. `entry` is the sort key of a comment or note, "" for an assignment;
    the entry of a rating is the change with its words."""

    kind: MailKind
    number: int
    entry: str = ""

    @classmethod
    def read(cls, text: str) -> Self:
        """Read what `written` wrote, without what a newer version may have added."""
        kind, number, entry = json.loads(text)[:3]
        return cls(MailKind(kind), int(number), str(entry))

    def written(self) -> str:
        """Return it as a row holds it."""
        return json.dumps([self.kind.value, self.number, self.entry])


def deliver(work: Work) -> Outcome:
    """Add the event of a row to the mail of each person whom it concerns.

    Costs a read of the desk, one of the ticket, one of those who may be concerned, or of all members where the text
    mentions somebody; and for each person who is told what `gathering.add` does.
    """
    tenant = desk_at_work(work.tenant_id)
    event = json.loads(work.row.events[work.index])
    told = 0
    if tenant is not None:
        for person, notice in _notices(tenant, event["type"], event["data"]):
            told += gathering.add(work.repository, _group(tenant, person), notice.written(), at=work.row.timestamp)
    return Outcome("answered", note=f"{told} told." if told else "Nobody is to be told.")


def desk_at_work(tenant_id: str) -> TenantContext | None:
    """Return the context in which mail about a desk is written; None for one that is gone, or that nobody can open."""
    try:
        tenant = context.for_system(tenant_directory.get(tenant_id))
    except NotFound:
        return None
    return None if tenant.suspended else tenant


def person_of(group: str) -> str:
    """Return the id of the person whose group has this name."""
    return group.removeprefix(_NAME)


def may_read(person: Member, entry: ActivityItem) -> bool:
    """Tell whether a member's role lets them read an entry; a deleted one says nothing."""
    return not entry.deleted_at and (entry.kind != "note" or person.role.at_least(Role.AGENT))


def _group(tenant: TenantContext, person: Member) -> RowGroup:
    return RowGroup(tenant.tenant_id, tenant.queues, f"{_NAME}{person.id}", ticket_events.DIGEST, _DIGEST)


def _notices(tenant: TenantContext, kind: str, data: Any) -> Iterator[tuple[Member, TicketNotice]]:
    number = int(data["number"])
    if kind == ticket_events.ASSIGNED.name:
        yield from _assigned(tenant, number, to=data["after"]["id"], by=data["by"]["id"])
    elif kind in (ticket_events.ENTERED.name, ticket_events.EDITED_ENTRY.name):
        yield from _entered(tenant, number, data["entry"], by=data["by"], edited=data.get("times", 0))


def _assigned(tenant: TenantContext, number: int, *, to: str, by: str) -> Iterator[tuple[Member, TicketNotice]]:
    summary, _ = _ticket(tenant, number)
    if summary is None or summary.resolver != to or to == by:
        return
    for person in members.members_with(tenant.repository, [to]):
        if _wants(person, MailKind.ASSIGNED, summary):
            yield person, TicketNotice(MailKind.ASSIGNED, number)


def _entered(
    tenant: TenantContext, number: int, entry: str, *, by: str, edited: int = 0
) -> Iterator[tuple[Member, TicketNotice]]:
    """Yield whom a new entry concerns, or of one that was `edited` for the nth time those whom it mentions since."""
    summary, found = _ticket(tenant, number, entry)
    if summary is None or found is None or found.deleted_at:
        return
    listeners, of_all = summary.listeners, MailKind.RATED if found.kind == EVENT else MailKind.ENTERED
    if found.kind != EVENT and fields.mentions(found.body):
        people = members.members_of(tenant.repository, consistent=True)
        named = {person.id for person in mentioned(found.body, people)}
        if edited:
            before = [*(found.former_texts or ())][edited - 1 : edited]
            named -= {person.id for text in before for person in mentioned(text.body, people)}
            listeners = set()
    else:
        people, named = members.members_with(tenant.repository, listeners - {by}), set()
    for person in people:
        if person.id in (by, found.author) or not may_read(person, found):
            continue
        kinds = [MailKind.MENTIONED] if person.id in named else []
        kinds += [of_all] if person.id in listeners else []
        wanted = [kind for kind in kinds if _wants(person, kind, summary)]
        if wanted:
            yield person, TicketNotice(wanted[0], number, entry)


def _wants(person: Member, kind: MailKind, summary: SummaryItem) -> bool:
    return kind not in person.unwanted_mail and person.id not in (summary.muted_by or ())


def _ticket(
    tenant: TenantContext, number: int, entry: str | None = None
) -> tuple[SummaryItem | None, ActivityItem | None]:
    repository = tenant.repository
    wanted = [repository.wanted(SummaryItem, stored.ticket, number, sort=stored.SUMMARY)]
    if entry is not None:
        wanted.append(repository.wanted(ActivityItem, stored.ticket, number, sort=entry))
    found = repository.get_all(wanted, consistent=True)
    return found[0], found[1] if entry is not None else None
