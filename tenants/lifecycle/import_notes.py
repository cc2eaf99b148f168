"""Keep the note of each tenant that is being brought in: find it, and give its import up."""

from __future__ import annotations

import uuid
from typing import Any, Final

from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Action, Transaction
from portal.errors import ConditionFailed, Conflict, TransactionRefused
from tenants.lifecycle.stored import ARRIVING, ArrivingItem
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem

ENDED: Final = "This import was given up or has ended meanwhile, or another run goes on with it."


def all_under_way() -> list[ArrivingItem]:
    """Return the notes of all imports that have not ended, by slug: one Query."""
    return [*PLATFORM.query_all(ArrivingItem, ARRIVING, consistent=True)]


def under_way(slug: str) -> ArrivingItem | None:
    """Return the note of the import by which a tenant arrives under this slug, None where there is none."""
    return PLATFORM.get_many(ArrivingItem, [(ARRIVING, (), slug)])[0]


def begin(note: ArrivingItem) -> None:
    """Write the note of an import that begins, with an id of its own. Raises TransactionRefused where there is one."""
    note.import_id, note.run = uuid.uuid4().hex, uuid.uuid4().hex
    transaction = Transaction()
    transaction.put(note, condition=ArrivingItem.name.does_not_exist())
    PLATFORM.transact(transaction)


def take_over(note: ArrivingItem) -> None:
    """Go on with an import that has been begun: whoever was at it so far sends nothing more. Raises Conflict.

    A tenant with its id that it has not made itself is somebody's desk by now, and nothing is written over it.
    """
    stored = tenant_directory.get_many([note.tenant_id])
    if stored and not is_of(stored[0], note):
        raise Conflict(
            "A desk with the id of this import is here, and this import has not made it. Nothing was written. "
            f"Give this one up: import_tenant --abandon {note.name}."
        )
    import_id, run = note.import_id or uuid.uuid4().hex, uuid.uuid4().hex  # a former version gave imports no id
    actions: list[Action] = [ArrivingItem.import_id.set(import_id), ArrivingItem.run.set(run)]
    try:
        PLATFORM.update(note, actions, condition=_is(note) & ArrivingItem.abandoned.does_not_exist())
    except ConditionFailed as failed:
        raise Conflict(ENDED) from failed
    note.import_id, note.run = import_id, run


def is_of(tenant: TenantItem, note: ArrivingItem) -> bool:
    """Tell whether a tenant as stored is arriving by this import."""
    return bool(note.import_id) and tenant.arriving == note.import_id


def look(note: ArrivingItem) -> None:
    """Raise Conflict unless this run is still the one that brings the tenant in: one consistent read.

    The note goes in the transaction in which the tenant has arrived, so while it is there nobody works in the tenant.
    """
    stored = under_way(note.name)
    if stored is None or stored.abandoned or (stored.import_id, stored.run) != (note.import_id, note.run):
        raise Conflict(ENDED)


def goes_on(note: ArrivingItem) -> Any:
    """Return the condition that an import is under way still, not given up, and in the hands of this run."""
    return _is(note) & (ArrivingItem.run == note.run) & ArrivingItem.abandoned.does_not_exist()


def _is(note: ArrivingItem) -> Any:
    """Return the condition that the note is of this import, and not of a later one under the same short name."""
    if note.import_id:
        return ArrivingItem.import_id == note.import_id
    return ArrivingItem.name.exists() & ArrivingItem.import_id.does_not_exist()


def give_up(note: ArrivingItem) -> TenantItem | None:
    """Let nothing more be brought in by an import, and return the tenant as far as the import has made it.

    Where it has made none yet, the note is gone with that, the short name is free, and None is returned; a desk that
    has its id by another import is left alone. Else the note goes with the tenant. Raises Conflict where the import
    has gone on or ended meanwhile.
    """
    own = [tenant for tenant in tenant_directory.get_many([note.tenant_id]) if is_of(tenant, note)]
    transaction = Transaction()
    if own:
        transaction.update(note, [ArrivingItem.abandoned.set(True)], condition=_is(note))
        transaction.check(own[0], TenantItem.arriving == note.import_id)
    else:
        transaction.delete(note, condition=_is(note))
        others = TenantItem.arriving.does_not_exist() | (TenantItem.arriving != note.import_id)
        transaction.check(TenantItem(note.tenant_id), others)
    try:
        PLATFORM.transact(transaction)
    except TransactionRefused as refused:
        raise Conflict(f"The import of {note.name} has just gone on or ended. Please check and try again.") from refused
    return own[0] if own else None


def is_nobodys(tenant_id: str) -> bool:
    """Tell whether neither a tenant nor an import has this id."""
    return not tenant_directory.get_many([tenant_id]) and all(n.tenant_id != tenant_id for n in all_under_way())
