"""What happens to one ticket. Each rule is one transaction: the change and its entry in the history.

Concurrent edits: a change names the version it was made on. Where the stored one is newer, `EditConflict`
carries the stored ticket, and nothing was written. Comments never conflict.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any, Final

from portal import clock
from portal.dynamo.repository import Action, Condition, Transaction
from portal.dynamo.retry import retrying
from portal.errors import Conflict, Invalid, NotFound, Throttled, TransactionRefused
from tenants.membership import members
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tickets.counting import aggregates
from tickets.ticket import keys
from tickets.ticket.fields import COMMENT_LIMIT, DESCRIPTION_LIMIT, MOVES, TITLE_LIMIT, Priority, Status
from tickets.ticket.items import ActivityItem, ChangeMap, CounterItem, DetailItem, RequestItem, SummaryItem

LABELS: Final = {
    "title": "Title",
    "description": "Description",
    "status": "Status",
    "priority": "Priority",
    "tags": "Tags",
    "resolver": "Assignee",
}
_ATTEMPTS: Final = 6  # of writes that do not depend on the version: a comment on a ticket that is being changed
_REQUEST_TTL = 24 * 3600  # seconds


class EditConflict(Conflict):
    """Somebody changed the ticket since the form was made. `stored` is the ticket as it is now."""

    code = "edit_conflict"

    def __init__(self, stored: SummaryItem) -> None:
        super().__init__("Somebody else changed this ticket meanwhile.")
        self.stored = stored


def new_request_id() -> str:
    """An idempotency key for a form."""
    return uuid.uuid4().hex


def create(
    tenant: TenantContext,
    *,
    title: str,
    description: str = "",
    priority: Priority = Priority.NORMAL,
    tags: list[str] | None = None,
    request_id: str | None = None,
) -> int:
    """Open a ticket and return its number. The same `request_id` again returns the number it made before.

    Two writes: the counter, then one transaction of summary, detail, first event and idempotency record. A
    number is lost, never given twice, when the second fails.
    """
    title = _title(title)
    if len(description) > DESCRIPTION_LIMIT:
        raise Invalid(f"A description has at most {DESCRIPTION_LIMIT:,} characters.", field="description")
    repository = tenant.repository
    request_id = request_id or new_request_id()
    counter = repository.increment(CounterItem, keys.counter, sort=keys.COUNTER_TICKET)
    number, epoch = int(counter.last), int(counter.epoch)
    at = clock.stamp()
    pk = repository.key(keys.ticket, number)
    summary = SummaryItem(
        pk,
        keys.SUMMARY,
        number=number,
        title=title,
        priority=priority.value,
        tags=tags or [],
        requester=tenant.user_id,
        requester_name=tenant.user_name,
        created_at=at,
        request_id=request_id,
        epoch=epoch,
        **derived(tenant, number, status=Status.OPEN.value, resolver="", updated_at=at),
    )
    record = RequestItem(
        repository.key(keys.request, request_id),
        "TICKET",
        number=number,
        expires_at=int(time.time()) + _REQUEST_TTL,
    )
    transaction = Transaction()
    transaction.put(record, name="request", condition=RequestItem.pk.does_not_exist())
    transaction.put(summary, condition=SummaryItem.pk.does_not_exist())
    transaction.put(DetailItem(pk, keys.DETAIL, description=description))
    transaction.put(event(tenant, pk, at, verb="opened the ticket"))
    try:
        retrying(
            lambda: repository.transact(transaction),
            # The same form, sent twice, is being written at this moment.
            again=lambda error: isinstance(error, TransactionRefused) and error.is_passing(),
            attempts=_ATTEMPTS,
            given_up=Throttled("The database is busy."),
        )
    except TransactionRefused as refused:
        request = refused.reason("request")
        if request is None or request.item is None:
            raise
        return int(request.item["number"]["N"])
    return number


def derived(tenant: TenantContext, number: int, *, status: str, resolver: str, updated_at: str) -> dict[str, Any]:
    """The summary attributes that follow from these values, index keys included. The only place that makes them."""
    shard = keys.status_shard(number, tenant.shards)
    return {
        "status": status,
        "resolver": resolver,
        "updated_at": updated_at,
        "tenant_status": tenant.repository.key(keys.tenant_status, status.upper(), shard),
        "resolver_updated": keys.resolver_updated(resolver, updated_at),
    }


def dated(before: str, after: str, at: str) -> list[Action]:
    """What a summary remembers of a change of status, for the aggregates and for the lists behind their numbers."""
    if aggregates.is_unresolved(before) == aggregates.is_unresolved(after):
        return []
    if aggregates.is_unresolved(after):
        return [SummaryItem.resolved_at.remove(), SummaryItem.reopened_at.set(at), _count(aggregates.REOPENED, at)]
    return [SummaryItem.resolved_at.set(at), _count(aggregates.RESOLVED, at)]


def _count(kind: str, at: str) -> Action:
    stored: Any = SummaryItem.days[aggregates.day_count(kind, at)]
    action: Action = stored.set((stored | 0) + 1)
    return action


def event(
    tenant: TenantContext, pk: str, at: str, *, verb: str, changes: list[tuple[str, str, str]] | None = None
) -> ActivityItem:
    """A timeline entry: who did what, and for each changed field its text before and after."""
    return ActivityItem(
        pk,
        keys.activity(at, uuid.uuid4().hex[:12]),
        kind="event",
        at=at,
        author=tenant.user_id,
        author_name=tenant.user_name,
        verb=verb,
        changes=[
            ChangeMap(field=f, before=b, after=a)  # type: ignore[no-untyped-call]  # PynamoDB leaves it unannotated
            for f, b, a in changes or ()
        ],
    )


def read(tenant: TenantContext, number: int) -> SummaryItem:
    """The ticket's summary as of now: one consistent GetItem. Raises NotFound."""
    item = tenant.repository.get(SummaryItem, keys.ticket, number, sort=keys.SUMMARY, consistent=True)
    if item is None:
        raise NotFound(f"There is no ticket {number}.")
    return item


