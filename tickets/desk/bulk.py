"""One status for many tickets, all or none, in one transaction and without reading first.

How many: DynamoDB takes 100 items in a transaction. Each ticket needs two of them, its summary and its entry in
the timeline, because every change has its entry in the same write. So 50, which is also the size of a list page.

Nothing is read before: each selected row states the version, status and assignee that the person saw, and the
write holds only if they are still so. A forged statement therefore changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from portal import clock
from portal.dynamo.repository import TRANSACTION_LIMIT, Transaction
from portal.errors import Conflict, Invalid, TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.desk import lifecycle
from tickets.desk.rows import TicketRow
from tickets.ticket import keys
from tickets.ticket.fields import MOVES, Status
from tickets.ticket.items import SummaryItem

_ITEMS_PER_TICKET: Final = 2
LIMIT: Final = TRANSACTION_LIMIT // _ITEMS_PER_TICKET

_SEEN = re.compile(r"([1-9]\d{0,15})\.([1-9]\d{0,9})\.([a-z]{1,20})\.([0-9a-f]{32})?\Z")


@dataclass(frozen=True)
class Seen:
    """A ticket as the person saw it in a list."""

    number: int
    version: int
    status: Status
    resolver: str

    @classmethod
    def of(cls, summary: SummaryItem | TicketRow) -> Seen:
        return cls(int(summary.number), int(summary.version), Status(summary.status), summary.resolver)

    @classmethod
    def parse(cls, text: str) -> Seen:
        """From the value of a row's select box. Raises Invalid."""
        match = _SEEN.match(text)
        if not match or match[3] not in list(Status):
            raise Invalid("The selection is damaged. Load the list again.")
        return cls(int(match[1]), int(match[2]), Status(match[3]), match[4] or "")

    def __str__(self) -> str:
        return f"{self.number}.{self.version}.{self.status.value}.{self.resolver}"


@dataclass(frozen=True)
class Refusal:
    """Why one of the tickets stopped them all."""

    number: int
    title: str
    reason: str


class BulkRefused(Conflict):
    """Nothing was changed. `refusals` names each ticket that stood in the way; `kept` are the others."""

    code = "bulk_refused"

    def __init__(self, refusals: list[Refusal], kept: list[Seen]) -> None:
        super().__init__("Nothing was changed.")
        self.refusals, self.kept = refusals, kept


def change_status(tenant: TenantContext, tickets: Sequence[Seen], *, to: Status) -> int:
    """Move up to LIMIT tickets to one status and return how many. Raises Invalid and BulkRefused."""
    tickets = list({t.number: t for t in tickets}.values())
    if not tickets:
        raise Invalid("Select tickets first.")
    if len(tickets) > LIMIT:
        raise Invalid(f"At most {LIMIT} tickets change together; you selected {len(tickets)}.")
    stuck = {t.number: _why_not(t.status, to) for t in tickets if to not in MOVES[t.status]}
    if stuck:
        refusals = [Refusal(number, "", reason) for number, reason in stuck.items()]
        raise BulkRefused(refusals, [t for t in tickets if t.number not in stuck])
    transaction = Transaction()
    for position, seen in enumerate(tickets):
        # A microsecond apart, so that lists have one order for them.
        _add(tenant, transaction, seen, to, clock.stamp(offset=position))
    try:
        tenant.repository.transact(transaction)
    except TransactionRefused as refused:
        raise _explain(tickets, refused) from refused
    return len(tickets)


def _add(tenant: TenantContext, transaction: Transaction, seen: Seen, to: Status, at: str) -> None:
    pk = tenant.repository.key(keys.ticket, seen.number)
    values = lifecycle.derived(tenant, seen.number, status=to.value, resolver=seen.resolver, updated_at=at)
    actions = [getattr(SummaryItem, name).set(value) for name, value in values.items()]
    actions.append(SummaryItem.version.set(seen.version + 1))
    actions += lifecycle.dated(seen.status, to, at)
    transaction.update(
        SummaryItem(pk, keys.SUMMARY),
        actions,
        name=str(seen.number),
        condition=(SummaryItem.version == seen.version)
        & (SummaryItem.status == seen.status.value)
        & (SummaryItem.resolver == seen.resolver),
    )
    changes = [("status", seen.status.value, to.value)]
    transaction.put(lifecycle.event(tenant, pk, at, verb="changed", changes=changes))


def _explain(tickets: list[Seen], refused: TransactionRefused) -> BulkRefused:
    refusals, kept = [], []
    for seen in tickets:
        reason = refused.reason(str(seen.number))
        if reason is None:
            kept.append(seen)
            continue
        stored = SummaryItem.from_raw_data(reason.item) if reason.item else None
        refusals.append(Refusal(seen.number, stored.title if stored else "", _changed(seen, stored, reason.code)))
    return BulkRefused(refusals, kept)


def _changed(seen: Seen, stored: SummaryItem | None, code: str) -> str:
    if code == "TransactionConflict":
        return "is being changed by somebody else at this moment"
    if stored is None:
        return "no longer exists"
    if stored.status != seen.status.value:
        return f"is {stored.status} now, not {seen.status.value}"
    if stored.resolver != seen.resolver:
        return f"was assigned to {stored.resolver_name or 'nobody'} meanwhile"
    return "was changed meanwhile"


def _why_not(status: Status, to: Status) -> str:
    if status == to:
        return f"is {to.value} already"
    return f"is {status.value} and cannot become {to.value}"
