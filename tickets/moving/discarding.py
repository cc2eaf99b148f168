"""Discard what a move has left, once nothing is in it that the new place has not, and nothing of it is to be told."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from delivery.outbox.stored import OUTBOX
from portal.dynamo import fencing, provisioning
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.store import BATCH_WRITE_LIMIT, Store, Transaction, chunked
from portal.dynamo.tenant_reader import TenantReader, lifecycle_store
from portal.errors import Conflict
from portal.plain_text import amount
from portal.schema import holdings
from portal.schema.holdings import Holding, Stage, StoredItem
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction
from tenants.tenancy import placements
from tenants.tenancy.stored import TenantItem
from tickets.counting import stream_barrier
from tickets.jobs.leased_job import LeasedJob
from tickets.moving import copy_check, place_changes
from tickets.moving.stored import MoveItem

# In the pool this holds some rows of each tenant, wherever its content lies: answers about webhooks, which no move
# copies. So does the outbox, for mail. All of these rows go by TTL.
_OF_ALL: Final = "Api.Answers"
_OF_CONTENT: Final = "ticket"  # how rows of an outbox begin that are about one ticket, or several


class CopyDiscard(LeasedJob[MoveItem]):
    """Deletes the old copy of a move, and says so in the tenant's item and audit trail.

    Raises Conflict, and leaves the copy as it is, where it has something that the new place has not, and while it has
    events to be delivered. `advance` gets the number of tickets that were compared, then that of deleted items.
    """

    kind = place_changes.MOVES

    def __init__(self, item: MoveItem, *, caught_up: Callable[[Store], object] | None = None, **how: Any) -> None:
        super().__init__(item, **how)
        self._caught_up = caught_up or partial(stream_barrier.wait_until_applied, say=lambda _: self._look_up())
        self._left, self._present = Placement.parse(item.from_place), Placement.parse(item.to_place)

    def _carry_out(self) -> None:
        self._go_through(("comparing", "clearing"))

    def _comparing(self) -> None:
        tenant_id = self.item.tenant_id
        if self.item.unchecked or self.item.lost:
            return
        checked = copy_check.check(tenant_id, left=self._left, present=self._present, advance=self._advanced)
        trouble = checked.trouble()
        if trouble:
            trouble += f" To delete it in spite of that: place_tenant {self.item.slug} --discard --unchecked."
        if not trouble and (waiting := _waiting(tenant_id, self._left)):
            events = amount(waiting, "event of the old copy is", "events of the old copy are")
            trouble = f"{events} still to be delivered. Discard it after that."
        if trouble:
            self._note(state=place_changes.KEPT, trouble=trouble)
            raise Conflict(trouble)

    def _clearing(self) -> None:
        if not self.item.lost:
            clear(self.item.tenant_id, self._left, advance=self._advanced, caught_up=self._caught_up)
        transaction = Transaction()
        transaction.update(
            TenantItem(self.item.tenant_id),
            [TenantItem.former_placement.remove()],
            condition=TenantItem.former_placement == self.item.from_place,
        )
        placements.unlist_it(transaction, self.item.tenant_id, self._left)
        mine = (MoveItem.holder == self.me) & (MoveItem.move_id == self.item.move_id)
        done = self.kind.actions(state=place_changes.DONE, holder="")
        transaction.update(self.kind.of(self.item.tenant_id), done, condition=mine)
        copy = {"copy": self.item.from_place}
        entry = place_changes.entry(self.item, AuditAction.TENANT_COPY_DISCARDED, Actor(origin="move"), copy, {})
        recording.commit(transaction, [entry])

    def _advanced(self, steps: int) -> None:
        self._advance(steps)
        self._look_up()


def clear(
    tenant_id: str,
    placement: Placement,
    *,
    advance: Callable[[int], object] = lambda items: None,
    caught_up: Callable[[Store], object] = stream_barrier.wait_until_applied,
) -> None:
    """Delete all that a tenant has at a placement: its own tables, or its items in those of all.

    The stream of the tickets is waited for in between, because its followers write too.
    """
    if placement != POOL:
        provisioning.delete_placed(tenant_id, placement)
        return
    store, reader = lifecycle_store(tenant_id, placement), TenantReader(tenant_id, placement)
    waits = True
    for holding in _placed():
        if waits and holding.stage > Stage.CONTENT:
            caught_up(Store("tenant", tenant_id, placement))
            waits = False
        for several in chunked((one for one in holding.find(reader) if not _stays(one)), BATCH_WRITE_LIMIT):
            store.write_raw([(stored.table, {"DeleteRequest": {"Key": stored.key}}) for stored in several])
            advance(len(several))


def _stays(stored: StoredItem) -> bool:
    """Tell whether a row in the tables of all would be there as well if the tickets had never been."""
    if stored.table == OUTBOX:
        return not stored.item["subject"]["S"].startswith(_OF_CONTENT)
    return stored.table.name == _OF_ALL and not fencing.is_copied(stored.table, stored.item[stored.table.hash]["S"])


def _placed() -> list[Holding]:
    return [one for one in holdings.holdings() if all(table.placed for table in one.tables)]


def _waiting(tenant_id: str, placement: Placement) -> int:
    """Return how many events of an old copy are not delivered yet."""
    reader = TenantReader(tenant_id, placement)
    rows = (stored for one in _placed() if OUTBOX in one.tables for stored in one.find(reader))
    return sum("pending" in stored.item for stored in rows if stored.placement == str(placement))
