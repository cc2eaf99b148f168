"""Send again what was delivered or given up, and try an endpoint out. Admins of a tenant do this.

A repeated event has the same id, so that a receiver can recognise it. It goes through the outbox like anything else, as
long as the outbox has it: 30 days.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from delivery.outbox import outbox_rows, publisher
from delivery.outbox.event_types import Event
from delivery.outbox.outbox_rows import Work
from delivery.outbox.stored import OutboxItem, outbox_row
from delivery.webhooks import delivery_log, endpoints, webhook_events
from delivery.webhooks.endpoint_changes import ChangedEndpoint
from delivery.webhooks.stored import DeliveryItem, EndpointItem, log_key_parts
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.library_errors import is_missing
from portal.dynamo.placement import POOL
from portal.dynamo.retry import retrying
from portal.dynamo.store import Transaction
from portal.dynamo.transaction import Companion, beside
from portal.errors import Conflict, TransactionRefused, Unavailable
from tenants.tenancy.context import TenantContext

AT_ONCE: Final = 100  # deliveries that one form sends again
MOST_ATTEMPTS: Final = 100  # of one delivery, over all times that it was sent again
_ATTEMPTS: Final = 4  # of a test that meets another transaction
_ROW: Final = "row"  # names a member of a transaction
_OPEN: Final = "It is still being delivered."


@dataclass(frozen=True)
class Redelivered:
    """Say how many are on their way again, and from when on there are more, None where there are none."""

    count: int
    more_from: str | None


def send_test(tenant: TenantContext, *, endpoint_id: str, companion: Companion[ChangedEndpoint] | None = None) -> None:
    """Send an endpoint a test event, whatever it subscribed to. Raises NotFound and, where it is paused, Conflict."""
    endpoint = beside(companion, lambda: _active(tenant, endpoint_id))
    data = {"endpoint": endpoint.endpoint_id, "sent_by": tenant.user_name}
    transaction = Transaction()
    event = Event(webhook_events.TEST, data, sequence=1)
    publisher.publish(tenant, transaction, event, subject="a test", open_to=endpoint.endpoint_id)
    if companion is not None:
        companion.join(transaction, ChangedEndpoint(endpoint))
    try:
        retrying(
            lambda: tenant.repository.transact(transaction),
            again=lambda error: isinstance(error, TransactionRefused) and error.is_passing(),
            attempts=_ATTEMPTS,
        )
    except TransactionRefused as refused:
        if companion is not None:
            companion.blame(refused)
        raise


def redeliver(tenant: TenantContext, *, endpoint_id: str, name: str) -> None:
    """Send one delivery again, at once. Raises NotFound, and Conflict where that cannot be."""
    _active(tenant, endpoint_id)
    delivery, row = delivery_log.find(tenant.repository, endpoint_id, name)
    if row is None:
        raise Conflict("This event is no longer kept, so it cannot be sent again.")
    if len(delivery.attempts) >= MOST_ATTEMPTS:
        raise Conflict(f"This delivery has been tried {MOST_ATTEMPTS} times. It is not sent again.")
    if not _sent_again(tenant, endpoint_id, delivery):
        raise Conflict(_OPEN)


def redeliver_since(tenant: TenantContext, *, endpoint_id: str, since: datetime, also_answered: bool) -> Redelivered:
    """Send again what was not delivered since a moment, or all of it: the oldest first, up to AT_ONCE of them.

    Deliveries that wait for their next attempt are tried at once.

    Raises NotFound and, where the endpoint is paused, Conflict.
    """
    _active(tenant, endpoint_id)
    rows, has_more = delivery_log.since(tenant.repository, endpoint_id, at=clock.stamp(since), limit=AT_ONCE)
    chosen = [row for row in rows if also_answered or row.state != delivery_log.ANSWERED]
    again = [partial(_sent_again, tenant, endpoint_id, row) for row in chosen if len(row.attempts) < MOST_ATTEMPTS]
    sent = fan_out(again)
    # Not after the last: those of one bulk change have one moment, and what is open already is not opened twice.
    more_from = log_key_parts(rows[-1].timestamp_event_id)[0] if has_more else None
    return Redelivered(sum(sent), more_from)


def _active(tenant: TenantContext, endpoint_id: str) -> EndpointItem:
    endpoint = endpoints.find(tenant.repository, endpoint_id)
    if endpoint.state == endpoints.PAUSED:
        raise Conflict("This endpoint is paused. Resume it first.")
    return endpoint


def _sent_again(tenant: TenantContext, endpoint_id: str, delivery: DeliveryItem) -> bool:
    """Let the outbox send this delivery at once, and tell whether it does: not where it is on its way already."""
    at, event_id = log_key_parts(delivery.timestamp_event_id)
    _, row_id, index = event_id.split("_")
    told_by = delivery_log.told_by_repository(tenant.repository, delivery)
    if delivery.state != delivery_log.FAILED:
        return _reopened(Work(told_by, OutboxItem(told_by.key(outbox_row, row_id), at), int(index), endpoint_id))
    # Of two who ask for it, one gets the log's row; and what was sent for its next attempt has no moment to come.
    if not delivery_log.now_due(tenant.repository, delivery):
        return False
    stored = delivery_log.stored_row(told_by, row_id, at)
    return stored is not None and outbox_rows.hasten(Work(told_by, stored, int(index), endpoint_id))


def _reopened(work: Work) -> bool:
    """Let the outbox wait for this delivery again, and tell whether it did: not where it waits already."""
    transaction = Transaction()
    outbox_rows.reopen(transaction, work.row, work.member, name=_ROW)
    try:
        work.repository.transact(transaction)
    except TransactionRefused as refused:
        reason = refused.reason(_ROW)
        if reason is not None and reason.code == "ConditionalCheckFailed":
            return False
        raise
    except Unavailable as error:
        if work.repository.placement == POOL or not is_missing(error):
            raise
        return False  # that outbox is no more
    return True
