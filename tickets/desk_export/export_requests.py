"""Ask for an export of a desk, cancel it, and fetch its file: an owner does it, each with its audit row."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.store import Store, Transaction
from portal.errors import Conflict, NotFound
from portal.schema import keys as schema_keys
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tenants.tenancy.redaction import RedactedTicket
from tickets.attachments import attachments, downloads
from tickets.desk_export import stored
from tickets.desk_export.stored import ExportItem, ExportPartItem
from tickets.jobs.leased_job import JobKind

RUNNING, CANCELLING, CANCELLED, READY = "running", "cancelling", "cancelled", "ready"
KEPT_DAYS: Final = 7
EXPORTS: Final = JobKind("export", ExportItem, stored.EXPORTS, "platform", (RUNNING, CANCELLING))
_CHANGED: Final = gettext_noop("Somebody else has just changed this export. Please look again.")


def last(tenant: TenantContext) -> ExportItem | None:
    """Return the desk's last export, None where it never had one: one consistent read."""
    return EXPORTS.last(tenant.tenant_id)


def ask(tenant: TenantContext, *, by: Actor) -> None:
    """Ask for an export. A file that was ready before is given up. Raises Conflict while another one is being made."""
    former = last(tenant)
    if EXPORTS.goes_on(former):
        raise Conflict(_("An export of this desk is being made already."))
    item = EXPORTS.new(
        tenant, export_id=uuid.uuid4().hex[:16], state=RUNNING, by_id=by.id, by_email=by.email, by_origin=by.origin,
        begun_at=clock.stamp(),
    )  # fmt: skip
    transaction = Transaction()
    unchanged = ExportItem.export_id == former.export_id if former else ExportItem.export_id.does_not_exist()
    transaction.put(item, condition=unchanged)
    _commit(tenant, transaction, AuditAction.EXPORT_ASKED, by)


def cancel(tenant: TenantContext, *, by: Actor) -> None:
    """Have the export that is being made end without a file. Raises Conflict where none is."""
    item = last(tenant)
    if item is None or item.state != RUNNING:
        raise Conflict(_("No export of this desk is being made."))
    transaction = Transaction()
    still = (ExportItem.state == RUNNING) & (ExportItem.export_id == item.export_id)
    transaction.update(EXPORTS.of(tenant.tenant_id), [ExportItem.state.set(CANCELLING)], condition=still)
    _commit(tenant, transaction, AuditAction.EXPORT_CANCELLED, by)


def is_ready(item: ExportItem | None, *, tenant: TenantContext) -> bool:
    """Tell whether an export's file can be fetched: its time is not over, and the desk lies where it lay."""
    return (
        item is not None
        and item.state == READY
        and clock.stamp() < item.expires_at
        and item.placement == str(tenant.repository.placement)
    )


def fetch(tenant: TenantContext, *, by: Actor) -> tuple[ExportItem, Iterator[bytes]]:
    """Return the export and the bytes of its file, read part by part as they are sent. Raises NotFound."""
    item = last(tenant)
    if item is None or not is_ready(item, tenant=tenant):
        raise NotFound(_("This export has expired, or was replaced. You can export the desk again."))
    _commit(tenant, Transaction(), AuditAction.EXPORT_DOWNLOADED, by)
    return item, _content(tenant.repository, item)


def require_files(tenant: TenantContext, part: str) -> None:
    """Raise NotFound where the desk has no files in a part of this name: one BatchGetItem."""
    if part not in {one.name for one in attachments.parts(tenant) if one.count}:
        raise NotFound(_("There are no files in this part."))


def fetch_files(tenant: TenantContext, part: str, *, by: Actor) -> Iterator[bytes]:
    """Return a zip of the contents of the files in one part of the desk's, made as it is sent, and record that."""
    _commit(tenant, Transaction(), AuditAction.EXPORT_DOWNLOADED, by)
    return downloads.zipped(tenant, downloads.files_of_desk(tenant, part), by_ticket=True)


def _content(repository: Store, item: ExportItem) -> Iterator[bytes]:
    for number in range(1, int(item.parts) + 1):
        found = repository.get(ExportPartItem, schema_keys.tenant, sort=stored.part(item.file, number))
        if found is None or found.content is None:  # replaced meanwhile: the download breaks off
            raise NotFound(_("A part of this export is gone."))
        yield bytes(found.content)


def _commit(tenant: TenantContext, transaction: Transaction, action: AuditAction, by: Actor) -> None:
    member_changes.require_role(transaction, tenant)
    entry = AuditEntry(tenant.tenant_id, action, by, "export", "tenant", tenant.name)
    recording.commit(transaction, [entry], refused=Conflict(_(_CHANGED)))


def redact(tenant: TenantContext, ticket: RedactedTicket) -> int:
    """Empty the files of exports, in which the words of a ticket are packed, and end an export that is being made.

    Returns how many parts were emptied. Costs a read of all parts that have not expired, and an UpdateItem for each.
    """
    item, ended = last(tenant), {RUNNING: CANCELLING, READY: CANCELLED}
    if item is not None and item.state in ended:
        transaction = Transaction()
        still = (ExportItem.state == item.state) & (ExportItem.export_id == item.export_id)
        action = ExportItem.state.set(ended[item.state])
        transaction.update(EXPORTS.of(tenant.tenant_id), [action], condition=still)
        recording.commit(transaction, [], refused=Conflict(_(_CHANGED)))
    parts = tenant.repository.query_all(ExportPartItem, schema_keys.tenant)
    emptied = [part for part in parts if part.content is not None]
    for part in emptied:
        tenant.repository.update(ExportPartItem(part.tenant_id, part.part), [ExportPartItem.content.remove()])
    return len(emptied)
