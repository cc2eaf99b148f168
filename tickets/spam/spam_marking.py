"""Mark a ticket as spam, exactly, and take that back.

Spam stands in no list and no number of the desk, and in a list of its own, from which TTL removes it in the end. So the
mark gives all of the ticket's items a time to end, its files included, and counts its files no more; all of that is one
transaction, which holds if nothing came to the ticket since it was read. Taking it back removes the times again. That
is possible until a day before they come: no ticket is ever half gone when it comes back.

The sender is blocked beside it: mail of theirs is refused, and their links end. Taking the mark back unblocks whom it
has blocked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, TypeVar

from django.utils.translation import gettext

from delivery.outbox.publisher import publish
from portal import clock
from portal.dynamo import paging
from portal.dynamo.models import ByIndex
from portal.dynamo.retry import retrying
from portal.dynamo.store import TRANSACTION_LIMIT, Action, Condition, Transaction
from portal.errors import Conflict, Invalid, NotFound, Overtaken, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy.context import TenantContext
from tickets.attachments import scanning
from tickets.attachments import stored as file_keys
from tickets.attachments.stored import FileItem, FileUsageItem
from tickets.desk import changing, undoing
from tickets.desk.changing import TicketState
from tickets.desk.undoing import Undone
from tickets.replies import mail_settings
from tickets.requesters import requester_tickets, requesters
from tickets.requesters.requesters import Requester
from tickets.ticket import set_aside, stored, ticket_events
from tickets.ticket.fields import SPAM, Status
from tickets.ticket.status_dates import set_to
from tickets.ticket.stored import STATUS_UPDATED, TICKET_ITEMS, ActivityItem, DetailItem, SummaryItem

KEPT: Final = timedelta(days=30)  # in which the mark can be taken back
_REMOVED: Final = KEPT + timedelta(days=1)  # when TTL may begin to remove it
OFFERED: Final = 20  # other tickets of a sender
PAGE: Final = 50
_MOST: Final = TRANSACTION_LIMIT - 10  # members, but for the entry, the outbox and a move
_SPARE: Final = 8  # members that a mark leaves for its own entry and others that come to spam, so that it can go back
_ATTEMPTS: Final = 6
_UNDO: Final = "spam"
_ROWS: Final = ByIndex(SummaryItem, STATUS_UPDATED)

_Item = DetailItem | ActivityItem
_T = TypeVar("_T")


@dataclass(frozen=True)
class Marked:
    """Say what a mark did: whether it `is_new`, the addresses that it blocked, and why it could not block."""

    summary: SummaryItem
    is_new: bool
    blocked: tuple[str, ...] = ()
    not_blocked: str = ""

    def receipt(self, tenant: TenantContext) -> str:
        """Return what undoes it, "" where it changed nothing."""
        return undoing.receipt(tenant, _UNDO, [int(self.summary.number)]) if self.is_new else ""


@dataclass(frozen=True)
class _ReadState(TicketState):
    """A ticket to which nothing came since it was read: no comment, note, event or file."""

    read: SummaryItem | None = field(default=None, compare=False)

    @property
    def still_holds(self) -> Condition:
        condition: Any = super().still_holds
        for name in ("updated_at", "noted_at", "file_count", "link_generation"):
            attribute, value = getattr(SummaryItem, name), getattr(self.read, name)
            condition &= attribute.does_not_exist() if value is None else attribute == value
        found: Condition = condition
        return found


def mark(tenant: TenantContext, number: int, *, by: Actor, block: bool = True) -> Marked:
    """Mark a ticket as spam, block its sender, and return what was done. Again it changes nothing but the block.

    One Query, one transaction and an audit row; the block costs a Query and what mail_settings says.
    Raises NotFound, SetAside for one that was merged, Conflict for a ticket that is too long or holds merged ones, and
    Overtaken.
    """
    blocked, not_blocked = _block(tenant, number, by) if block else ((), "")

    def attempt() -> Marked:
        summary, items = _markable(tenant, number)
        if summary.spam_at:
            return Marked(summary, False, blocked, not_blocked)
        at = max(clock.stamp(), summary.updated_at)
        ends = int((clock.parse(at) + _REMOVED).timestamp())
        actions = [set_to("spam_at", at), SummaryItem.expires_at.set(ends)]
        if blocked:
            actions.append(SummaryItem.spam_blocks.set(1))
        places = set_aside.out_of_lists(tenant, summary, stored.SPAM_ASIDE)
        _write(tenant, summary, items, at, ("", "yes"), actions, places, ends)
        return Marked(summary, True, blocked, not_blocked)

    done = _again(attempt)
    if done.is_new:
        _record(tenant, AuditAction.TICKET_MARKED_SPAM, number, by)
    return done


def unmark(tenant: TenantContext, number: int, *, by: Actor) -> SummaryItem:
    """Let a ticket be none of spam again, as it was, and return it as it was read. Unblocks whom its mark blocked.

    Raises NotFound, Conflict for one that is no spam or too old, and Overtaken.
    """

    def attempt() -> SummaryItem:
        summary, items = _read(tenant, number)
        if not summary.spam_at:
            raise Conflict(gettext("Ticket %(number)s is not marked as spam.") % {"number": number})
        if is_over(summary):
            raise Conflict(
                gettext("Ticket %(number)s was spam for more than %(days)s days and is being removed.")
                % {"number": number, "days": KEPT.days}
            )
        at = max(clock.stamp(), summary.updated_at)
        actions = [set_to("spam_at", None), SummaryItem.expires_at.remove(), SummaryItem.spam_blocks.remove()]
        _write(tenant, summary, items, at, ("yes", ""), actions, set_aside.into_lists(tenant, summary), None)
        return summary

    summary = _again(attempt)
    _record(tenant, AuditAction.TICKET_UNMARKED_SPAM, number, by)
    if summary.spam_blocks:
        _unblock(tenant, summary, by)
    return summary


def is_over(summary: SummaryItem) -> bool:
    """Tell whether spam is so old that its mark stays."""
    return bool(summary.spam_at) and clock.now() >= ends_at(summary)


def ends_at(summary: SummaryItem) -> Any:
    """Return until when the mark of spam can be taken back."""
    return clock.parse(summary.spam_at or "") + KEPT


# --- what is written ---


def _markable(tenant: TenantContext, number: int) -> tuple[SummaryItem, list[_Item]]:
    """Return a ticket that is spam, or can be, and all other items of it. Raises what `mark` raises."""
    summary, items = _read(tenant, number)
    if not summary.spam_at:
        set_aside.refuse(summary)
        if summary.merged:
            raise Conflict(
                gettext("Other tickets were merged into ticket %(number)s. Take them out first.") % {"number": number}
            )
        if _members(items) > _MOST - _SPARE:
            raise _too_long(number)
    return summary, items


def _read(tenant: TenantContext, number: int) -> tuple[SummaryItem, list[_Item]]:
    """Return a ticket and all other items of it. Raises NotFound, and Conflict for one that is too long to be spam."""
    page = tenant.repository.query(TICKET_ITEMS, stored.ticket, number, descending=True, limit=_MOST, consistent=True)
    summary = next((item for item in page.items if isinstance(item, SummaryItem)), None)
    if summary is None:
        raise NotFound(gettext("There is no ticket %(number)s.") % {"number": number})
    items = [item for item in page.items if not isinstance(item, SummaryItem)]
    if page.last_key is not None or _members(items) > _MOST:
        raise _too_long(number)
    return summary, items


def _members(items: list[_Item]) -> int:
    return len(items) + 2 * len(_files(items))


def _too_long(number: int) -> Conflict:
    return Conflict(gettext("Ticket %(number)s has too many entries for spam. Close it instead.") % {"number": number})


def _files(items: Iterable[_Item]) -> list[Any]:
    return [file for item in items for file in item.files or () if file.state != scanning.REMOVED]


def _write(
    tenant: TenantContext,
    summary: SummaryItem,
    items: list[_Item],
    at: str,
    change: tuple[str, str],
    actions: list[Any],
    places: Any,
    ends: int | None,
) -> None:
    """Write the change of a ticket with the time at which all of its items end, None for never."""
    of, transaction = TicketState.of(summary), Transaction()
    state = _ReadState(of.number, of.version, of.status, of.resolver, summary.is_aside, summary, read=summary)
    version = of.version + 1
    entry = changing.event(tenant, summary.pk, at, verb="changed", changes=[(SPAM, *change)])
    entry.expires_at = ends
    every = [*actions, SummaryItem.version.set(version)]
    changing.revise(tenant, transaction, state, at=at, actions=every, places=places, said=entry)
    transaction.put(entry)
    told = ticket_events.revised(
        tenant, number=of.number, version=version, changes=[(SPAM, *change)], resolver=(of.resolver, of.resolver)
    )
    for item in items:
        kind: Any = type(item)
        ending = kind.expires_at.set(ends) if ends else kind.expires_at.remove()
        condition = kind.pk.exists()
        if isinstance(item, DetailItem):  # an entry of the history comes with a link, which changes nothing else
            condition &= (kind.links == [*item.links]) if item.links else kind.links.does_not_exist()
        transaction.update(kind(item.pk, item.sk), [ending], condition=condition)
    _end_files(tenant, transaction, _files(items), ends)
    publish(tenant, transaction, *told, subject=ticket_events.subject(of.number), at=at)
    tenant.repository.transact(transaction)


def _end_files(tenant: TenantContext, transaction: Transaction, files: Iterable[Any], ends: int | None) -> None:
    """Let files end with their ticket, and count them no more while it is spam."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for file in files:
        bucket = file_keys.bucket_of(file.id)
        counts[bucket] += 1
        sizes[bucket] += int(file.size)
        item = FileItem(tenant.repository.key(file_keys.files, bucket), file_keys.file(file.id))
        ending = FileItem.expires_at.set(ends) if ends else FileItem.expires_at.remove()
        transaction.update(item, [ending], condition=FileItem.entry.exists())
    sign = -1 if ends else 1
    for bucket, count in counts.items():
        usage = FileUsageItem(tenant.repository.key(file_keys.files, bucket), file_keys.USAGE)
        size = sign * sizes[bucket]
        moved: list[Action] = [FileUsageItem.file_count.add(sign * count), FileUsageItem.file_bytes.add(size)]
        transaction.update(usage, moved)


