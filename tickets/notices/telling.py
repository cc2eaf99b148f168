"""Decide whom an event of a ticket concerns, put it into their inboxes, and add it to the next mail of each of them.

The destination "notice" of the outbox. Nobody hears of what they did themselves, of a ticket that they muted, of a kind
of event that they do not want, or of a text that their role may not read. Here only people and entries are named: the
texts are read when the mail is sent, by digest.py.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple, Self

from delivery.outbox import gathering
from delivery.outbox.destinations import Outcome
from delivery.outbox.gathering import RowGroup
from delivery.outbox.outbox_rows import Work
from delivery.outbox.publisher import EventType
from portal import clock, plain_text
from portal.dynamo.store import Store
from portal.errors import NotFound
from tenants.membership import members
from tenants.membership.mail_choices import MailKind
from tenants.membership.members import ListedMember, Member
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import Role, TenantContext
from tickets.groups import roster
from tickets.notices import inbox
from tickets.ticket import stored, ticket_events
from tickets.ticket.stored import ActivityItem, SummaryItem

_WORD: Final = re.compile(r"[\w'\u2019-]+")
_GOES_ON: Final = re.compile(r"\w")
MOST: Final = 50  # mentions in one text that are looked up


def mentioned(text: str, people: Sequence[ListedMember]) -> list[ListedMember]:
    """Return the members whom a text mentions, each once. Of two with the same name both are meant."""
    text = unicodedata.normalize("NFC", text)
    names = {person.id: _folded(person.name) for person in people}
    found: dict[str, ListedMember] = {}
    for begin in plain_text.mentions(text)[:MOST]:
        for person in _named(text, begin, people, names):
            found[person.id] = person
    return list(found.values())


def first_words(text: str) -> list[str]:
    """Return the words with which the names begin that a text may mention."""
    text = unicodedata.normalize("NFC", text)
    found = (_WORD.match(text, begin) for begin in plain_text.mentions(text)[:MOST])
    return [word[0] for word in found if word]


def _named(text: str, begin: int, people: Sequence[ListedMember], names: dict[str, str]) -> list[ListedMember]:
    """Return whom the longest name means that stands here, else the one whose first name does."""
    longest = max((len(name) for name in names.values()), default=0)
    here = _folded(text[begin : begin + longest + 1])
    whole = [one for one in people if _begins_with(here, names[one.id])]
    if whole:
        length = max(len(names[one.id]) for one in whole)
        return [one for one in whole if len(names[one.id]) == length]
    word = _WORD.match(text, begin)
    first = _folded(word[0]) if word else ""
    several = [one for one in people if names[one.id].partition(" ")[0] == first]
    return several if len(several) == 1 else []


def _begins_with(here: str, name: str) -> bool:
    return bool(name) and here.startswith(name) and not _GOES_ON.match(here, len(name))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


_DIGEST: Final = EventType("mail.notices", 1, "A person is to be told of what happened.", ())
EVENT: Final = "event"  # the kind of an entry that is no text but a rating, among those that people are told of
# Events that come by themselves: they concern the assignee, or the member whom their data names as `to`.
BY_TIME: Final = {
    "ticket.due": MailKind.DUE,
    "ticket.due_soon": MailKind.BREACHED,
    "ticket.breached": MailKind.BREACHED,
}
_NAME: Final = "notices/"  # of the group of a person, before their id


class Concern(NamedTuple):
    """Say whom an event concerns, and why: the first of these `kinds` of which the person wants to be told counts."""

    person: Member
    kinds: tuple[MailKind, ...]
    number: int
    entry: str = ""


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
        return json.dumps([self.kind.value, self.number, self.entry])


def deliver(work: Work) -> Outcome:
    """Tell each person whom the event of a row concerns.

    Costs a read of the desk, one of the ticket, one of those who may be concerned, or of all members where the text
    mentions somebody; and for each person who is told a transaction of two items, and what `gathering.add` does.
    """
    tenant = desk_at_work(work.tenant_id)
    event = json.loads(work.row.events[work.index])
    told = 0
    if tenant is not None:
        name = f"{work.row.event_id}/{work.index}"
        for concern in _concerns(tenant, event["type"], event["data"]):
            told += _tell(tenant, work.repository, concern, at=work.row.timestamp, event=name)
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


def _tell(tenant: TenantContext, repository: Store, concern: Concern, *, at: str, event: str) -> bool:
    """Put an event into a person's inbox, and add it to their next mail, as they chose. Return whether it is new to
    either. `repository` is that of the outbox."""
    person, kinds, number, entry = concern
    choices, is_new = person.choices, False
    if kind := next((one for one in kinds if one not in choices.unwanted_notices), None):
        is_new = inbox.tell(tenant, person.id, kind, number, at=at, event=event, entry=entry)
    if kind := next((one for one in kinds if one not in choices.unwanted_mail), None):
        if choices.digest_hour is not None:
            due = digest_time(
                clock.parse(at), choices.digest_hour, clock.zone_of(person.profile.own_zone or tenant.zone)
            )
            at = clock.stamp(due - gathering.WINDOW)
        is_new |= gathering.add(repository, _group(tenant, person), TicketNotice(kind, number, entry).written(), at=at)
    return is_new


def digest_time(at: datetime, hour: int, zone: tzinfo) -> datetime:
    """Return when this hour of the day begins for the first time after a moment, by the clocks of a zone."""
    local = at.astimezone(zone).replace(hour=hour, minute=0, second=0, microsecond=0, fold=0)
    days = (local + timedelta(days=one) for one in range(3))  # the hour that clocks skip may be over on its own day
    return next(day.astimezone(UTC) for day in days if day.astimezone(UTC) > at)


def _concerns(tenant: TenantContext, kind: str, data: Any) -> Iterator[Concern]:
    number = int(data["number"])
    if kind == ticket_events.ASSIGNED.name:
        yield from _assigned(tenant, number, to=data["after"]["id"], by=data["by"]["id"])
    elif kind in (ticket_events.ENTERED.name, ticket_events.EDITED_ENTRY.name):
        yield from _entered(tenant, number, data["entry"], by=data["by"], edited=data.get("times", 0))
    elif kind in BY_TIME:
        yield from _came_due(tenant, number, BY_TIME[kind], data.get("to"))


def _came_due(tenant: TenantContext, number: int, kind: MailKind, to: str | None) -> Iterator[Concern]:
    """Yield the member `to` whom this is told, or the assignee where nobody is named. Targets of a ticket that nobody
    has are told to the members of its group who are here today, else to the admins of the desk."""
    summary, _ = _ticket(tenant, number)
    if who := to or (summary.resolver if summary else ""):
        people = members.members_with(tenant.repository, [who])
    elif summary is not None and kind is MailKind.BREACHED:
        people = _in_group(tenant, summary.group) or _admins(tenant)
    else:
        people = []
    for person in people:
        if not _is_mute(person, summary):
            yield Concern(person, (kind,), number)


def _in_group(tenant: TenantContext, group_id: str) -> list[Member]:
    if not group_id:
        return []
    found, day = roster.read(tenant), roster.today(tenant)
    here = [one for one in found.members(group_id) if not found.agent(one).is_away(day)]
    return members.members_with(tenant.repository, here)


def _admins(tenant: TenantContext) -> list[Member]:
    return members.of_roles(tenant.repository, Role.ADMIN, Role.OWNER)


def _assigned(tenant: TenantContext, number: int, *, to: str, by: str) -> Iterator[Concern]:
    summary, _ = _ticket(tenant, number)
    if summary is None or summary.resolver != to or to == by:
        return
    for person in members.members_with(tenant.repository, [to]):
        if not _is_mute(person, summary):
            yield Concern(person, (MailKind.ASSIGNED,), number)


def _entered(tenant: TenantContext, number: int, entry: str, *, by: str, edited: int = 0) -> Iterator[Concern]:
    """Yield whom a new entry concerns, or of one that was `edited` for the nth time those whom it mentions since."""
    summary, found = _ticket(tenant, number, entry)
    if summary is None or found is None or found.deleted_at:
        return
    listeners, of_all = summary.listeners, MailKind.RATED if found.kind == EVENT else MailKind.ENTERED
    named = set[str]()
    if found.kind != EVENT and plain_text.mentions(found.body):
        before = [*(found.former_texts or ())][edited - 1 : edited] if edited else []
        words = [word for text in (found, *before) for word in first_words(text.body)]
        called = members.beginning_with(tenant.repository, words)
        named = {person.id for person in mentioned(found.body, called)}
        if edited:
            named -= {person.id for text in before for person in mentioned(text.body, called)}
            listeners = set()
    people = members.members_with(tenant.repository, (listeners | named) - {by})
    for person in people:
        if person.id in (by, found.author) or not may_read(person, found):
            continue
        kinds = [MailKind.MENTIONED] if person.id in named else []
        kinds += [of_all] if person.id in listeners else []
        if kinds and not _is_mute(person, summary):
            yield Concern(person, tuple(kinds), number, entry)


def _is_mute(person: Member, summary: SummaryItem | None) -> bool:
    return summary is not None and person.id in (summary.muted_by or ())


def _ticket(
    tenant: TenantContext, number: int, entry: str | None = None
) -> tuple[SummaryItem | None, ActivityItem | None]:
    repository = tenant.repository
    wanted = [repository.wanted(SummaryItem, stored.ticket, number, sort=stored.SUMMARY)]
    if entry is not None:
        wanted.append(repository.wanted(ActivityItem, stored.ticket, number, sort=entry))
    found = repository.get_all(wanted, consistent=True)
    return found[0], found[1] if entry is not None else None
