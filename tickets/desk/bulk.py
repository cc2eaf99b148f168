"""Give many tickets one status, all or none, in one transaction and without reading first.

Nothing is read before: each selected row states the version, status and assignee that the person saw, and the write
holds only if they are still so. A statement that is made up therefore changes nothing. For other fields, and for
taking it back, see many.py, which also says how many tickets a transaction takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from django.utils.translation import gettext as _

from delivery.outbox.publisher import Event, publish
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.store import Transaction, chunked
from portal.dynamo.transaction import Companion
from portal.errors import TRANSACTION_CONFLICT, Conflict, Invalid, TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.desk import changing, many
from tickets.desk.changing import EntryOfChange, TicketState
from tickets.desk.many import MOST, SUBJECT, limit
from tickets.sla import policy_versions
from tickets.ticket import due_marks, status_dates
from tickets.ticket.fields import MOVES, Status
from tickets.ticket.set_aside import SetAside
from tickets.ticket.stored import SummaryItem

__all__ = ["MOST", "limit"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class BulkChange:
    """Report what a bulk change did. `receipt` takes it back, "" where nothing can."""

    count: int
    receipt: str


@dataclass(frozen=True)
class Refusal:
    """Why one of the tickets stopped them all. `title` is "" for a ticket that does not exist."""

    number: int
    title: str
    reason: str


class BulkRefused(Conflict):
    """Nothing was changed. `refusals` names each ticket that stood in the way, at least one; `kept` are the others.

    It passes where others changed tickets at the same time.
    """

    code = "bulk_refused"

    def __init__(self, refusals: list[Refusal], kept: list[TicketState], *, passes: bool = False) -> None:
        super().__init__(_("Nothing was changed."))
        self.refusals, self.kept, self.passes = refusals, kept, passes


def states(tenant: TenantContext, versions: Mapping[int, int | None]) -> list[TicketState]:
    """Return the states of up to `limit` tickets as they are now: one consistent BatchGetItem, for no numbers none.
    Beside it the desk's setup is read, where nobody has.

    A version that somebody saw stands in the place of the stored one, so that a change holds only for it. Raises
    BulkRefused where some of them do not exist.
    """
    reads: list[Callable[[], Any]] = [
        lambda: many.stored_summaries(tenant, list(versions)),
        lambda: policy_versions.latest(tenant),  # of which the change will ask
    ]
    found: dict[int, SummaryItem] = fan_out(reads)[0]
    missing = [Refusal(number, "", _("does not exist")) for number in versions if number not in found]
    seen = [replace(TicketState.of(s), version=versions[n] or int(s.version)) for n, s in found.items()]
    if missing:
        raise BulkRefused(missing, seen)
    return seen


def change_status(
    tenant: TenantContext,
    tickets: Sequence[TicketState],
    *,
    to: Status,
    companion: Companion[int] | None = None,
) -> BulkChange:
    """Move up to `limit` tickets to one status. A `companion` is told how many.

    Raises Invalid, BulkRefused, and TransactionRefused where something else than a ticket stood in the way.
    """
    tickets = list({t.number: t for t in tickets}.values())
    if not tickets:
        raise Invalid(_("Select tickets first."))
    if len(tickets) > (most := limit(tenant, beside=companion is not None)):
        sentence = _("At most %(most)s tickets can be changed together; you selected %(count)s.")
        raise Invalid(sentence % {"most": most, "count": len(tickets)})
    stuck = {t.number: _why_not(t.status, to) for t in tickets if to not in MOVES[t.status]}
    if stuck:
        titles = _titles(tenant, list(stuck))
        refusals = [Refusal(number, titles.get(number, ""), reason) for number, reason in stuck.items()]
        raise BulkRefused(refusals, [t for t in tickets if t.number not in stuck])
    tickets = _with_marks(tenant, tickets, to)
    transaction, begun, told = Transaction(), clock.now(), list[Event]()
    made, entry_id = list[EntryOfChange](), changing.new_entry_id()
    for position, state in enumerate(tickets):
        # A microsecond apart, so that lists have one order for them.
        at = clock.stamp(begun, offset=position)
        changes = [("status", state.status.value, to.value)]
        if status_dates.reopens(state.status, to):
            changes += due_marks.waking(state.due)
        actions = status_dates.dated(state.status, to, at, zone=tenant.zone)
        made.append(EntryOfChange(state.number, state.version + 1, at, entry_id))
        told += changing.revise(
            tenant, transaction, state, at=at, status=to, changes=changes, actions=actions, entry_id=entry_id
        )
    publish(tenant, transaction, *told, subject=SUBJECT, at=clock.stamp(begun))
    if companion is not None:
        companion.join(transaction, len(tickets))
    try:
        tenant.repository.transact(transaction)
    except TransactionRefused as refused:
        if companion is not None:
            companion.blame(refused)
        if not any(refused.reason(str(state.number)) for state in tickets):
            raise
        raise _explain(tenant, tickets, refused) from refused
    return BulkChange(len(tickets), many.receipt(tenant, made))


def _with_marks(tenant: TenantContext, tickets: list[TicketState], to: Status) -> list[TicketState]:
    """Read the tickets whose clocks or snooze the change concerns, and which a form has named: one BatchGetItem."""
    has_clocks = bool(policy_versions.latest(tenant))
    unread = [t.number for t in tickets if t.summary is None and (has_clocks or status_dates.reopens(t.status, to))]
    read = many.stored_summaries(tenant, unread)
    return [replace(t, summary=one, due=one.due or "") if (one := read.get(t.number)) else t for t in tickets]


def write_unchanged(
    tenant: TenantContext,
    rows: list[_T],
    add: Callable[[Transaction, _T], list[Event]],
    *,
    number: Callable[[_T], int],
) -> int:
    """Revise all of these tickets that are as they were read, leave out the others, and return how many were written.

    `add` puts the revision of one ticket into the transaction and returns what there is to tell; `number` is that
    ticket's. More than `limit` take several transactions.
    """
    return sum(_write_unchanged(tenant, part, add, number) for part in chunked(rows, limit(tenant)))


def _write_unchanged(
    tenant: TenantContext,
    rows: list[_T],
    add: Callable[[Transaction, _T], list[Event]],
    number: Callable[[_T], int],
) -> int:
    while rows:
        transaction = Transaction()
        told = [event for row in rows for event in add(transaction, row)]
        publish(tenant, transaction, *told, subject=SUBJECT)
        try:
            tenant.repository.transact(transaction)
        except TransactionRefused as refused:
            kept = [row for row in rows if refused.reason(str(number(row))) is None]
            if len(kept) == len(rows):
                return 0
            rows = kept
        else:
            return len(rows)
    return 0


def _explain(tenant: TenantContext, tickets: list[TicketState], refused: TransactionRefused) -> BulkRefused:
    refusals, kept = [], []
    for state in tickets:
        reason = refused.reason(str(state.number))
        if reason is None:
            kept.append(state)
            continue
        stored = reason.stored(SummaryItem)
        refusals.append((state.number, stored.title if stored else "", _changed(state, stored, reason.code)))
    titles = _titles(tenant, [number for number, title, _ in refusals if not title])
    return BulkRefused([Refusal(n, title or titles.get(n, ""), why) for n, title, why in refusals], kept, passes=True)


def _titles(tenant: TenantContext, numbers: list[int]) -> dict[int, str]:
    """Return the titles of those of these tickets that exist: one BatchGetItem, none for no numbers."""
    return {number: summary.title for number, summary in many.stored_summaries(tenant, numbers).items()}


def _changed(state: TicketState, stored: SummaryItem | None, code: str) -> str:
    if code == TRANSACTION_CONFLICT:
        return _("is being changed by somebody else at this moment")
    if stored is None:
        return _("no longer exists")
    if stored.is_aside:
        return SetAside(stored).why
    if stored.status != state.status.value:
        told = {"now": Status(stored.status).word, "before": state.status.word}
        return _("is %(now)s now, not %(before)s") % told
    if stored.resolver != state.resolver:
        assigned = _("was assigned to %(name)s meanwhile") % {"name": stored.resolver_name}
        return assigned if stored.resolver else _("was unassigned meanwhile")
    return _("was changed meanwhile")


def _why_not(status: Status, to: Status) -> str:
    if status == to:
        return _("is already %(status)s") % {"status": to.word}
    return _("is %(now)s and cannot become %(after)s") % {"now": status.word, "after": to.word}