def read_description(tenant: TenantContext, number: int) -> str:
    item = tenant.repository.get(DetailItem, keys.ticket, number, sort=keys.DETAIL, consistent=True)
    return item.description if item else ""


def edit(
    tenant: TenantContext,
    number: int,
    *,
    version: int,
    title: str,
    description: str,
    priority: Priority,
    tags: list[str],
) -> None:
    """Change what the form of a ticket holds. Raises NotFound, Invalid, EditConflict."""
    title = _title(title)
    if len(description) > DESCRIPTION_LIMIT:
        raise Invalid(f"A description has at most {DESCRIPTION_LIMIT:,} characters.", field="description")
    summary = _fresh(tenant, number, version)
    stored = read_description(tenant, number)
    changes = _differences(
        ("title", summary.title, title),
        ("priority", summary.priority, priority.value),
        ("tags", ", ".join(summary.tags), ", ".join(tags)),
    )
    actions = [
        SummaryItem.title.set(title),
        SummaryItem.priority.set(priority.value),
        SummaryItem.tags.set(tags),
    ]
    detail = None
    if stored != description:
        changes.append(("description", _size(stored), _size(description)))
        detail = DetailItem(summary.pk, keys.DETAIL, description=description)
    if changes:
        _write(tenant, summary, changes, actions, detail=detail)


def change_status(tenant: TenantContext, number: int, *, to: Status, version: int) -> None:
    """Move a ticket along. Raises NotFound, EditConflict, and Invalid for a move that MOVES does not have."""
    summary = _fresh(tenant, number, version)
    if summary.status == to.value:
        return
    if to not in MOVES[Status(summary.status)]:
        raise Invalid(f"A {summary.status} ticket cannot become {to.value}.", field="status")
    _write(tenant, summary, [("status", summary.status, to.value)], [], status=to.value)


def change_priority(tenant: TenantContext, number: int, *, to: Priority, version: int) -> None:
    summary = _fresh(tenant, number, version)
    if summary.priority != to.value:
        changes = [("priority", summary.priority, to.value)]
        _write(tenant, summary, changes, [SummaryItem.priority.set(to.value)])


def assign(tenant: TenantContext, number: int, *, to: str, version: int) -> None:
    """Give a ticket to a member, or to nobody with "". Raises NotFound, EditConflict, and Invalid for non-agents."""
    name = resolver_name(tenant, to)
    summary = _fresh(tenant, number, version)
    if summary.resolver == to:
        return
    changes = [("resolver", summary.resolver_name, name)]
    _write(tenant, summary, changes, [SummaryItem.resolver_name.set(name)], resolver=to)


def comment(
    tenant: TenantContext,
    number: int,
    *,
    body: str,
    internal: bool = False,
    then: Status | None = None,
    request_id: str | None = None,
) -> None:
    """Add a comment or an internal note, and in the same transaction move the ticket on when `then` says so.

    The same `request_id` sent again at once adds nothing. A ticket that changes meanwhile is read again.
    Raises NotFound, Invalid.
    """
    body = body.strip()
    if not body:
        raise Invalid("Write something first.", field="body")
    if len(body) > COMMENT_LIMIT:
        raise Invalid(f"A comment has at most {COMMENT_LIMIT:,} characters.", field="body")
    request_id = request_id or new_request_id()

    def attempt() -> None:
        summary = read(tenant, number)
        if summary.request_id != request_id:
            _write_comment(tenant, summary, body, internal, then, request_id)

    retrying(attempt, again=lambda error: isinstance(error, EditConflict), attempts=_ATTEMPTS)


