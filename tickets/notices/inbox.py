"""Keep the inbox of each member: what concerned them on which ticket, and which tickets have news they have not seen.

A ticket has news or has none, however many events there were, so what is unread is one set of numbers. It comes with
the desk itself (`context.declare_item`), and each page can say how many tickets wait.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from portal import clock
from portal.dynamo.store import Action, Condition, Transaction
from portal.errors import ConditionFailed, TransactionRefused
from portal.schema import keys
from tenants.membership.mail_choices import MailKind
from tenants.tenancy.context import TenantContext
from tickets.notices import stored
from tickets.notices.stored import INBOX, InboxItem, NoticeItem
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import ActivityItem, SummaryItem

KEPT: Final = timedelta(days=60)
PAGE: Final = 50  # rows of a page; a filter looks through READ rows for them
READ: Final = 200
_ROW, _UNREAD = "row", "unread"
_REFUSED: Final = "ConditionalCheckFailed"


@dataclass
class TicketNotices:
    """Hold what an inbox has of one ticket, newest first. `summary` is None for a ticket that is gone; `latest` is the
    newest comment among the events, None where there is none that the person may read."""

    number: int
    is_unread: bool
    rows: list[NoticeItem] = field(default_factory=list)
    summary: SummaryItem | None = None
    latest: ActivityItem | None = None


@dataclass(frozen=True)
class InboxPage:
    """A page of an inbox. `before` is what the next page begins behind, "" at the end."""

    tickets: list[TicketNotices]
    before: str = ""


def tell(
    tenant: TenantContext, user_id: str, kind: MailKind, number: int, *, at: str, event: str, entry: str = ""
) -> bool:
    """Put an event that happened at the stamp `at` into a member's inbox, and count its ticket as unread. Return False
    where it is there already: the same `event` is put in once. One transaction of two items."""
    row = NoticeItem(
        keys.tenant(tenant.tenant_id),
        stored.notice(user_id, at, event),
        kind=kind.value,
        number=number,
        entry=entry,
        told_at=clock.stamp(),
        expires_at=int((clock.now() + KEPT).timestamp()),
    )
    new, transaction = NoticeItem.tenant_id.does_not_exist(), Transaction()
    transaction.put(row, name=_ROW, condition=new)
    item = stored.of_member(tenant.tenant_id, user_id)
    transaction.update(item, [InboxItem.unread.add({number})], name=_UNREAD, condition=stored.has_room())
    try:
        tenant.repository.transact(transaction)
        return True
    except TransactionRefused as refused:
        there, full = refused.reason(_ROW), refused.reason(_UNREAD)
        if there and there.code == _REFUSED:
            return False
        if not (full and full.code == _REFUSED):
            raise  # somebody reads or writes the same inbox; the event is delivered again
    try:  # as many tickets wait as are counted: one more is in the list alone
        tenant.repository.put(row, condition=new)
    except ConditionFailed:
        return False
    return True


def is_place(before: str) -> bool:
    """Tell whether a page of an inbox can begin behind this."""
    at, *digests = keys.split(before)
    return clock.is_stamp(at) and len(digests) == 1 and stored.IS_DIGEST.match(digests[0]) is not None


def unread(tenant: TenantContext) -> frozenset[int]:
    """Return the tickets with news for the person at work: no read, it came with the desk."""
    item: InboxItem | None = tenant.items.get(INBOX)
    return frozenset(int(one) for one in item.unread or ()) if item else frozenset()


def mark_read(tenant: TenantContext, numbers: Collection[int]) -> None:
    """Note that the person at work has seen the news of these tickets. One write, none for no tickets."""
    if numbers:
        _change(tenant, InboxItem.unread.delete({*numbers}), InboxItem.unread.exists())


def mark_unread(tenant: TenantContext, number: int) -> None:
    """Count a ticket as unread again; where as many are counted as can be, it stays read. One write."""
    _change(tenant, InboxItem.unread.add({number}), stored.has_room())


def _change(tenant: TenantContext, action: Action, condition: Condition) -> None:
    with suppress(ConditionFailed):
        item = stored.of_member(tenant.tenant_id, tenant.user_id)
        tenant.repository.update(item, [action], condition=condition)


def page(tenant: TenantContext, *, kind: str = "", only_unread: bool = False, before: str = "") -> InboxPage:
    """Return what concerns the person at work by ticket, the newest first: one Query, and the tickets with their latest
    entries by one BatchGetItem. Unread tickets whose events have expired are at the end of all unread ones."""
    waiting, found = unread(tenant), list[NoticeItem]()
    is_narrow = bool(kind) or only_unread
    prefix = stored.notices_of(tenant.user_id)
    start = {"tenant_id": {"S": tenant.tenant_id}, "part": {"S": prefix + before}} if before else None
    read = tenant.repository.query(
        NoticeItem, keys.tenant, begins_with=prefix, descending=True, limit=READ if is_narrow else PAGE, start=start
    )
    last = read.items[-1] if read.last_key else None
    for row in read.items:
        if (not kind or row.kind == kind) and (not only_unread or int(row.number) in waiting):
            found.append(row)
            if len(found) == PAGE and row is not read.items[-1]:
                last = row
                break
    by_ticket: dict[int, TicketNotices] = {}
    for row in found:
        number = int(row.number)
        by_ticket.setdefault(number, TicketNotices(number, number in waiting)).rows.append(row)
    if only_unread and not kind and last is None:
        by_ticket |= {one: TicketNotices(one, True) for one in sorted(waiting - by_ticket.keys())[:PAGE]}
    _fill(tenant, list(by_ticket.values()))
    return InboxPage(list(by_ticket.values()), last.part.removeprefix(prefix) if last else "")


def _fill(tenant: TenantContext, tickets: list[TicketNotices]) -> None:
    """Read the tickets with their latest entries."""
    repository = tenant.repository
    named = [(one, next((row.entry for row in one.rows if row.entry), "")) for one in tickets]
    wanted: list[Any] = []
    for one, entry in named:
        wanted.append(repository.wanted(SummaryItem, ticket_keys.ticket, one.number, sort=ticket_keys.SUMMARY))
        if entry:
            wanted.append(repository.wanted(ActivityItem, ticket_keys.ticket, one.number, sort=entry))
    found = iter(repository.get_all(wanted) if wanted else [])
    for one, entry in named:
        one.summary = next(found)
        latest: ActivityItem | None = next(found) if entry else None
        if latest is not None and not latest.deleted_at and (latest.kind != "note" or tenant.is_agent):
            one.latest = latest
