"""Note what a scanner has found in a file: in the file's own item and where the file is listed, together.

Amazon GuardDuty tells its finding by a tag of the object. It is looked at when somebody asks for a file that waits, and
before a letter takes the file along: until then nobody can have it, so nothing is gained by looking earlier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.utils.translation import gettext as _

from portal.dynamo.retry import retrying
from portal.dynamo.store import Transaction
from portal.errors import Conflict, NotFound, TransactionRefused
from portal.objects.object_store import ObjectStore
from tenants.tenancy.context import TenantContext
from tickets.attachments import scanning, stored
from tickets.attachments.stored import FileItem
from tickets.ticket import stored as tickets
from tickets.ticket.stored import ActivityItem, DetailItem

_ATTEMPTS: Final = 4


def look(tenant: TenantContext, file: FileItem) -> str:
    """Return the state of a file that waits: what the scanner has found meanwhile, which is noted, or that it waits.

    One request to the bucket, and where there is a finding one read and one transaction. Raises Conflict where others
    change the comment at the same moment, again and again.
    """
    try:
        found = scanning.finding(
            ObjectStore("tenant", tenant.tenant_id).tags(stored.object_key(tenant.tenant_id, stored.object_of(file)))
        )
    except NotFound:
        return file.state
    if found is None:
        return file.state
    note(tenant, file, found)
    return found


def note(
    tenant: TenantContext, file: FileItem, state: str, more: Callable[[Transaction], None] = lambda transaction: None
) -> None:
    """Write the state of a file of a ticket, where it is listed as well, and with `more` what belongs to it. Raises
    Conflict."""

    def attempt() -> None:
        transaction = Transaction()
        item = FileItem(file.pk, file.sk)
        transaction.update(item, [FileItem.state.set(state)], condition=FileItem.state == file.state)
        model: Any = DetailItem if file.entry == tickets.DETAIL else ActivityItem
        entry = tenant.repository.get(model, tickets.ticket, int(file.number or 0), sort=file.entry, consistent=True)
        if entry is not None and entry.files:
            known = list(entry.files)
            transaction.update(
                model(entry.pk, entry.sk),
                [model.files.set([stored.listed(one, state=state) if one.id == file.id else one for one in known])],
                condition=model.files == known,
            )
        more(transaction)
        tenant.repository.transact(transaction)

    retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        given_up=lambda: Conflict(_("This file is being changed by others at this moment. Try again.")),
    )
