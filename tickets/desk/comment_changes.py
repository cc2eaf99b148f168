"""Edit and delete comments and internal notes: by their author for some minutes, by owners at any time.

An edited comment keeps its earlier texts; a deleted one keeps who deleted it and when, and neither text nor files. Both
change the one entry alone: neither the ticket's version nor what lists and aggregates count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, cast

from django.utils.translation import gettext as _

from delivery.outbox.publisher import Event, publish
from portal import clock
from portal.dynamo.meter import item_size
from portal.dynamo.retry import retrying
from portal.dynamo.store import ITEM_LIMIT, Action, Condition, Transaction
from portal.errors import Conflict, Forbidden, Invalid, NotFound, TransactionRefused
from portal.plain_text import mentions
from tenants.tenancy.context import TenantContext
from tickets.attachments import removing
from tickets.attachments.scanning import REMOVED
from tickets.ticket import fields, stored, ticket_events
from tickets.ticket.stored import HELD, TICKET_ITEMS, ActivityItem, FormerText, SummaryItem

Find = Callable[[TenantContext, int, str], tuple[SummaryItem, ActivityItem]]

WINDOW: Final = timedelta(minutes=15)
_ROOM: Final = 20_000  # bytes of an item that stay free for what else is written on it, such as the fate of a letter
_ATTEMPTS: Final = 5
_KINDS: Final = ("comment", "note")


class CommentConflict(Conflict):
    """The comment was edited, redacted or deleted after the author's page was read. Nothing was written."""

    code = "comment_conflict"

    def __init__(self, entry: ActivityItem) -> None:
        deleted = _("This comment was deleted meanwhile. Your text has not been saved.")
        changed = _("This comment was changed meanwhile. Your text has not been saved.")
        super().__init__(deleted if entry.deleted_at else changed, field="body")
        self.entry = entry