def _again(attempt: Callable[[], _T]) -> _T:
    return retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        given_up=lambda: Overtaken(gettext("This ticket is being changed at this moment. Try again.")),
    )


def _record(tenant: TenantContext, action: AuditAction, number: int, by: Actor) -> None:
    recording.record(AuditEntry(tenant.tenant_id, action, by, "ticket", str(number), f"ticket {number}"))


# --- the sender ---


def _sender(tenant: TenantContext, summary: SummaryItem) -> Requester | None:
    return requesters.find(tenant, summary.requester) if stored.is_requester(summary.requester) else None


def _block(tenant: TenantContext, number: int, by: Actor) -> tuple[tuple[str, ...], str]:
    """Block the addresses of a ticket's requester. Return those that were not blocked before, and why one cannot be."""
    summary, _ = _markable(tenant, number)  # before anybody is blocked for it
    person, blocked = _sender(tenant, summary), []
    for address in person.addresses if person else ():
        try:
            if mail_settings.block(tenant, address, by=by):
                blocked.append(address)
        except (Conflict, Invalid) as error:
            return tuple(blocked), error.message
    return tuple(blocked), ""


def _unblock(tenant: TenantContext, summary: SummaryItem, by: Actor) -> None:
    person = _sender(tenant, summary)

    def attempt() -> None:
        now = mail_settings.read(tenant)
        kept = [one for one in now.blocked if person is None or one not in map(str.lower, person.addresses)]
        mail_settings.change(tenant, values={"blocked": kept}, version=now.version, by=by)

    retrying(attempt, again=lambda error: isinstance(error, Conflict), attempts=_ATTEMPTS)


