"""Take words out of the events of a ticket in the outbox: of those that wait, and of those that may be sent again."""

from __future__ import annotations

from bisect import bisect_left
from datetime import timedelta
from functools import partial
from typing import Final

from delivery.outbox.stored import OutboxItem, TenantRow
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.store import chunked
from portal.errors import ConditionFailed
from portal.schema import keys
from tenants.tenancy.context import TenantContext
from tenants.tenancy.redaction import RedactedTicket

_BEFORE: Final = timedelta(seconds=2)  # a row's time stamp may be earlier than its entry's
_BEHIND: Final = timedelta(minutes=2)  # and later, where its transaction was attempted again
_AT_ONCE: Final = 16


def redact(tenant: TenantContext, ticket: RedactedTicket) -> int:
    """Take the words out of each row about the ticket, and return out of how many.

    Costs a Query of the keys of the desk's rows since the ticket was opened, a GetItem for each row that was written
    when something was written in the ticket, and an UpdateItem for each that has the words.
    """
    begin = clock.stamp(clock.parse(ticket.moments[0]) - _BEFORE)
    later = tenant.repository.query_all(TenantRow, keys.tenant, between=(begin, "9"))
    named = [row for row in later if _is_near(row.timestamp, ticket.moments)]
    found = 0
    for some in chunked(named, _AT_ONCE):
        found += sum(fan_out([partial(_redact, tenant, ticket, row) for row in some]))
    return found


def _is_near(stamp: str, moments: tuple[str, ...]) -> bool:
    """Tell whether one of the moments is so close before this one that its row may have this stamp."""
    at = clock.parse(stamp)
    first = bisect_left(moments, clock.stamp(at - _BEHIND))
    return first < len(moments) and moments[first] <= clock.stamp(at + _BEFORE)


def _redact(tenant: TenantContext, ticket: RedactedTicket, row: TenantRow) -> bool:
    parts = keys.split(row.event_id)[1:]
    item = tenant.repository.get(OutboxItem, keys.composite, *parts, sort=row.timestamp, consistent=True)
    if item is None or item.subject != ticket.subject:
        return False
    events = [ticket.words.without_json(text) for text in item.events]
    if events == list(item.events):
        return False
    try:
        tenant.repository.update(
            OutboxItem(item.event_id, item.timestamp),
            [OutboxItem.events.set(events)],
            condition=OutboxItem.subject == item.subject,
        )
    except ConditionFailed:  # TTL has removed it meanwhile
        return False
    return True
