"""Note who carries a move out and how far it is, so that anybody can go on with it.

A holder gives signs of life by a counter, as with reshardings. Two who hold it for a moment do no harm: what they write
at the destination passes a gate that only the last one has the key to, and the switch demands what that one has seen.
"""

from __future__ import annotations

from typing import Any, Final

from portal import clock
from portal.dynamo import platform
from portal.dynamo.client import Item
from portal.dynamo.repository import Action, Condition, Transaction
from portal.errors import ConditionFailed, Conflict
from tenants.tenancy.tables import DIRECTORY
from tickets.moving import keys
from tickets.moving.items import MoveItem

RUNNING, CANCELLING, CANCELLED = "running", "cancelling", "cancelled"
KEPT, DISCARDING, DONE = "kept", "discarding", "done"
UNFINISHED: Final = (RUNNING, CANCELLING, DISCARDING)  # somebody has to carry it on
ENDED: Final = (CANCELLED, DONE)
FIRST_PHASE: Final = "preparing"


class TakenOver(Conflict):
    """Somebody else carries the move out."""

    def __init__(self) -> None:
        super().__init__("Somebody else carries this move out.")


def last(tenant_id: str) -> MoveItem | None:
    """Return the tenant's last move as it is now, None where it never had one."""
    key = {DIRECTORY.hash: {"S": keys.MOVES}, str(DIRECTORY.range): {"S": tenant_id}}
    request = {"TableName": DIRECTORY.full_name, "Key": key, "ConsistentRead": True}
    raw = platform.connection().dispatch("GetItem", request).get("Item")
    return MoveItem.from_raw_data(raw) if raw else None


def all_last() -> list[MoveItem]:
    """Return the last move of each tenant that had one, newest first: one Query."""
    found = map(MoveItem.from_raw_data, platform.query_all(DIRECTORY, keys.MOVES))
    return sorted(found, key=lambda item: item.begun_at, reverse=True)


def history(tenant_id: str, *, limit: int) -> list[MoveItem]:
    """Return the moves of a tenant that were followed by others, newest first."""
    page = platform.query(DIRECTORY, keys.history(tenant_id), descending=True, limit=limit)
    return [MoveItem.from_raw_data(raw) for raw in page.items]


def take(item: MoveItem, *, me: str) -> MoveItem:
    """Become the holder of what stands as it was seen. Raises TakenOver where somebody was faster."""
    seen = (MoveItem.holder == item.holder) & (MoveItem.counter == int(item.counter))
    return _changed(item, [MoveItem.holder.set(me)], seen, me)


def note(item: MoveItem, *, me: str, **values: Any) -> MoveItem:
    """Give a sign of life, and write how far it is; return the item as it is then. Raises TakenOver for no holder."""
    return _changed(item, actions(**values), MoveItem.holder == me, me)


def actions(**values: Any) -> list[Action]:
    """Return the actions that set these attributes."""
    return [getattr(MoveItem, name).set(value) for name, value in values.items()]


def keep(transaction: Transaction, item: MoveItem) -> None:
    """Add to the transaction that a move which another one follows stays in the tenant's history."""
    kept = MoveItem.from_raw_data(item.serialize())
    kept.kind, kept.name = keys.history(item.tenant_id), item.begun_at
    kept.ended_at = kept.ended_at or clock.stamp()
    transaction.put(kept)


def of(tenant_id: str) -> MoveItem:
    """Return the key of a tenant's last move, for an update."""
    return MoveItem(keys.MOVES, tenant_id)


def _changed(item: MoveItem, some: list[Action], condition: Condition, me: str) -> MoveItem:
    condition &= MoveItem.move_id == item.move_id
    sign = MoveItem.counter.set(MoveItem.counter + 1)
    try:
        return MoveItem.from_raw_data(_update(of(item.tenant_id), [*some, sign], condition))
    except ConditionFailed as failed:
        # A lost answer is sent again, and the second time it meets what the first has written.
        now = MoveItem.from_raw_data(failed.item) if failed.item else None
        if now is not None and now.holder == me and now.move_id == item.move_id:
            return now
        raise TakenOver from failed


def _update(item: Item, some: list[Action], condition: Condition) -> dict[str, Any]:
    request = item.get_update_kwargs_from_instance(actions=some, condition=condition)
    request |= {"ReturnValuesOnConditionCheckFailure": "ALL_OLD", "ReturnValues": "ALL_NEW"}
    answer: dict[str, Any] = platform.connection().dispatch("UpdateItem", request)
    stored: dict[str, Any] = answer["Attributes"]
    return stored