def others(tenant: TenantContext, summary: SummaryItem) -> list[SummaryItem]:
    """Return the open tickets of the same requester, the newest first."""
    _, rows = requester_tickets.with_person(tenant, summary.requester, limit=OFFERED)
    return [row for row in rows if row.status == Status.OPEN and int(row.number) != int(summary.number)]


# --- the list ---


@dataclass(frozen=True)
class SpamPage:
    """A page of spam, what was marked last first. `next` is a cursor to what was marked before."""

    rows: list[SummaryItem]
    next: str | None


def page(tenant: TenantContext, *, after: str = "") -> SpamPage:
    """Return a page of spam: one Query. Raises Invalid for a cursor that is none."""
    place = (paging.load(after, tenant_id=tenant.tenant_id, query=(_UNDO,)) if after else None) or ("", "")
    partition = tenant.repository.key(stored.aside, stored.SPAM_ASIDE)
    start = {
        "pk": {"S": place[0]},
        "sk": {"S": stored.SUMMARY},
        STATUS_UPDATED.hash: {"S": partition},
        STATUS_UPDATED.range: {"S": place[1]},
    }
    found = tenant.repository.query(
        _ROWS, stored.aside, stored.SPAM_ASIDE, descending=True, limit=PAGE, start=start if place[0] else None
    )
    # A row that another tenant has planted names another ticket.
    rows = [row for row in found.items if stored.ticket_number(tenant.tenant_id, row.pk) == int(row.number)]
    oldest = clock.stamp(clock.now() - KEPT)
    kept = [row for row in rows if row.updated_at > oldest]
    last = found.last_key if len(kept) == len(rows) else None
    ends = [last["pk"]["S"], last[STATUS_UPDATED.range]["S"]] if last else None
    return SpamPage(kept, paging.dump(ends, tenant_id=tenant.tenant_id, query=(_UNDO,)) if ends else None)


def _take_back(tenant: TenantContext, values: list[Any]) -> Undone:
    (number,) = values
    try:
        summary = unmark(tenant, int(number), by=Actor(tenant.user_id, "", ""))
    except (Conflict, NotFound) as error:
        return Undone("", (error.message,))
    freed = gettext("Ticket #%(number)s is no spam, and its sender is not blocked any more.")
    told = freed if summary.spam_blocks else gettext("Ticket #%(number)s is no spam.")
    return Undone(told % {"number": number})


undoing.declare_undo(_UNDO, _take_back)
