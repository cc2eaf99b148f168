"""Keep the note of each tenant that is being brought in: find it, and give its import up."""

from __future__ import annotations

from typing import Any

from portal.dynamo import platform
from portal.dynamo.repository import Transaction
from portal.errors import Conflict, TransactionRefused
from tenants.tenancy import tenant_directory
from tenants.tenancy.items import TenantItem
from tenants.transfer.items import ArrivingItem
from tenants.transfer.keys import ARRIVING


def all_under_way() -> list[ArrivingItem]:
    """Return the notes of all imports that have not ended, by slug: one Query."""
    return [ArrivingItem.from_raw_data(raw) for raw in platform.query_all(ArrivingItem.table, ARRIVING)]


def under_way(slug: str) -> ArrivingItem | None:
    """Return the note of the import by which a tenant arrives under this slug, None where there is none."""
    note: ArrivingItem | None = platform.get_all([(ArrivingItem, ARRIVING, slug)], consistent=True)[0]
    return note


def give_up(note: ArrivingItem) -> TenantItem | None:
    """Let nothing more be brought in by an import, and return the tenant as far as it is here.

    Where nothing of it is here yet, the note is gone with that, the short name is free, and None is returned. Else the
    note goes with the tenant. Raises Conflict where the import has ended meanwhile.
    """
    stored = tenant_directory.get_many([note.tenant_id])
    transaction = Transaction()
    if stored:
        transaction.update(note, [ArrivingItem.abandoned.set(True)], condition=ArrivingItem.name.exists())
    else:
        transaction.delete(note, condition=ArrivingItem.name.exists())
        transaction.check(TenantItem(note.tenant_id), TenantItem.tenant_id.does_not_exist())
    try:
        platform.transact(transaction)
    except TransactionRefused as refused:
        raise Conflict(f"The import of {note.name} has just gone on or ended. Please check and try again.") from refused
    return stored[0] if stored else None


def goes_on() -> Any:
    """Return the condition that an import is under way still, and not given up."""
    return ArrivingItem.name.exists() & ArrivingItem.abandoned.does_not_exist()
