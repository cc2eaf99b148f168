"""Split a comment off into a ticket of its own: with its text, files and requester, and a link on both sides."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from portal.dynamo.store import Transaction
from portal.errors import Conflict, TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.attachments import attachments
from tickets.attachments.attachments import FileRef
from tickets.attachments.scanning import READABLE
from tickets.attachments.stored import object_of
from tickets.desk import comment_changes, creating, letter_texts
from tickets.linking import linking
from tickets.ticket import stored
from tickets.ticket.fields import Channel
from tickets.ticket.stored import ActivityItem, DetailItem, SummaryItem


def split(tenant: TenantContext, number: int, sort: str, *, title: str, request_id: str) -> int:
    """Make a ticket of a comment and return its number. The same request again returns the number that it made before.

    The comment stays where it is. The new ticket is for whoever wrote it, where that is somebody outside the desk, and
    else for the requester of the first one. Its files are copied. One read, for each file what storing it takes, and
    what a new ticket takes, with two items more in its transaction. Raises NotFound, Invalid, Conflict.
    """
    summary, entry = comment_changes.read(tenant, number, sort)
    if entry.deleted_at:
        raise Conflict(_("This comment was deleted meanwhile."))
    is_from_outside = stored.is_requester(entry.author)
    requester = entry.author if is_from_outside else summary.requester

    def also(transaction: Transaction, made: SummaryItem, detail: DetailItem) -> None:
        if is_from_outside:
            detail.letter, detail.message_id = _letter(entry), entry.message_id
        linking.join_split(tenant, transaction, made, detail, number)

    try:
        return creating.create(
            tenant,
            title=title,
            description=entry.body,
            channel=summary.channel if is_from_outside else Channel.HAND,
            requester=requester if stored.is_requester(requester) else None,
            files=_copied(tenant, entry, request_id),
            request_id=request_id,
            also=also,
        )
    except TransactionRefused as refused:
        raise Conflict(_("This ticket is being changed by others at this moment. Please try again.")) from refused


def _letter(entry: ActivityItem) -> dict[str, Any]:
    """Return what the description keeps of the comment's letter. The words of somebody outside are no Markdown, so that
    a description without a letter says so, too."""
    kept: dict[str, Any] = entry.letter.as_dict() if entry.letter else {}  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
    return kept | {"marks": [*kept.get("marks", ()), letter_texts.SPLIT]}


def _copied(tenant: TenantContext, entry: ActivityItem, request_id: str) -> list[FileRef]:
    """Store the files of a comment once more, which can be had."""
    found = []
    for file in entry.files or ():
        if file.state in READABLE:
            content = attachments.content(tenant, object_of(file), most=settings.FILE_MOST_BYTES)
            found.append(attachments.store(tenant, file.name, content, identity=f"{request_id} {file.id}"))
    return found
