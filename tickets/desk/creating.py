"""Create tickets: once for each form that is sent, however often it arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

from django.utils.translation import gettext as _

from delivery.outbox.publisher import Event, publish, publish_after
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.retry import retrying
from portal.dynamo.store import Transaction
from portal.dynamo.transaction import Companion, with_companion
from portal.errors import Invalid, Throttled, TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.attachments import attachments
from tickets.attachments.attachments import FileRef
from tickets.custom_fields import definitions
from tickets.desk import changing
from tickets.desk.changing import REQUEST, new_request_id, put_record, request_digest, resolver_name
from tickets.desk.letter_texts import FromLetter
from tickets.groups import assigning
from tickets.requesters import requesters
from tickets.requesters.requesters import Requester
from tickets.sla import tracking
from tickets.ticket import fields, status_dates, stored, ticket_events
from tickets.ticket.fields import (
    ASSIGNEE,
    CUSTOM,
    DEFINED,
    DESCRIPTION,
    EDITED,
    FIELDS,
    FIXED,
    GROUP,
    OPTIONAL,
    STATUS,
    SUMMARISED,
    TAGS,
    Status,
    Values,
)
from tickets.ticket.status_dates import counted_in
from tickets.ticket.stored import ActivityItem, CounterItem, DetailItem, SummaryItem
from tickets.ticket.ticket_events import PREVIEW, REPLY

_ATTEMPTS: Final = 6


def create(
    tenant: TenantContext,
    *,
    requester: Requester | str | None = None,
    acknowledge: bool = False,
    files: Sequence[FileRef] = (),
    request_id: str | None = None,
    companion: Companion[tuple[SummaryItem, str]] | None = None,
    letter: FromLetter | None = None,
    also: Callable[[Transaction, SummaryItem, DetailItem], None] = lambda transaction, summary, detail: None,
    **values: Any,
) -> int:
    """Create a ticket and return its number. The same request again returns the number that it made before.

    Values of fields are given by name. `requester` is the person outside the desk for whom it is, or their id, None for
    whoever creates it; `acknowledge` lets a letter tell them that it has arrived. `files` are stored already. Two
    writes: the counter, then one transaction of all else. A number is lost, never given twice, when the second fails. A
    `companion` is told summary and description, and sees to repetitions in place of the request record; `also` adds to
    the transaction. `letter` is the one that it came as; where it `comes_again`, the rest is written after it.
    """
    made = _made_of(values)
    description, assigned = made[DESCRIPTION.name], resolver_name(tenant, made[ASSIGNEE.name])
    outside = _person_outside(tenant, requester)
    counter = with_companion(companion, lambda: _numbered(tenant, made))
    asked = [*_told_by_form(made), *([outside.id] if outside else []), *(file.id for file in files)]
    assigned = assigned or _given_by_group(tenant, int(counter.last), made)
    summary = _summary_of(tenant, counter, made, outside)
    number, at, pk, transaction, digest = int(counter.last), summary.created_at, summary.pk, Transaction(), None
    told = _assign(tenant, transaction, summary, assigned)
    if companion is None:
        digest = request_digest(request_id or new_request_id(), *asked)
        put_record(tenant, transaction, stored.MADE_TICKET, digest, number=number)
    else:
        companion.join(transaction, (summary, description))
    text, kept = letter.begin(description) if letter else (description, {})
    detail = DetailItem(pk, stored.DETAIL, description=text, request=digest, **kept)
    follows = letter if letter and letter.comes_again else None
    if not follows:
        transaction.put(_opened(tenant, summary))
    acknowledge = acknowledge and outside is not None
    opened = ticket_events.created(tenant, number, made, requester=(summary.requester, summary.requester_name))
    to_send = _entered(tenant, number, files, by_mail=acknowledge and not (follows and _acknowledges_later(tenant)))
    publish(tenant, transaction, opened, *told, to_send, subject=ticket_events.subject(number), at=at)
    also(transaction, summary, detail)
    with attachments.Copies(tenant, files) as copies:
        _put(tenant, transaction, summary, detail, copies)
        number = _write_once(tenant, transaction, number, companion, copies)
    if follows:
        _complete(tenant, summary, detail, follows, description, acknowledge=acknowledge)
    return number


def complete(tenant: TenantContext, number: int, *, letter: FromLetter, description: str, acknowledge: bool) -> None:
    """Write what is missing of a ticket whose letter `comes_again` after a kill, as `create` does after its
    transaction: two GetItems, and the writes of `create`, which change nothing where they were made before."""
    held, repository = (stored.ticket, number), tenant.repository
    summary = repository.get(SummaryItem, *held, sort=stored.SUMMARY, consistent=True)
    detail = repository.get(DetailItem, *held, sort=stored.DETAIL, consistent=True)
    if summary and detail:
        _complete(tenant, summary, detail, letter, description, acknowledge=acknowledge)


def _complete(
    tenant: TenantContext,
    summary: SummaryItem,
    detail: DetailItem,
    letter: FromLetter,
    description: str,
    *,
    acknowledge: bool,
) -> None:
    tenant.repository.put_new(_opened(tenant, summary, letter.digest))
    letter.complete(tenant.repository, detail, description)
    if acknowledge and _acknowledges_later(tenant):
        number = int(summary.number)
        event = _entered(tenant, number, (), by_mail=True)
        about, at = ticket_events.subject(number), summary.created_at
        publish_after(tenant, event, subject=about, at=at, row_id=letter.digest[:32])


def _entered(tenant: TenantContext, number: int, files: Sequence[FileRef], *, by_mail: bool) -> Event:
    """Tell destinations of ours of a new ticket: of one that is acknowledged by mail, and of one with pictures."""
    to = ([REPLY] if by_mail else []) + ([PREVIEW] if files and attachments.have_pictures(files) else [])
    return ticket_events.entered(tenant, number, entry="", version=1, to=tuple(to))


def _opened(tenant: TenantContext, summary: SummaryItem, digest: str = "") -> ActivityItem:
    return changing.event(tenant, summary.pk, summary.created_at, verb="opened the ticket", entry_id=digest[:12])


def _acknowledges_later(tenant: TenantContext) -> bool:
    """Tell whether an acknowledgement has a row of its own: where others hear of the ticket, it costs nothing in
    theirs."""
    return ticket_events.CREATED.name not in tenant.subscriptions


def _put(
    tenant: TenantContext,
    transaction: Transaction,
    summary: SummaryItem,
    detail: DetailItem,
    copies: attachments.Copies,
) -> None:
    """Write summary and detail of a new ticket, whose description these files belong to. Raises Invalid."""
    if copies.files:
        attachments.check_ticket(0, 0, copies.files)
        files = copies.made()
        detail.files = attachments.attach(tenant, transaction, files, number=int(summary.number), entry=stored.DETAIL)
        summary.file_count, summary.file_bytes = len(files), sum(file.size for file in files)
    tracking.start(tenant, transaction, summary)
    transaction.put(summary, condition=SummaryItem.pk.does_not_exist())
    transaction.put(detail)


def _summary_of(tenant: TenantContext, counter: CounterItem, made: Values, outside: Requester | None) -> SummaryItem:
    """Return the summary of a new ticket, which is for somebody outside the desk or for whoever creates it."""
    number, at, counting = int(counter.last), clock.stamp(), status_dates.counting_of(tenant, counter)
    return SummaryItem(
        tenant.repository.key(stored.ticket, number),
        stored.SUMMARY,
        number=number,
        **{field.name: field.stored(made[field.name]) for field in (*SUMMARISED, *FIXED)},
        requester=outside.id if outside else tenant.user_id,
        requester_name=outside.label if outside else tenant.user_name,
        tenant_requester=stored.place_of_requester(tenant.tenant_id, outside.id) if outside else None,
        created_at=at,
        epoch=counting.epoch,
        count_form=counting.form,
        zone=counted_in(tenant),
        **changing.derived(tenant, number, status=Status.OPEN.value, resolver=made[ASSIGNEE.name], updated_at=at),
    )


def _person_outside(tenant: TenantContext, requester: Requester | str | None) -> Requester | None:
    """Return the person outside the desk, by one GetItem where the id is given. Raises Invalid."""
    if not requester or isinstance(requester, Requester):
        return requester or None
    found = requesters.find(tenant, requester)
    if found is None:
        raise Invalid(_("There is no such requester."), field="requester")
    return found


def _made_of(values: Values) -> dict[str, Any]:
    """Return the values of all fields of a new ticket, as tickets hold them. Raises Invalid."""
    fields.known(values)
    return {field.name: field.clean(values.get(field.name) or field.initial) for field in FIELDS} | {
        STATUS.name: Status.OPEN
    }


def _told_by_form(made: Values) -> Iterator[str]:
    """Yield the values that tell a form from the same one filled in otherwise; an id says itself what it is of."""
    for field in EDITED:
        text = ",".join(made[field.name]) if field is TAGS else field.text(made[field.name])
        if field is DESCRIPTION:
            yield made[field.name]
        elif field.name not in OPTIONAL and field is not CUSTOM:
            yield text
        elif text:
            yield f"{field.name}={text}"
    if made[ASSIGNEE.name]:
        yield made[ASSIGNEE.name]


def _next_number(tenant: TenantContext) -> CounterItem:
    return tenant.repository.increment(CounterItem, stored.counter, sort=stored.COUNTER_TICKET)


def _numbered(tenant: TenantContext, made: dict[str, Any]) -> CounterItem:
    """Check a new ticket's kind, group and custom fields, give it the desk's default ones, and return its number.

    The desk's definitions are read at the same time where no request has done so.
    """
    reads: list[Callable[[], Any]] = [lambda: _next_number(tenant), lambda: definitions.of(tenant)]
    wanted = {field.name: made[field.name] for field in DEFINED} | CUSTOM.by_change(made[CUSTOM.name])
    if any(wanted.values()):
        definitions.of(tenant).check(wanted)
    counter, defined = fan_out(reads)
    made |= {field.name: made[field.name] or defined.default_of(field) for field in DEFINED}
    return cast(CounterItem, counter)


def _given_by_group(tenant: TenantContext, number: int, made: dict[str, Any]) -> str:
    """Assign a new ticket as its group does, and return the name of who gets it, "" for nobody."""
    if not made[GROUP.name]:
        return ""
    made[ASSIGNEE.name], name = assigning.assign(tenant, made[GROUP.name], [number]).get(number, assigning.NOBODY)
    return name


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


def _write_once(
    tenant: TenantContext,
    transaction: Transaction,
    number: int,
    companion: Companion[Any] | None,
    copies: attachments.Copies,
) -> int:
    """Write the transaction, and return the number of the ticket that its request record stands for."""
    try:
        retrying(
            lambda: tenant.repository.transact(transaction),
            # The same form, sent twice, is being written at this moment.
            again=lambda error: isinstance(error, TransactionRefused) and error.is_passing(),
            attempts=_ATTEMPTS,
            given_up=lambda: Throttled(_("The database is busy.")),
        )
    except TransactionRefused as refused:
        if companion is not None:
            companion.blame(refused)
            raise
        request = refused.reason(REQUEST)
        if request is None or request.item is None:
            attachments.blame(refused)
            raise
        return int(request.item["number"]["N"])
    copies.written()
    return number
