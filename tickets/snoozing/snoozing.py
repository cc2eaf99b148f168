"""Snooze tickets, wake them, and take both back.

The packed mark `due` of a ticket says until when it is snoozed; an answer of its requester removes it (commenting.py),
and a row of the due index wakes it when its moment has come. Each is a change of the ticket, with its entry in the
history. A row that belongs to a snooze which is no more finds another mark, and does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from django.utils.translation import gettext as _

from delivery.outbox.publisher import Event, publish
from delivery.timers import due
from portal import clock
from portal.dynamo.retry import retrying
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid, NotFound, Overtaken, TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.desk import changing, undoing
from tickets.desk.changing import TicketState
from tickets.desk.undoing import Undone
from tickets.ticket import due_marks, fields, set_aside, ticket_events
from tickets.ticket.due_marks import DueMarks
from tickets.ticket.fields import SNOOZED
from tickets.ticket.stored import SummaryItem

KIND: Final = "snooze"  # of the due index
LONGEST: Final = timedelta(days=366)
_UNDO: Final = "snooze"
_ATTEMPTS: Final = 6
_AWAKE: Final = -1  # in a receipt

_T = TypeVar("_T")


def snooze(tenant: TenantContext, number: int, *, until: datetime | None) -> str:
    """Let a ticket rest until a moment, or for None until an answer. Return a receipt, "" where it was so already.

    An answer ends a snooze with a moment too. Raises NotFound, SetAside, Overtaken, Conflict for a ticket that is
    resolved, and Invalid for a moment that has passed or is too far away.
    """
    now = clock.now()
    if until is not None and not now < until <= now + LONGEST:
        raise Invalid(_("Choose a time between now and one year from now."), field="until")
    wanted = int(until.timestamp()) if until else 0

    def attempt() -> str:
        summary = changing.read(tenant, number)
        set_aside.refuse(summary)
        if not fields.is_unresolved(summary.status):
            sentence = _("Ticket %(number)s is %(status)s: there is nothing to snooze. Open it again first.")
            raise Conflict(sentence % {"number": number, "status": fields.Status(summary.status).word})
        transaction = Transaction()
        if wanted:
            at = datetime.fromtimestamp(wanted, UTC)
            due.put(transaction, tenant, at, KIND, _entity(number), f"{wanted}.{tenant.user_id or 'system'}")
        return _write(tenant, summary, transaction, wanted)

    return _again(attempt)


def wake(tenant: TenantContext, number: int) -> str:
    """End a snooze before its time. Return a receipt, "" for a ticket that is awake. Raises NotFound, SetAside,
    Overtaken."""

    def attempt() -> str:
        summary = changing.read(tenant, number)
        set_aside.refuse(summary)
        return _write(tenant, summary, Transaction(), None)

    return _again(attempt)


def come_due(tenant: TenantContext, entity: str, version: str, due_at: datetime) -> None:
    """Wake a ticket whose moment has come, and tell whoever snoozed it: the handler of the due index.

    Does nothing for a snooze that is no more, and for a ticket that is resolved or in no list.
    """
    number, until = int(entity.partition("/")[2]), int(due_at.timestamp())
    _, _, user_id = version.partition(".")

    def attempt() -> None:
        try:
            summary = changing.read(tenant, number)
        except NotFound:
            return
        is_stale = DueMarks.read(summary.due).snoozed != until
        if is_stale or summary.is_aside or not fields.is_unresolved(summary.status):
            return
        told = ticket_events.came_due(
            tenant, number, version=int(summary.version) + 1, to="" if user_id == "system" else user_id
        )
        _write(tenant, summary, Transaction(), None, told)

    _again(attempt)


def _entity(number: int) -> str:
    return f"ticket/{number}"


def _write(
    tenant: TenantContext, summary: SummaryItem, transaction: Transaction, until: int | None, *more: Event
) -> str:
    """Write the change of a ticket's snooze. Return a receipt, "" where nothing changes."""
    before = DueMarks.read(summary.due).snoozed
    if before == until:
        return ""
    state, at = TicketState.of(summary), max(clock.stamp(), summary.updated_at)
    told = changing.revise(
        tenant,
        transaction,
        state,
        at=at,
        changes=[(SNOOZED, due_marks.snooze_text(before), due_marks.snooze_text(until))],
    )
    publish(tenant, transaction, *told, *more, subject=ticket_events.subject(state.number), at=at)
    tenant.repository.transact(transaction)
    return undoing.receipt(tenant, _UNDO, [state.number, *(_AWAKE if one is None else one for one in (before, until))])


def _again(attempt: Callable[[], _T]) -> _T:
    return retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        given_up=lambda: Overtaken(_("This ticket is being changed at this moment. Try again.")),
    )


def _take_back(tenant: TenantContext, values: list[Any]) -> Undone:
    """Let a ticket rest, or not, as before; one that was snoozed or woken again since stays as it is.

    The row of the former snooze is still in the index, so no new one is written."""
    number, before, after = map(int, values)
    former, expected = (None if one == _AWAKE else one for one in (before, after))
    if former and former <= int(clock.now().timestamp()):
        former = None

    def attempt() -> Undone:
        summary = changing.read(tenant, number)
        if summary.is_aside or DueMarks.read(summary.due).snoozed != expected:
            return Undone("", (_("Ticket #%(number)s was changed since, and stays as it is.") % {"number": number},))
        _write(tenant, summary, Transaction(), former)
        awake, snoozed = _("Ticket #%(number)s is awake again."), _("Ticket #%(number)s is snoozed as before.")
        return Undone((awake if former is None else snoozed) % {"number": number})

    return _again(attempt)


undoing.declare_undo(_UNDO, _take_back)
