"""Send one person the mail about all that concerned them within a minute.

The destination "digest" of the outbox. All that the mail says is read here, by what the person may see now: somebody
who has left the desk, has become a viewer, or has muted a ticket meanwhile, gets that much less. Erased texts are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings

from delivery.mail import mail_delivering
from delivery.mail.outbox_backend import MailContent
from delivery.outbox import gathering
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from tenants.membership import members
from tenants.membership.mail_choices import MailKind
from tenants.membership.members import Member
from tenants.tenancy.context import Role, TenantContext
from tickets.notices import telling
from tickets.notices.telling import TicketNotice
from tickets.replies import message_ids, reply_addresses
from tickets.ticket import stored
from tickets.ticket.fields import Rating
from tickets.ticket.stored import ActivityItem, SummaryItem

MOST: Final = 40  # events in one mail; of more it says how many there are
_NOBODY: Final = "Nobody is to be told any more."


@dataclass
class TicketNews:
    """Hold what a mail says about one ticket. `said` are the kinds of events that have no entry. `answer_to` is the
    person's own address for an answer by mail, "" where none may be sent."""

    summary: SummaryItem
    said: list[MailKind] = field(default_factory=list)
    entries: list[ActivityItem] = field(default_factory=list)
    answer_to: str = ""

    @property
    def has_note(self) -> bool:
        return any(entry.kind == "note" for entry in self.entries)


@dataclass(frozen=True)
class Digest:
    """Hold all that a mail to a person says. `more` events have no room in it; `kinds` are those of the others."""

    tenant: TenantContext
    person: Member
    tickets: list[TicketNews]
    kinds: list[MailKind]
    more: int


Write = Callable[[Digest], MailContent]


def deliver(work: Work, *, write: Write) -> Outcome:
    """Send the mail of a row. Raises what the database raises; the delivery is then made again.

    Costs the write that seals the row, and three reads: of the desk, the person, and the tickets with their entries.
    """
    notices = sorted({TicketNotice.read(text) for text in gathering.seal(work)}, key=lambda one: one[1:])
    tenant = telling.desk_at_work(work.tenant_id)
    if tenant is None:
        return Outcome("answered", note=_NOBODY)
    for person in members.members_with(tenant.repository, [telling.person_of(work.row.subject)]):
        shown = notices[:MOST]
        if tickets := _news(tenant, person, shown):
            kinds = list(dict.fromkeys(one.kind for one in shown))
            digest = Digest(tenant, person, tickets, kinds, more=len(notices) - len(shown))
            return mail_delivering.carry(work, write(digest))
    return Outcome("answered", note=_NOBODY)


def _news(tenant: TenantContext, person: Member, notices: list[TicketNotice]) -> list[TicketNews]:
    summaries, entries = _read(tenant, notices)
    found: dict[int, TicketNews] = {}
    for kind, number, entry_key in notices:
        summary, entry = summaries.get(number), entries.get((number, entry_key))
        if summary is None or person.id in (summary.muted_by or ()) or kind in person.choices.unwanted_mail:
            continue
        news = found.get(number) or TicketNews(summary)
        if kind is MailKind.ASSIGNED and summary.resolver != person.id:
            continue
        if not entry_key:
            news.said += [kind] if kind not in news.said else []
        elif kind is MailKind.RATED and summary.rating != Rating.BAD:
            continue  # it was changed meanwhile
        elif entry is not None and telling.may_read(person, entry) and entry not in news.entries:
            news.entries.append(entry)
        if news.said or news.entries:
            found[number] = news
    if not any(news.has_note for news in found.values()):
        for news in found.values():
            news.answer_to = _answer_to(tenant, person, news)
    return list(found.values())


def _read(
    tenant: TenantContext, notices: list[TicketNotice]
) -> tuple[dict[int, SummaryItem], dict[tuple[int, str], ActivityItem]]:
    """Return the summaries by number, and the entries by number and sort key, as far as there are any."""
    repository = tenant.repository
    numbers = list(dict.fromkeys(one.number for one in notices))
    named = list(dict.fromkeys((one.number, one.entry) for one in notices if one.entry))
    wanted: list[Any] = [repository.wanted(SummaryItem, stored.ticket, n, sort=stored.SUMMARY) for n in numbers]
    wanted += [repository.wanted(ActivityItem, stored.ticket, n, sort=entry) for n, entry in named]
    found = repository.get_all(wanted, consistent=True)
    summaries = zip(numbers, found[: len(numbers)], strict=True)
    entries = zip(named, found[len(numbers) :], strict=True)
    return (
        {number: item for number, item in summaries if item is not None},
        {name: item for name, item in entries if item is not None},
    )


def _answer_to(tenant: TenantContext, person: Member, news: TicketNews) -> str:
    """Return the person's own address for an answer by mail.

    None is given where the mail has an internal note, of whichever ticket: an answer is public, and would quote it.
    """
    number = int(news.summary.number)
    if not person.role.at_least(Role.AGENT) or not settings.MAIL_DOMAIN or number > message_ids.MOST:
        return ""
    return reply_addresses.address_of(tenant.tenant_id, number, person.id, is_agent=True)
