"""Keep what came of each delivery for 30 days, send it again where an admin asks for it, and try an endpoint out.

A row stands for one event and one endpoint; each attempt updates it. Rows of an endpoint that was removed cannot be
reached any more and go by TTL. A repeated event has the same id, so that a receiver can recognise it, and goes through
the outbox like anything else, as long as the outbox has it: 30 days.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext, gettext_noop

from delivery.outbox import outbox_rows, publisher
from delivery.outbox.outbox_rows import Work
from delivery.outbox.publisher import Event
from delivery.outbox.stored import OutboxItem, outbox_row
from delivery.webhooks import endpoints
from delivery.webhooks.endpoints import ChangedEndpoint
from delivery.webhooks.stored import DELIVERIES, DeliveryItem, EndpointItem, log_key, log_key_parts, log_partition
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.library_errors import is_missing
from portal.dynamo.paging import Pager
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.retry import retrying
from portal.dynamo.store import Action, Store, Transaction
from portal.dynamo.transaction import Companion, with_companion
from portal.errors import ConditionFailed, Conflict, NotFound, TransactionRefused, Unavailable
from tenants.tenancy.context import TenantContext
from tenants.tenancy.redaction import RedactedTicket

ANSWERED, FAILED, DEAD, SKIPPED = "answered", "failed", "dead", "skipped"
WAS_PAUSED: Final = gettext_noop("The endpoint was paused.")  # the note of what was skipped
KEPT: Final = timedelta(days=30)
EXCERPT_LIMIT: Final = 2_000  # characters of an answer
PAGE_SIZE: Final = 25
_EVENT: Final = "evt_"
AT_ONCE: Final = 100  # deliveries that one form sends again
MOST_ATTEMPTS: Final = 100  # of one delivery, over all times that it was sent again
_ATTEMPTS: Final = 4  # of a test that meets another transaction
_ROW: Final = "row"  # names a member of a transaction


@dataclass(frozen=True)
class Attempt:
    """One try. `status` is 0 where there was no answer, and `note` then says why. `ms` is how long it took."""

    at: str
    status: int = 0
    ms: int = 0
    note: str = ""
    excerpt: str = ""


@dataclass(frozen=True)
class LogPage:
    """Deliveries of one endpoint, the latest event first. `next` and `previous` are cursors, None at the ends."""

    rows: list[DeliveryItem]
    next: str | None
    previous: str | None


def note(work: Work, endpoint: EndpointItem, attempt: Attempt, *, state: str, next_at: str | None = None) -> None:
    """Add an attempt to the row of its delivery, which is made where it is missing: one UpdateItem."""
    event = json.loads(work.row.events[work.index])
    tried = {"at": attempt.at, "status": attempt.status, "ms": attempt.ms, "note": attempt.note}
    actions: list[Action] = [
        DeliveryItem.event_type.set(event["type"]),
        DeliveryItem.subject.set(work.row.subject),
        DeliveryItem.url.set(endpoint.url),
        DeliveryItem.state.set(state),
        DeliveryItem.status.set(attempt.status),
        DeliveryItem.ms.set(attempt.ms),
        DeliveryItem.note.set(attempt.note),
        DeliveryItem.excerpt.set(attempt.excerpt),
        DeliveryItem.attempts.set((DeliveryItem.attempts | []).append([tried])),
        DeliveryItem.expires_at.set(int(time.time() + KEPT.total_seconds())),
        DeliveryItem.next_at.set(next_at) if next_at else DeliveryItem.next_at.remove(),
    ]
    if work.repository.placement != POOL:
        actions.append(DeliveryItem.placement.set(str(work.repository.placement)))
    row = DeliveryItem(
        work.repository.key(log_partition, work.destination),
        log_key(work.row.timestamp, publisher.delivery_id(work.row, work.index)),
    )
    work.repository.update(row, actions)


def now_due(repository: Store, row: DeliveryItem) -> bool:
    """Note that a delivery that waits for its next attempt is tried now, and tell whether it was waiting."""
    now = clock.stamp()
    waits = (DeliveryItem.state == FAILED) & (DeliveryItem.next_at > now)
    key = DeliveryItem(row.tenant_endpoint, row.timestamp_event_id)
    try:
        repository.update(key, [DeliveryItem.next_at.set(now)], condition=waits)
    except ConditionFailed:
        return False
    return True


def page(repository: Store, endpoint_id: str, *, after: str | None = None, size: int = PAGE_SIZE) -> LogPage:
    """Return a page of an endpoint's log: one Query. Raises Invalid for a cursor of another list."""
    pager = Pager(repository.tenant_id, ("deliveries", endpoint_id))
    place = pager.place(after, size=1) if after else None
    backwards = place is not None and place.backwards
    partition = repository.key(log_partition, endpoint_id)
    start = None
    if place:
        start = {DELIVERIES.hash: {"S": partition}, str(DELIVERIES.range): {"S": str(place.position[0])}}
    stored = repository.query(
        DeliveryItem, log_partition, endpoint_id, descending=not backwards, limit=size + 1, start=start
    )
    rows = stored.items[:size]
    if not rows:
        return LogPage([], None, None)
    more = len(stored.items) > size or stored.last_key is not None
    begin, end = ([getattr(row, str(DELIVERIES.range))] for row in (rows[0], rows[-1]))
    links = pager.links(place, begin=begin, end=end, more=more)
    return LogPage(rows[::-1] if backwards else rows, links.next, links.previous)


