"""Take a comment or an internal note back within moments, as if it had never been.

The row of the outbox with all that a comment tells others is held for the seconds that a desk chooses. A worker seals
it before it delivers anything; taking back closes the row unless it was sealed. So a letter that has left is never
denied, and one that was taken back never leaves, whichever process is killed. A comment without a row told nobody.

Taking back deletes the entry, the entry of what the comment changed, and the record of its request, and gives the
ticket the values that it had, version included. Its ready answers count one use less. It is refused where anybody has
changed the ticket or commented since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from delivery.outbox import outbox_rows
from delivery.outbox.stored import row_parts
from portal.dynamo.store import Action, Transaction
from portal.errors import TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.attachments import attachments, scanning
from tickets.desk import changing, undoing
from tickets.desk.changing import TicketState
from tickets.desk.commenting import WrittenComment
from tickets.desk.undoing import Undone
from tickets.ready_answers import answer_uses
from tickets.sla import tracking
from tickets.ticket import status_dates, stored
from tickets.ticket.fields import ASSIGNEE, BY_NAME, SNOOZED, STATUS, Status
from tickets.ticket.status_dates import counted, set_to
from tickets.ticket.stored import ActivityItem, RequestItem, SummaryItem

HOLD: Final = "reply_hold"  # the desk's default: for how many seconds its replies are held
CHOICES: Final = ("0", "10", "30")
_KIND: Final = "comment"
_SECONDS: Final = 90  # for which a receipt is taken
_FORMER: Final = ("updated_at", "commented_at", "responded_at", "noted_at", "sla", "due")
_ROW, _TICKET = "row", "ticket"
_NOTE_STAYS: Final = gettext_noop("Your note stays: somebody has commented or changed the ticket since.")
_COMMENT_STAYS: Final = gettext_noop("Your comment stays: somebody has commented or changed the ticket since.")


def receipt(tenant: TenantContext, written: WrittenComment, answer_ids: Sequence[str] = ()) -> str:
    """Return the receipt by which a comment can be taken back. `answer_ids` are the ready answers that it counted."""
    row = [row_parts(written.row.event_id)[1], written.row.timestamp] if written.row else []
    of: dict[str, Any] = written.before.attribute_values
    number, former = int(written.before.number), [of.get(name) for name in _FORMER]
    what = [
        number,
        written.entry.sk,
        written.version,
        int(of["comment_count"]),
        written.change,
        row,
        former,
        *answer_ids,
    ]
    return undoing.receipt(tenant, _KIND, what)


def _take_back(tenant: TenantContext, values: list[Any]) -> Undone:
    number, sort, version, count, change, row, former, *answer_ids = values
    pk = tenant.repository.key(stored.ticket, number)
    wanted: list[Any] = [(SummaryItem, pk, stored.SUMMARY), (ActivityItem, pk, sort)]
    wanted += [(ActivityItem, pk, change)] if change else []
    summary, entry, *changes = tenant.repository.get_all(wanted, consistent=True)
    is_note = entry is not None and entry.kind == "note"
    stays = Undone("", (_(_NOTE_STAYS if is_note else _COMMENT_STAYS),))
    if summary is None or not _is_untouched(tenant, entry, summary, version, count) or None in changes:
        return stays
    before = dict(zip(_FORMER, former, strict=False))  # a receipt of an older version has fewer
    transaction = Transaction()
    actions = _as_before(tenant, summary, entry, before, changes[0] if changes else None)
    if entry.files:
        actions += attachments.detach(tenant, transaction, entry.files, entry=sort)
    tracking.restored(tenant, transaction, number, before.get("sla"))
    transaction.update(summary, actions, name=_TICKET, condition=_unchanged(summary))
    for one in (entry, *changes):
        transaction.delete(ActivityItem(pk, one.sk), condition=ActivityItem.deleted_at.does_not_exist())
    answer_uses.uncount(tenant, transaction, answer_ids)
    if entry.request:
        request = tenant.repository.key(stored.request, entry.request)
        transaction.delete(RequestItem(request, stored.MADE_COMMENT))
    if row:
        outbox_rows.withdraw(tenant.tenant_id, *row, transaction=transaction, name=_ROW)
    try:
        tenant.repository.transact(transaction)
    except TransactionRefused as refused:
        if row and refused.reason(_ROW):
            return Undone("", (_("Your comment has left already and stays."),))
        return stays
    said = (
        _("Your note was taken back. Its text is below.")
        if is_note
        else _("Your comment was taken back. Its text is below.")
    )
    return Undone(said, draft=_draft(number, entry))


def _is_untouched(
    tenant: TenantContext, entry: ActivityItem | None, summary: SummaryItem, version: int, count: int
) -> bool:
    if entry is None or entry.author != tenant.user_id or entry.deleted_at or entry.former_texts:
        return False
    if any(file.state == scanning.REMOVED for file in entry.files or ()):
        return False
    is_note = entry.kind == "note"
    latest = summary.noted_at if is_note else summary.updated_at
    is_same = int(summary.version) == version and int(summary.comment_count) == count + (not is_note)
    return is_same and latest == entry.at and (is_note or (summary.noted_at or "") <= entry.at)


def _unchanged(summary: SummaryItem) -> Any:
    condition: Any = TicketState.of(summary).still_holds & (SummaryItem.updated_at == summary.updated_at)
    condition &= SummaryItem.comment_count == summary.comment_count
    noted = SummaryItem.noted_at
    return condition & (noted == summary.noted_at if summary.noted_at else noted.does_not_exist())


def _as_before(
    tenant: TenantContext,
    summary: SummaryItem,
    entry: ActivityItem,
    before: dict[str, str | None],
    change: ActivityItem | None,
) -> list[Action]:
    """Return the actions that give the ticket the values that it had before the comment."""
    values: dict[str, Any] = {name: before[name] for name in _FORMER if name in before and name != "updated_at"}
    status, resolver, actions = summary.status, summary.resolver, list[Action]()
    for one in change.changes if change is not None else ():
        if one.field == STATUS.name:
            status = one.before
            moments, counts = status_dates.forgotten(summary, status, zone=tenant.zone)
            values |= moments
            actions += counts
        elif one.field == ASSIGNEE.name and change is not None:
            resolver, values["resolver_name"] = change.former_resolver or "", one.before
        elif one.field != SNOOZED:  # which is in `due`
            field = BY_NAME[one.field]
            values[one.field] = field.stored(field.from_text(one.before))
    if entry.kind == "comment":
        actions += [SummaryItem.comment_count.add(-1), counted(stored.COMMENTED, entry.at, zone=tenant.zone, by=-1)]
    if change is not None:
        actions.append(SummaryItem.version.set(int(summary.version) - 1))
    values |= changing.derived(
        tenant,
        int(summary.number),
        status=Status(status).value,
        resolver=resolver,
        updated_at=before["updated_at"] or summary.updated_at,
        noted_at=before["noted_at"] or "",
    )
    return [*actions, *(set_to(name, value) for name, value in values.items())]


def _draft(number: int, entry: ActivityItem) -> dict[str, Any]:
    files = [
        attachments.FileRef(file.id, file.name, int(file.size), file.type, file.state) for file in entry.files or ()
    ]
    about = {"body": entry.body, "internal": entry.kind == "note", "cc": ", ".join(entry.cc or ())}
    return {"number": number, "form": about, "files": files}


undoing.declare_undo(_KIND, _take_back, seconds=_SECONDS)
