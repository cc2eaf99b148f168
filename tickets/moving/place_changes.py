"""Change what the tenant's item says of where its content lies, and note the moves themselves.

Each change demands what was seen, so a process that stood still meanwhile changes nothing. Two that hold the lease of a
move for a moment do no harm: what they write at the destination passes a gate to which only the last one has the key,
and the switch demands what that one has seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo import fencing
from portal.dynamo.placement import POOL, Location, Move, Placement
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Condition, Transaction
from portal.dynamo.tenant_reader import TenantReader
from portal.errors import Conflict, TransactionRefused
from portal.schema import holdings
from portal.web.locales import declare_stored, stored_text
from tenants.audit_trail import browsing, recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy import placements
from tenants.tenancy.stored import TenantItem, TenantStatus
from tickets.jobs.leased_job import JobKind
from tickets.moving import stored
from tickets.moving.stored import MoveItem
from tickets.moving.write_hold import WriteHold
from tickets.ticket.stored import TICKETS

RUNNING, CANCELLING, CANCELLED = "running", "cancelling", "cancelled"
KEPT, DISCARDING, DONE = "kept", "discarding", "done"
ENDED: Final = (CANCELLED, DONE)
FIRST_PHASE: Final = "preparing"
FIRST_OF_DISCARD: Final = "comparing"

_UNFINISHED: Final = (RUNNING, CANCELLING, DISCARDING)
MOVES: Final = JobKind("move", MoveItem, stored.MOVES, "platform", _UNFINISHED, stored.PAST_MOVES)


def keep(transaction: Transaction, item: MoveItem) -> None:
    """Add to the transaction that a move which another one follows stays in the tenant's history."""
    transaction.put(MOVES.kept(item, ended_at=item.ended_at or clock.stamp()))


# --- the tenant's item ---


_COPIED_APART = ("tickets", "ticket counter")  # by number, and in the hold


def follow(tenant_id: str, placement: Placement, *, no_more: bool = False) -> None:
    """Let the streams of a placement be followed from here on, or `no_more`: its tables are gone."""
    if placement != POOL:
        transaction = Transaction()
        (placements.unlist_it if no_more else placements.list_it)(transaction, tenant_id, placement)
        PLATFORM.transact(transaction)


def lies_at(placement: Placement) -> Condition:
    """Return the condition that the content of a tenant as stored lies there."""
    if placement == POOL:
        return TenantItem.placement.does_not_exist()
    return TenantItem.placement == str(placement)


def is_to_stay() -> Condition:
    """Return the condition that there is a whole tenant, and that it is not being purged: a copy would outlive it."""
    stays: Condition = TenantItem.tenant_id.exists() & (TenantItem.status != TenantStatus.PURGING)
    stays &= TenantItem.arriving.does_not_exist()
    return stays


def announce(item: MoveItem) -> None:
    """Say in the tenant's item that it is being moved, unless it says so. Raises Conflict where it cannot be."""
    if (known := placements.stored_location(item.tenant_id).move) is not None and known.id == item.move_id:
        return
    transaction = Transaction()
    move = Move(item.move_id, Placement.parse(item.to_place))
    rests = lies_at(Placement.parse(item.from_place)) & TenantItem.moving_to.does_not_exist() & is_to_stay()
    transaction.update(
        TenantItem(item.tenant_id),
        [TenantItem.move.set(placements.encoded(move))],
        condition=TenantItem.move.does_not_exist() & rests,
    )
    try:
        PLATFORM.transact(transaction)
    except TransactionRefused as refused:
        raise Conflict(
            "The desk is being resharded, moved otherwise or purged. Run it again when that has ended."
        ) from refused


def seen(item: MoveItem) -> Location:
    """Return what the tenant's item says now: one consistent read."""
    return placements.stored_location(item.tenant_id)


def move_of(item: MoveItem, known: Location) -> Move:
    """Return the move as the tenant's item has it. Raises Conflict where it has another one, or none."""
    if known.move is None or known.move.id != item.move_id:
        raise Conflict("Somebody else carries this move out, or has ended it.")
    return known.move


def switch(item: MoveItem, known: Location, *, me: str, values: dict[str, Any]) -> None:
    """Let the content lie at its new place, in one transaction with the audit row.

    Raises TransactionRefused where somebody has broken the hold, or carries the move out in the place of `me`.
    """
    to = Placement.parse(item.to_place)
    there = TenantItem.placement.remove() if to == POOL else TenantItem.placement.set(str(to))
    transaction = Transaction()
    transaction.update(
        TenantItem(item.tenant_id),
        [
            there,
            TenantItem.former_placement.set(item.from_place),
            TenantItem.placement_epoch.set(known.epoch + 1),
            TenantItem.move.remove(),
        ],
        condition=TenantItem.move == placements.encoded(move_of(item, known)),
    )
    mine = (MoveItem.holder == me) & (MoveItem.move_id == item.move_id) & (MoveItem.state == RUNNING)
    transaction.update(MOVES.of(item.tenant_id), MOVES.actions(**values), condition=mine)
    before, after = {"placement": item.from_place}, {"placement": item.to_place}
    recording.commit(transaction, [entry(item, AuditAction.TENANT_MOVED, Actor(origin="move"), before, after)])


def call_off(item: MoveItem, hold: WriteHold) -> None:
    """Let the content stay where it lies. Nothing is held any more, and nobody who knows of the move is refused."""
    known = placements.stored_location(item.tenant_id)
    # The attempt grows first, so that no hold stands; then those pass who know of no move; then nobody knows of one.
    if known.move is None or known.move.id != item.move_id or not placements.break_hold(item.tenant_id, known.move):
        return
    hold.open_counter()
    transaction = Transaction()
    raised = replace(known.move, attempt=known.move.attempt + 1)
    condition = TenantItem.move == placements.encoded(raised)
    transaction.update(TenantItem(item.tenant_id), [TenantItem.move.remove()], condition=condition)
    PLATFORM.transact(transaction)


def other_partitions(tenant_id: str, placement: Placement) -> list[str]:
    """Return the partitions of what is copied beside tickets: what imports remember, and answers of the API."""
    reader = TenantReader(tenant_id, placement)
    copied = [
        holding
        for holding in holdings.holdings()
        if all(table.copied for table in holding.tables)
        and not (holding.tables == (TICKETS,) and (holding.left_out or holding.name in _COPIED_APART))
    ]
    here = (stored for each in copied for stored in each.find(reader) if stored.placement == str(placement))
    found = dict.fromkeys(stored.item[stored.table.hash]["S"] for stored in here)
    return [partition for partition in found if fencing.table_of(partition)]


def _said(placement: str) -> str:
    with suppress(ValueError):
        return stored_text(Placement.parse(placement).in_words)
    return placement


browsing.declare_values(_said, "placement", "copy")
for words in (gettext_noop("in the pool"), gettext_noop("in tables of its own"), gettext_noop("at %(place)s")):
    declare_stored(words)


def entry(
    item: MoveItem, action: AuditAction, by: Actor, before: Mapping[str, object], after: Mapping[str, object]
) -> AuditEntry:
    return AuditEntry(item.tenant_id, action, by, "tenant", item.tenant_id, item.title, before, after)