def find(repository: Store, endpoint_id: str, name: str) -> tuple[DeliveryItem, OutboxItem | None]:
    """Return a delivery, and what was to be delivered if the outbox still has it: two GetItems at once, and a third
    where the tenant lay elsewhere when it was told.

    `name` is as `name_of` forms it. Raises NotFound.
    """
    at, event_id = parts(name)
    row_id = event_id.removeprefix(_EVENT).partition("_")[0]
    reads: list[Callable[[], Any]] = [
        partial(repository.get, DeliveryItem, log_partition, endpoint_id, sort=log_key(at, event_id)),
        partial(repository.get, OutboxItem, outbox_row, row_id, sort=at),
    ]
    delivery, row = fan_out(reads)
    if delivery is None:
        raise NotFound(gettext("There is no such delivery. Deliveries are kept for 30 days."))
    told_by = told_by_repository(repository, delivery)
    if row is None and told_by.placement != repository.placement:
        row = outbox_rows.find(told_by, row_id, at)
    return delivery, row


def told_by_repository(repository: Store, delivery: DeliveryItem) -> Store:
    """Return the way to the outbox in which what was to be delivered is, wherever the tenant lies by now."""
    return Store("tenant", repository.tenant_id, Placement.parse(delivery.placement))


def name_of(row: DeliveryItem) -> str:
    """Return the name of a delivery in addresses: `<event id>.<time stamp>`."""
    at, event_id = log_key_parts(row.timestamp_event_id)
    return f"{event_id}.{at}"


def parts(name: str) -> tuple[str, str]:
    """Return time stamp and event id in the name of a delivery. Raises NotFound for what is no name of one."""
    event_id, _, at = name.partition(".")
    row_id, _, index = event_id.removeprefix(_EVENT).partition("_")
    is_name = event_id.startswith(_EVENT) and len(row_id) == 32 and row_id.isalnum() and row_id.isascii()
    if not (is_name and index.isdecimal() and index.isascii() and len(index) < 4 and clock.is_stamp(at)):
        raise NotFound(gettext("There is no such delivery."))
    return at, event_id


# --- sending again ---


@dataclass(frozen=True)
class Redelivered:
    """Say how many are on their way again, and from when on there are more, None where there are none."""

    count: int
    more_from: str | None