def _write_comment(
    tenant: TenantContext, summary: SummaryItem, body: str, internal: bool, then: Status | None, request_id: str
) -> None:
    at = clock.stamp()
    entry = ActivityItem(
        summary.pk,
        keys.activity(at, request_id[:12]),
        kind="note" if internal else "comment",
        at=at,
        author=tenant.user_id,
        author_name=tenant.user_name,
        body=body,
    )
    actions = [
        SummaryItem.comment_count.add(1),
        SummaryItem.request_id.set(request_id),
        SummaryItem.commented_at.set(at),
        _count(aggregates.COMMENTED, at),
    ]
    if not internal and tenant.user_id != summary.requester:
        actions.append(SummaryItem.responded_at.set(SummaryItem.responded_at | at))
    changes: list[tuple[str, str, str]] = []
    status = summary.status
    if then is not None and then.value != status:
        if then not in MOVES[Status(status)]:
            raise Invalid(f"A {status} ticket cannot become {then.value}.", field="status")
        changes, status = [("status", status, then.value)], then.value
    # Of the same comment sent twice at the same time, the second is refused.
    first = SummaryItem.request_id != request_id
    _write(tenant, summary, changes, actions, status=status, at=at, entry=entry, condition=first)


def _write(
    tenant: TenantContext,
    summary: SummaryItem,
    changes: list[tuple[str, str, str]],
    actions: Sequence[Action],
    *,
    status: str | None = None,
    resolver: str | None = None,
    detail: DetailItem | None = None,
    at: str | None = None,
    entry: ActivityItem | None = None,
    condition: Condition | None = None,
) -> None:
    """One transaction: the summary with its index keys, the description, a comment, the timeline event."""
    at = max(at or clock.stamp(), summary.updated_at)
    values = derived(
        tenant,
        int(summary.number),
        status=summary.status if status is None else status,
        resolver=summary.resolver if resolver is None else resolver,
        updated_at=at,
    )
    actions = [*actions, *(getattr(SummaryItem, name).set(value) for name, value in values.items())]
    actions += dated(summary.status, values["status"], at)
    if changes:
        actions.append(SummaryItem.version.set(int(summary.version) + 1))
    transaction = Transaction()
    unchanged = (
        (SummaryItem.version == summary.version)
        & (SummaryItem.status == summary.status)
        & (SummaryItem.resolver == summary.resolver)
    )
    transaction.update(
        SummaryItem(summary.pk, keys.SUMMARY),
        actions,
        name="summary",
        condition=unchanged if condition is None else unchanged & condition,
    )
    if detail is not None:
        transaction.put(detail)
    if entry is not None:
        transaction.put(entry)
    if changes:
        # A comment comes before what it led to.
        after = clock.stamp(clock.parse(at), offset=1) if entry is not None else at
        transaction.put(event(tenant, summary.pk, after, verb="changed", changes=changes))
    try:
        tenant.repository.transact(transaction)
    except TransactionRefused as refused:
        changed = refused.reason("summary")
        if changed is not None and changed.item:
            raise EditConflict(SummaryItem.from_raw_data(changed.item)) from refused
        # Another transaction holds the ticket at this moment (TransactionConflict), or it was deleted.
        raise EditConflict(read(tenant, int(summary.number))) from refused


def _fresh(tenant: TenantContext, number: int, version: int) -> SummaryItem:
    summary = read(tenant, number)
    if int(summary.version) != version:
        raise EditConflict(summary)
    return summary


def resolver_name(tenant: TenantContext, user_id: str) -> str:
    """The name of somebody who can have tickets; "" for nobody. Raises Invalid."""
    if not user_id:
        return ""
    if user_id == tenant.user_id:
        return tenant.user_name
    member = members.member(tenant.repository, user_id)
    if member is None or not member.role.at_least(Role.AGENT):
        raise Invalid("Only agents, admins and owners of this tenant can be assigned.", field="resolver")
    return member.name


def _title(text: str) -> str:
    title = " ".join(text.split())
    if not title:
        raise Invalid("A ticket needs a title.", field="title")
    if len(title) > TITLE_LIMIT:
        raise Invalid(f"A title has at most {TITLE_LIMIT} characters.", field="title")
    return title


def _differences(*fields: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    return [(name, before, after) for name, before, after in fields if before != after]


def _size(text: str) -> str:
    """A description in the timeline: its length, not its text, which would double the item."""
    return f"{len(text):,} characters" if text else ""
