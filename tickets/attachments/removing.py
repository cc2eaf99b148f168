"""Remove a file from a ticket: what remains is its name, and an entry of the history that says who removed it."""

from __future__ import annotations

import uuid
from typing import Any

from django.utils.translation import gettext as _

from portal import clock
from portal.dynamo.store import Transaction
from portal.errors import Conflict, NotFound
from tenants.tenancy.context import TenantContext
from tickets.attachments import attachments, downloads, scanning, stored
from tickets.attachments.stored import FileItem, FileUsageItem
from tickets.ticket import stored as tickets
from tickets.ticket.stored import ActivityItem, SummaryItem


def remove(tenant: TenantContext, number: int, file_id: str, *, is_told: bool = True) -> str:
    """Remove a file and return its name: two reads, one transaction, and then content and preview are deleted.

    With `is_told` the history says so.

    A crash in between leaves an object that nobody can have; removing the file again deletes it. Raises NotFound, and
    Conflict where others change the comment at the same moment, again and again.
    """
    file = downloads.file_of(tenant, number, file_id)
    if file.expires_at:
        raise Conflict(_("This ticket is marked as spam, and its files go with it."))
    if file.state != scanning.REMOVED:
        scanning.note_finding(
            tenant, file, scanning.REMOVED, lambda transaction: _told(tenant, transaction, file, is_told)
        )
    attachments.delete(tenant, file)
    return file.name


def _told(tenant: TenantContext, transaction: Transaction, file: FileItem, is_told: bool) -> None:
    """Count the file no more, and tell the history of the ticket."""
    number, size, at = int(file.number or 0), int(file.size), clock.stamp()
    less: list[Any] = [FileUsageItem.file_count.add(-1), FileUsageItem.file_bytes.add(-size)]
    transaction.update(FileUsageItem(file.pk, stored.USAGE), less)
    pk = tenant.repository.key(tickets.ticket, number)
    of_ticket: list[Any] = [SummaryItem.file_count.add(-1), SummaryItem.file_bytes.add(-size)]
    transaction.update(SummaryItem(pk, tickets.SUMMARY), of_ticket, condition=SummaryItem.pk.exists())
    if not is_told or _is_of_note(tenant, number, file):  # of which viewers are told nothing
        return
    transaction.put(
        ActivityItem(
            pk,
            tickets.activity(at, uuid.uuid4().hex[:12]),
            kind="event",
            at=at,
            author=tenant.user_id,
            author_name=tenant.author_name,
            verb=f"removed the file {file.name}",
        )
    )


def _is_of_note(tenant: TenantContext, number: int, file: FileItem) -> bool:
    if file.entry == tickets.DETAIL:
        return False
    entry = tenant.repository.get(ActivityItem, tickets.ticket, number, sort=file.entry)
    if entry is None:
        raise NotFound(_("There is no such file."))
    return bool(entry.kind == "note")