def send_test(tenant: TenantContext, *, endpoint_id: str, companion: Companion[ChangedEndpoint] | None = None) -> None:
    """Send an endpoint a test event, whatever it subscribed to. Raises NotFound and, where it is paused, Conflict."""
    endpoint = with_companion(companion, lambda: _active(tenant, endpoint_id))
    data = {"endpoint": endpoint.endpoint_id, "sent_by": tenant.user_name}
    transaction = Transaction()
    event = Event(endpoints.TEST, data, sequence=1)
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
    delivery, row = find(tenant.repository, endpoint_id, name)
    if row is None:
        raise Conflict(gettext("This event is no longer kept, so it cannot be sent again."))
    if len(delivery.attempts) >= MOST_ATTEMPTS:
        raise Conflict(
            gettext("This delivery has been tried %(most)s times. It is not sent again.") % {"most": MOST_ATTEMPTS}
        )
    if not _sent_again(tenant, endpoint_id, delivery):
        raise Conflict(gettext("It is still being delivered."))


def redeliver_since(tenant: TenantContext, *, endpoint_id: str, since: datetime, also_answered: bool) -> Redelivered:
    """Send again what was not delivered since a moment, or all of it: the oldest first, up to AT_ONCE of them.

    Deliveries that wait for their next attempt are tried at once.

    Raises NotFound and, where the endpoint is paused, Conflict.
    """
    _active(tenant, endpoint_id)
    rows, has_more = _rows_since(tenant.repository, endpoint_id, at=clock.stamp(since))
    chosen = [row for row in rows if also_answered or row.state != ANSWERED]
    again = [partial(_sent_again, tenant, endpoint_id, row) for row in chosen if len(row.attempts) < MOST_ATTEMPTS]
    sent = fan_out(again)
    # Not after the last: those of one bulk change have one moment, and what is open already is not opened twice.
    more_from = log_key_parts(rows[-1].timestamp_event_id)[0] if has_more else None
    return Redelivered(sum(sent), more_from)


def _rows_since(repository: Store, endpoint_id: str, *, at: str) -> tuple[list[DeliveryItem], bool]:
    """Return deliveries of events from a moment on, the oldest first, and whether there are more: one Query."""
    stored = repository.query(DeliveryItem, log_partition, endpoint_id, between=(at, "~"), limit=AT_ONCE + 1)
    return stored.items[:AT_ONCE], len(stored.items) > AT_ONCE or stored.last_key is not None


def _active(tenant: TenantContext, endpoint_id: str) -> EndpointItem:
    endpoint = endpoints.find(tenant.repository, endpoint_id)
    if endpoint.state == endpoints.PAUSED:
        raise Conflict(gettext("This endpoint is paused. Resume it first."))
    return endpoint


def _sent_again(tenant: TenantContext, endpoint_id: str, delivery: DeliveryItem) -> bool:
    """Let the outbox send this delivery at once, and tell whether it does: not where it is on its way already."""
    at, event_id = log_key_parts(delivery.timestamp_event_id)
    _, row_id, index = event_id.split("_")
    told_by = told_by_repository(tenant.repository, delivery)
    if delivery.state != FAILED:
        return _reopened(Work(told_by, OutboxItem(told_by.key(outbox_row, row_id), at), int(index), endpoint_id))
    # Of two who ask for it, one gets the log's row; and what was sent for its next attempt has no moment to come.
    if not now_due(tenant.repository, delivery):
        return False
    stored = outbox_rows.find(told_by, row_id, at)
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


def redact(tenant: TenantContext, ticket: RedactedTicket) -> int:
    """Take words of a ticket out of the answers of receivers, which may have repeated them; return out of how many.

    Costs a Query of the log of each endpoint since the ticket was opened, and an UpdateItem for each row that has the
    words.
    """
    since, found = ticket.moments[0], 0
    for endpoint in endpoints.listed(tenant.repository):
        rows = tenant.repository.query_all(
            DeliveryItem, log_partition, endpoint.endpoint_id, between=(log_key(since, "-"), "9")
        )
        for row in rows:
            texts = {"excerpt": row.excerpt, "note": row.note}
            after = {name: ticket.words.without(text) for name, text in texts.items()}
            if row.subject == ticket.subject and after != texts:
                actions: list[Action] = [getattr(DeliveryItem, name).set(text) for name, text in after.items()]
                key = DeliveryItem(row.tenant_endpoint, row.timestamp_event_id)
                with suppress(ConditionFailed):  # TTL has removed it meanwhile
                    tenant.repository.update(key, actions, condition=DeliveryItem.state.exists())
                    found += 1
    return found
