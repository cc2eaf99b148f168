"""Create tickets: once for each form that is sent, however often it arrives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from delivery.outbox.event_types import Event
from delivery.outbox.publisher import publish
from portal import clock
from portal.dynamo.retry import retrying
from portal.dynamo.store import Transaction
from portal.dynamo.transaction import Companion, with_companion
from portal.errors import Throttled, TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.desk import changing
from tickets.desk.changing import REQUEST, new_request_id, put_record, request_digest, resolver_name
from tickets.ticket import fields, stored, ticket_events
from tickets.ticket.fields import (
    ASSIGNEE,
    DESCRIPTION,
    EDITED,
    FIELDS,
    STATUS,
    SUMMARISED,
    TAGS,
    ChoiceField,
    Status,
    Values,
)
from tickets.ticket.stored import CounterItem, DetailItem, SummaryItem

_ATTEMPTS: Final = 6


def create(
    tenant: TenantContext,
    *,
    request_id: str | None = None,
    companion: Companion[tuple[SummaryItem, str]] | None = None,
    **values: Any,
) -> int:
    """Create a ticket and return its number. The same request again returns the number that it made before.

    The values of fields are given by name; `resolver` is the id of the member who gets it. Two writes: the counter,
    then one transaction of request record, summary, detail, first events, and where somebody subscribed the row that
    tells of them. A number is lost, never given twice, when the second fails. A `companion` is told the summary and the
    description, and sees to repetitions in place of the request record. Raises Invalid, Throttled.
    """
    made = _made_of(values)
    resolver, description = made[ASSIGNEE.name], made[DESCRIPTION.name]
    assigned = resolver_name(tenant, resolver)
    counter = with_companion(companion, lambda: _next_number(tenant))
    number, at = int(counter.last), clock.stamp()
    pk = tenant.repository.key(stored.ticket, number)
    summary = SummaryItem(
        pk,
        stored.SUMMARY,
        number=number,
        **{field.name: field.stored(made[field.name]) for field in SUMMARISED},
        requester=tenant.user_id,
        requester_name=tenant.user_name,
        created_at=at,
        epoch=int(counter.epoch),
        **changing.derived(tenant, number, status=Status.OPEN.value, resolver=resolver, updated_at=at),
    )
    transaction, digest = Transaction(), None
    told = _assign(tenant, transaction, summary, assigned)
    if companion is None:
        digest = request_digest(request_id or new_request_id(), *_told_by_form(made))
        put_record(tenant, transaction, stored.MADE_TICKET, digest, number=number)
    else:
        companion.join(transaction, (summary, description))
    transaction.put(summary, condition=SummaryItem.pk.does_not_exist())
    transaction.put(DetailItem(pk, stored.DETAIL, description=description, request=digest))
    transaction.put(changing.event(tenant, pk, at, verb="opened the ticket"))
    publish(
        tenant,
        transaction,
        ticket_events.created(tenant, number, made),
        *told,
        subject=ticket_events.subject(number),
        at=at,
    )
    return _write_once(tenant, transaction, number, companion)


def _made_of(values: Values) -> dict[str, Any]:
    """Return the values of all fields of a new ticket, as tickets hold them. Raises Invalid."""
    fields.known(values)
    return {field.name: field.clean(values.get(field.name) or field.initial) for field in FIELDS} | {
        STATUS.name: Status.OPEN
    }


def _told_by_form(made: Values) -> Iterator[str]:
    """Yield the values that tell a form from the same one filled in otherwise; an id says itself what it is of."""
    for field in EDITED:
        text = ",".join(made[field.name]) if field is TAGS else str(made[field.name])
        if not isinstance(field, ChoiceField) or not field.is_optional:
            yield text
        elif text:
            yield f"{field.name}={text}"
    if made[ASSIGNEE.name]:
        yield made[ASSIGNEE.name]


def _next_number(tenant: TenantContext) -> CounterItem:
    return tenant.repository.increment(CounterItem, stored.counter, sort=stored.COUNTER_TICKET)


def _assign(tenant: TenantContext, transaction: Transaction, summary: SummaryItem, name: str) -> list[Event]:
    """Make the assignment to somebody of this name the ticket's second version; return what it tells outside."""
    if not summary.resolver:
        return []
    summary.resolver_name, summary.version = name, 2
    changes = [(ASSIGNEE.name, "", name)]
    at = clock.stamp(clock.parse(summary.created_at), offset=1)
    entry = changing.event(tenant, summary.pk, at, verb="changed", changes=changes)
    entry.former_resolver = ""
    transaction.put(entry)
    people = ("", summary.resolver)
    return ticket_events.revised(tenant, number=int(summary.number), version=2, changes=changes, resolver=people)


def _write_once(tenant: TenantContext, transaction: Transaction, number: int, companion: Companion[Any] | None) -> int:
    """Write the transaction, and return the number of the ticket that its request record stands for."""
    try:
        retrying(
            lambda: tenant.repository.transact(transaction),
            # The same form, sent twice, is being written at this moment.
            again=lambda error: isinstance(error, TransactionRefused) and error.is_passing(),
            attempts=_ATTEMPTS,
            given_up=Throttled("The database is busy."),
        )
    except TransactionRefused as refused:
        if companion is not None:
            companion.blame(refused)
            raise
        request = refused.reason(REQUEST)
        if request is None or request.item is None:
            raise
        return int(request.item["number"]["N"])
    return number
