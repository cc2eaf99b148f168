"""Discard what a move has left, once nothing is in it that the new place has not, and nothing of it is to be told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from delivery.outbox.tables import OUTBOX
from portal.dynamo import provisioning
from portal.dynamo.batches import BATCH_WRITE_LIMIT, batch_write
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.repository import TenantRepository, Transaction
from portal.dynamo.tenant_reader import TenantReader
from portal.errors import Conflict
from portal.schema import holdings
from portal.schema.holdings import Holding, Raw, Stage
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction
from tenants.tenancy import placements
from tenants.tenancy.items import TenantItem
from tickets.counting import barrier
from tickets.moving import copy_check, move_notes, place_changes
from tickets.moving.items import MoveItem
from tickets.moving.placed_store import PlacedStore

# In the pool they hold some rows of each tenant, wherever its content lies: mail, and answers about webhooks. All of
# their rows go by TTL.
_OF_ALL: Final = (OUTBOX.name, "Api.Answers")


def discard(
    item: MoveItem,
    *,
    by: Actor,
    me: str,
    advance: Callable[[int], object] = lambda items: None,
    caught_up: Callable[[TenantRepository], object] = barrier.wait_until_applied,
) -> MoveItem:
    """Delete the old copy of a move that was taken by `me`, and say so in the tenant's item and audit trail.

    Raises Conflict where the copy has something that the new place has not, and while it has events to be delivered.
    """
    left = Placement.parse(item.from_place)
    checked = copy_check.check(item.tenant_id, left=left, present=Placement.parse(item.to_place))
    if checked.wrong:
        raise Conflict(move_notes.note(item, me=me, trouble=checked.trouble()).trouble)
    if waiting := _waiting(item.tenant_id, left):
        raise Conflict(f"{waiting:,} events of the old copy are still to be delivered. Discard it after that.")
    item = move_notes.note(item, me=me, state=move_notes.DISCARDING)
    clear(item.tenant_id, left, advance=advance, caught_up=caught_up)
    transaction = Transaction()
    transaction.update(
        TenantItem(item.tenant_id),
        [TenantItem.former_placement.remove()],
        condition=TenantItem.former_placement == item.from_place,
    )
    placements.unlist_it(transaction, item.tenant_id, left)
    mine = (MoveItem.holder == me) & (MoveItem.move_id == item.move_id)
    transaction.update(
        move_notes.of(item.tenant_id), move_notes.actions(state=move_notes.DONE, holder="", trouble=""), condition=mine
    )
    entry = place_changes.entry(item, AuditAction.TENANT_COPY_DISCARDED, by, {"copy": item.from_place}, {})
    recording.commit(transaction, [entry])
    return item


def clear(
    tenant_id: str,
    placement: Placement,
    *,
    advance: Callable[[int], object] = lambda items: None,
    caught_up: Callable[[TenantRepository], object] = barrier.wait_until_applied,
) -> None:
    """Delete all that a tenant has at a placement: its own tables, or its items in those of all.

    The stream of the tickets is waited for in between, because its followers write too.
    """
    if placement != POOL:
        provisioning.delete_placed(tenant_id, placement)
        return
    store, reader = PlacedStore(tenant_id, placement), TenantReader(tenant_id, placement)
    waits = True
    for holding in _placed():
        if waits and holding.stage > Stage.CONTENT:
            caught_up(TenantRepository(tenant_id, placement))
            waits = False
        several: list[tuple[str, Raw]] = []
        for stored in holding.find(reader):
            if stored.table.name not in _OF_ALL:
                several.append((stored.table.full_name, {"DeleteRequest": {"Key": stored.key}}))
            if len(several) == BATCH_WRITE_LIMIT:
                _delete(store, several)
                advance(len(several))
                several = []
        _delete(store, several)


def _placed() -> list[Holding]:
    return [one for one in holdings.holdings() if all(table.placed for table in one.tables)]


def _waiting(tenant_id: str, placement: Placement) -> int:
    """Return how many events of an old copy are not delivered yet."""
    reader = TenantReader(tenant_id, placement)
    rows = (stored for one in _placed() if OUTBOX in one.tables for stored in one.find(reader))
    return sum("pending" in stored.item for stored in rows if stored.placement == str(placement))


def _delete(store: PlacedStore, several: list[tuple[str, Raw]]) -> None:
    with store.connection() as connection:
        batch_write(connection, several)