class TooLate(Forbidden):
    """Somebody may not change this comment, or not any more."""

    def __init__(self) -> None:
        sentence = _(
            "Comments can be edited and deleted by their author for %(minutes)s minutes, and by owners of the desk."
        )
        super().__init__(sentence % {"minutes": int(WINDOW.total_seconds() // 60)})


def read(tenant: TenantContext, number: int, sort: str) -> tuple[SummaryItem, ActivityItem]:
    """Return a ticket and the comment or note with this sort key: one consistent BatchGetItem. Raises NotFound, for a
    viewer who asks for a note as well."""
    repository = tenant.repository
    wanted = [
        repository.wanted(SummaryItem, stored.ticket, number, sort=stored.SUMMARY),
        repository.wanted(ActivityItem, stored.ticket, number, sort=sort),
    ]
    summary, entry = repository.get_all(wanted, consistent=True)
    return _found(tenant, summary, entry)


def read_recent(tenant: TenantContext, number: int, entry_id: str) -> tuple[SummaryItem, ActivityItem]:
    """Return a ticket and a comment that is recent enough for its author to change, by its id: one Query of the last
    minutes. Raises NotFound."""
    since = clock.stamp(clock.now() - WINDOW)
    recent = (stored.activity_from(since), stored.SUMMARY)
    items = [*tenant.repository.query_all(TICKET_ITEMS, stored.ticket, number, between=recent, consistent=True)]
    summary = next((item for item in items if isinstance(item, SummaryItem)), None)
    entries = (item for item in items if isinstance(item, ActivityItem))
    return _found(tenant, summary, next((one for one in entries if stored.entry_id(one.sk) == entry_id), None))


def _found(
    tenant: TenantContext, summary: SummaryItem | None, entry: ActivityItem | None
) -> tuple[SummaryItem, ActivityItem]:
    if summary is None or entry is None or entry.kind not in _KINDS or (entry.kind == "note" and not tenant.is_agent):
        raise NotFound(_("There is no such comment."))
    return summary, entry


def may_change(tenant: TenantContext, entry: ActivityItem, now: datetime | None = None) -> bool:
    """Tell whether this caller may edit and delete the comment at this moment."""
    of = entry.attribute_values  # attributes are descriptors, and a page asks this of each of its comments
    if of["kind"] not in _KINDS or of.get("deleted_at") or not tenant.is_agent:
        return False
    is_own = bool(tenant.user_id) and of["author"] == tenant.user_id
    return tenant.is_owner or (is_own and (now or clock.now()) - clock.parse(of["at"]) <= WINDOW)


def mark_of(entry: ActivityItem) -> str:
    """Return a mark of the comment as it is, by which a form says which text its author saw."""
    return hashlib.blake2b(f"{entry.deleted_at}\0{entry.body}".encode(), digest_size=8).hexdigest()


def edit(
    tenant: TenantContext,
    number: int,
    entry: str,
    *,
    body: str,
    seen: str = "",
    find: Find = read,
) -> ActivityItem:
    """Give a comment another text and return it as it is then. The text that it has already changes nothing.

    `find` reads the comment by `entry`; `seen` is the mark of the text that the author saw. One read and one
    transaction. Raises NotFound, Invalid, TooLate, CommentConflict.
    """

    def text_of(found: ActivityItem) -> str:
        text = fields.comment(body) if body.strip() or not found.files else ""
        _refuse(tenant, found)
        if text != found.body and seen and seen != mark_of(found):
            raise CommentConflict(found)
        return text

    return _tried(lambda: _replace(tenant, number, find(tenant, number, entry), text_of))


def tick(tenant: TenantContext, number: int, sort: str, ticked: Callable[[str], str]) -> ActivityItem:
    """Tick an item of a comment's checklist, which each agent may at any time. It is an edit like any other. Raises
    NotFound, Conflict, CommentConflict."""

    def text_of(found: ActivityItem) -> str:
        if found.deleted_at:
            raise CommentConflict(found)
        return ticked(found.body)

    return _tried(lambda: _replace(tenant, number, read(tenant, number, sort), text_of))


def _replace(
    tenant: TenantContext,
    number: int,
    read_now: tuple[SummaryItem, ActivityItem],
    text_of: Callable[[ActivityItem], str],
) -> ActivityItem:
    """Write another text of a comment as it was read, keep the present one, and tell of it."""
    summary, found = read_now
    if (text := text_of(found)) == found.body:
        return found
    make: Any = FormerText
    former = make(body=found.body, at=clock.stamp(), by=tenant.user_id, by_name=tenant.author_name)
    after = ActivityItem.from_raw_data(found.serialize())
    after.body, after.former_texts = text, [*(found.former_texts or ()), former]
    if item_size(after.serialize()) > ITEM_LIMIT - _ROOM:
        raise Invalid(_("This comment has been edited so often that no further version fits."), field="body")
    version = int(summary.version)
    told = [ticket_events.comment_edited(tenant, number, entry=found, body=text, version=version)]
    if mentions(text):
        times = len(after.former_texts)
        told.append(ticket_events.edited(tenant, number, entry=found.sk, version=version, times=times))
    _write(
        tenant, number, found, [ActivityItem.body.set(text), ActivityItem.former_texts.set(after.former_texts)], told
    )
    return after


def delete(
    tenant: TenantContext,
    number: int,
    entry: str,
    *,
    find: Find = read,
) -> ActivityItem:
    """Delete a comment: its texts and its files, so that who deleted it and when is left. Deleting it again does
    nothing. One read and one transaction, and for each file what its removal takes. Raises NotFound, TooLate."""

    def attempt() -> ActivityItem:
        summary, found = find(tenant, number, entry)
        if found.deleted_at:
            return found
        _refuse(tenant, found)
        if left := [file.id for file in found.files or () if file.state != REMOVED]:
            for file in left:  # before the comment, which names them: a broken off deletion is repeated
                removing.remove(tenant, number, file, is_told=False)
            summary, found = find(tenant, number, entry)
        after, item = ActivityItem.from_raw_data(found.serialize()), cast(Any, ActivityItem)
        left_out: dict[str, Any] = {"body": "", "former_texts": None, "files": None, "letter": None}
        who = {"deleted_at": clock.stamp(), "deleted_by": tenant.user_id, "deleted_by_name": tenant.author_name}
        actions: list[Action] = []
        for name, value in (left_out | who).items():
            setattr(after, name, value)
            actions.append(getattr(item, name).remove() if value is None else getattr(item, name).set(value))
        if found.delivery == HELD:  # the letter finds nothing to send
            after.delivery = after.delivery_at = None
            actions += [item.delivery.remove(), item.delivery_at.remove()]
        version = int(summary.version)
        told = [ticket_events.comment_deleted(tenant, number, entry=found, version=version)]
        _write(tenant, number, found, actions, told)
        return after

    return _tried(attempt)


def _refuse(tenant: TenantContext, entry: ActivityItem) -> None:
    if entry.deleted_at:
        raise CommentConflict(entry)
    if not may_change(tenant, entry):
        raise TooLate


def _tried(attempt: Callable[[], ActivityItem]) -> ActivityItem:
    busy = _("This comment is being changed by others at this moment. Please try again.")
    return retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        given_up=lambda: Conflict(busy, field="body"),
    )


def as_read(entry: ActivityItem) -> Condition:
    """Return the condition that an entry of the history still says what it said when it was read."""
    item: Any = ActivityItem
    condition: Any = item.at == entry.at
    condition &= (item.body == entry.body) if entry.body else _is_empty(item.body)
    for name in ("former_texts", "files", "deleted_at"):
        attribute, value = getattr(item, name), getattr(entry, name)
        is_same = attribute == (value if isinstance(value, str) else [*value]) if value else None
        condition &= attribute.does_not_exist() if is_same is None else is_same
    found: Condition = condition
    return found


def _is_empty(text: Any) -> Any:
    return (text == "") | text.does_not_exist()


def _write(tenant: TenantContext, number: int, entry: ActivityItem, actions: list[Action], told: list[Event]) -> None:
    transaction = Transaction()
    transaction.update(ActivityItem(entry.pk, entry.sk), actions, condition=as_read(entry))
    publish(tenant, transaction, *told, subject=ticket_events.subject(number))
    tenant.repository.transact(transaction)


def as_of(entry: ActivityItem, at: str) -> ActivityItem:
    """Return an entry as it was at this moment: with the text of then, as far as it is kept."""
    texts = [*(entry.former_texts or ())]
    later = [text for text in texts if text.at > at]
    if not later:
        return entry
    then = ActivityItem.from_raw_data(entry.serialize())
    then.body, then.former_texts = later[0].body, texts[: len(texts) - len(later)] or None
    return then
