"""Merge a ticket into another one, exactly, and let it be a ticket of its own again.

Nothing is copied or moved. The merged ticket keeps its items as they are, names the other one, and leaves all lists and
numbers; the other one names it. Both changes and both entries of the histories are one transaction, which holds for
the tickets as they were read and for no others. So a merge costs the same however much was said, a kill leaves all of
it or nothing, and taking it back restores both. All that came to the other ticket meanwhile stays there.

The answers to one person must not become another person's to read. So a ticket of somebody outside the desk is merged
only into a ticket of the same person.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from delivery.outbox.publisher import publish
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.retry import retrying
from portal.dynamo.store import Transaction
from portal.errors import Conflict, NotFound, Overtaken, TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.desk import changing
from tickets.desk.changing import TicketState
from tickets.requesters import requesters
from tickets.ticket import set_aside, stored
from tickets.ticket.fields import MERGED, MERGED_INTO
from tickets.ticket.status_dates import set_to
from tickets.ticket.stored import SummaryItem

MOST: Final = 5  # tickets that are merged into one, those that were merged into them included
_SUBJECT: Final = "tickets"  # of what is told of both together
_ATTEMPTS: Final = 6
_CHANGED: Final = gettext_noop("These tickets are being changed at this moment. Try again.")


class NotMergeable(Conflict):
    """The two tickets cannot be merged as they are."""

    code = "not_mergeable"

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, field="into")


@dataclass(frozen=True)
class Pair:
    """Two tickets as they were read: the one that is merged, and the one that stays."""

    source: SummaryItem
    target: SummaryItem

    @property
    def is_done(self) -> bool:
        """Tell whether the one is merged into the other already."""
        return int(self.source.merged_into or 0) == int(self.target.number)


def look(tenant: TenantContext, number: int, *, into: int) -> Pair:
    """Return both tickets if they can be merged: one round trip, for two requesters outside the desk two.

    Raises NotFound for a first ticket that does not exist, SetAside for one that is merged elsewhere or is spam, and
    NotMergeable.
    """
    if number == into:
        raise NotMergeable(_("A ticket cannot be merged into itself. Choose another one."))
    source, target = fan_out([partial(changing.read, tenant, number), partial(_target, tenant, into)])
    pair = Pair(source, target)
    if pair.is_done:
        return pair
    set_aside.refuse(source)
    if target.merged_into:
        onward = int(target.merged_into)
        raise NotMergeable(
            _("Ticket %(into)s was merged into ticket %(onward)s itself. Choose ticket %(onward)s.")
            % {"into": into, "onward": onward}
        )
    if target.spam_at:
        raise NotMergeable(_("Ticket %(number)s is marked as spam.") % {"number": into})
    if len(target.merged or ()) + 1 + len(source.merged or ()) > MOST:
        raise NotMergeable(_("Up to %(most)s tickets can be merged into one; these would be more.") % {"most": MOST})
    _refuse_strangers(tenant, pair)
    return pair


def _target(tenant: TenantContext, number: int) -> SummaryItem:
    try:
        return changing.read(tenant, number)
    except NotFound as error:
        raise NotMergeable(error.message) from error


def _refuse_strangers(tenant: TenantContext, pair: Pair) -> None:
    """Raise NotMergeable where somebody outside the desk would read, or lose, what is between the desk and another."""
    asks, other = pair.source.requester, pair.target.requester
    if asks == other or not stored.is_requester(asks):
        return
    person = requesters.find(tenant, other) if stored.is_requester(other) else None
    if person is None or asks not in person.ids:
        raise NotMergeable(
            _(
                "Ticket %(source)s was opened for %(one)s, ticket %(target)s for %(other)s: one would read what you "
                "write to the other. Change the requester of one of them first, or merge the two people."
            )
            % {
                "source": int(pair.source.number),
                "one": pair.source.requester_name,
                "target": int(pair.target.number),
                "other": pair.target.requester_name,
            }
        )


def merge(tenant: TenantContext, number: int, *, into: int) -> Pair:
    """Merge a ticket into another one, and return both as they were read. The same again changes nothing.

    Raises what `look` raises, and Overtaken where others change the tickets each time.
    """

    def attempt() -> Pair:
        pair = look(tenant, number, into=into)
        if not pair.is_done:
            _write(tenant, pair)
        return pair

    return _again(attempt)


def _write(tenant: TenantContext, pair: Pair) -> None:
    source, target = pair.source, pair.target
    number, into, at = int(source.number), int(target.number), _moment(pair)
    merged = [*(target.merged or ()), number, *(source.merged or ())]
    transaction = Transaction()
    told = changing.revise(
        tenant,
        transaction,
        TicketState.of(source),
        at=at,
        changes=[(MERGED_INTO, "", str(into))],
        actions=[set_to(MERGED_INTO, into)],
        places=set_aside.out_of_lists(tenant, source, stored.MERGED_ASIDE),
    )
    told += changing.revise(
        tenant,
        transaction,
        TicketState.of(target),
        at=at,
        changes=[(MERGED, "", str(number))],
        actions=[set_to(MERGED, merged)],
    )
    publish(tenant, transaction, *told, subject=_SUBJECT, at=at)
    tenant.repository.transact(transaction)


def separate(tenant: TenantContext, number: int) -> Pair:
    """Let a merged ticket be one of its own again, as it was, and return both as they were read.

    Two round trips to read. Raises NotFound, Conflict where it is not merged or where the other ticket is set aside
    itself, and Overtaken.
    """

    def attempt() -> Pair:
        source = changing.read(tenant, number)
        if not source.merged_into:
            raise Conflict(_("Ticket %(number)s is not merged into another one.") % {"number": number})
        target = changing.read(tenant, int(source.merged_into))
        if target.is_aside:
            was_merged = _("Ticket %(number)s was merged too. Take that back first.")
            why = was_merged if target.merged_into else _("Ticket %(number)s is marked as spam.")
            raise Conflict(why % {"number": int(target.number)})
        pair = Pair(source, target)
        _write_back(tenant, pair)
        return pair

    return _again(attempt)


def _write_back(tenant: TenantContext, pair: Pair) -> None:
    source, target = pair.source, pair.target
    number, into, at = int(source.number), int(target.number), _moment(pair)
    gone = {number, *map(int, source.merged or ())}
    left = [one for one in target.merged or () if int(one) not in gone]
    transaction = Transaction()
    told = changing.revise(
        tenant,
        transaction,
        replace(TicketState.of(source), is_aside=True),
        at=at,
        changes=[(MERGED_INTO, str(into), "")],
        actions=[set_to(MERGED_INTO, None)],
        places=set_aside.into_lists(tenant, source),
    )
    told += changing.revise(
        tenant,
        transaction,
        TicketState.of(target),
        at=at,
        changes=[(MERGED, str(number), "")],
        actions=[set_to(MERGED, left or None)],
    )
    publish(tenant, transaction, *told, subject=_SUBJECT, at=at)
    tenant.repository.transact(transaction)


def _moment(pair: Pair) -> str:
    return max(clock.stamp(), pair.source.updated_at, pair.target.updated_at)


def _again(attempt: Callable[[], Pair]) -> Pair:
    return retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        given_up=lambda: Overtaken(_(_CHANGED)),
    )
