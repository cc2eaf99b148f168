"""Add comments and internal notes: each exactly once, and none lost because the ticket changes at the same time."""

from __future__ import annotations

from typing import Final

from portal import clock
from portal.dynamo.repository import Transaction
from portal.dynamo.retry import retrying
from portal.errors import Conflict, Invalid, TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.counting import aggregates
from tickets.desk import summaries
from tickets.desk.creating import REQUEST, new_request_id, request_digest, request_record
from tickets.desk.summaries import TicketState, counted
from tickets.ticket import fields, keys
from tickets.ticket.fields import MOVES, Status
from tickets.ticket.items import ActivityItem, RequestItem, SummaryItem

_REQUEST: Final = "COMMENT"  # what its request records stand for
_ATTEMPTS: Final = 6
_PAUSE: Final = 0.05  # seconds at most before the second attempt


class CommentNotAdded(Conflict):
    """The ticket was being changed each time the comment was tried. Nothing was written; sending it again is right."""

    code = "comment_not_added"

    def __init__(self) -> None:
        super().__init__(
            "Your comment has not been added: this ticket is being changed by others at this moment. "
            "Your text is still here. Send it again.",
            field="body",
        )


def comment(
    tenant: TenantContext,
    number: int,
    *,
    body: str,
    internal: bool = False,
    then: Status | None = None,
    request_id: str | None = None,
) -> SummaryItem:
    """Add a comment or an internal note, and in the same transaction change the status when `then` says so.

    The same request sent again adds nothing, however many others came between. A ticket that changes meanwhile is read
    again. Returns the summary as it was read before, so that the caller can say what the author may not have seen.
    Raises NotFound, Invalid, CommentNotAdded.
    """
    body = fields.comment(body)
    request_id = request_id or new_request_id()
    kind = "note" if internal else "comment"
    digest = request_digest(request_id, str(number), kind, then.value if then else "", body)

    def attempt() -> SummaryItem:
        summary = summaries.read(tenant, number)
        transaction = Transaction()
        record = request_record(tenant, _REQUEST, digest, number=number)
        transaction.put(record, name=REQUEST, condition=RequestItem.pk.does_not_exist())
        try:
            _add(tenant, transaction, summary, kind=kind, body=body, then=then, request_id=request_id)
        except Invalid:
            # What this request has changed already is no reason to refuse it.
            if tenant.repository.get(RequestItem, keys.request, digest, sort=_REQUEST, consistent=True):
                return summary
            raise
        try:
            tenant.repository.transact(transaction)
        except TransactionRefused as refused:
            request = refused.reason(REQUEST)
            if request is None or request.item is None:
                raise
        return summary

    return retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        first=_PAUSE,
        given_up=CommentNotAdded(),
    )


def _add(
    tenant: TenantContext,
    transaction: Transaction,
    summary: SummaryItem,
    *,
    kind: str,
    body: str,
    then: Status | None,
    request_id: str,
) -> None:
    state = TicketState.of(summary)
    at = max(clock.stamp(), summary.updated_at)
    actions = [SummaryItem.commented_at.set(at), counted(aggregates.COMMENTED, at)]
    if kind == "comment":
        actions.append(SummaryItem.comment_count.add(1))
        if tenant.user_id != summary.requester:
            actions.append(SummaryItem.responded_at.set(SummaryItem.responded_at | at))
    moves = then is not None and then != state.status
    if then is not None and moves:
        if then not in MOVES[state.status]:
            raise Invalid(
                f"This ticket is {state.status.value} now and cannot become {then.value}. "
                "Your comment has not been added; you can send it without changing the status.",
                field="body",
            )
        actions += summaries.dated(state.status, then, at)
    transaction.put(
        ActivityItem(
            tenant.repository.key(keys.ticket, state.number),
            keys.activity(at, request_id[:12]),
            kind=kind,
            at=at,
            author=tenant.user_id,
            author_name=tenant.user_name,
            body=body,
        )
    )
    summaries.revise(
        tenant,
        transaction,
        state,
        at=at,
        status=then if moves else None,
        changes=[("status", state.status.value, then.value)] if then is not None and moves else (),
        actions=actions,
        told_at=clock.stamp(clock.parse(at), offset=1),  # a comment comes before what it led to
    )
