"""Let a move know of each change that is made while it is under way, and let no change pass that it could miss.

Each transaction on a table that moves gets two members more: a check that a fence is open, and an entry that names the
collections that it changes. The entry is written with the change or not at all, so once all fences are closed one
consistent Query tells what is left to be copied, exactly. There are some fences, because transactions that meet on one
item refuse each other.
"""

from __future__ import annotations

import random
import time
import uuid
from typing import Any, Final

from portal.dynamo import retry
from portal.dynamo.placement import BeingMoved, Location, LocationSource, Move
from portal.dynamo.transaction import TRANSACTION_LIMIT, Transaction
from portal.errors import TRANSACTION_CONFLICT, TransactionRefused
from portal.schema import keys, registry
from portal.schema.registry import Table

HOLD_SECONDS: Final = 1.5  # after which a write that waits breaks the hold: the process that holds is slow or dead
WAIT_SECONDS: Final = 4.0  # after which a write that waits is given up
_LOOK_SECONDS: Final = 0.05
FENCES: Final = 6  # to be closed while writes wait, and to be met by two writes at once
MEMBERS: Final = 2  # that a transaction gets
CLOSED: Final = "closed"  # the attempt of the move that holds writes, in a fence and in a counter
CHANGED: Final = "changed"  # the partition keys that an entry of the log names
_FENCE: Final = "the fence of a move"


def table() -> Table:
    """Return the table in which fences and the log of a move are: its declaration says so."""
    return next(table for table in registry.tables() if table.fences)


def table_of(partition: str) -> Table | None:
    """Return the table whose collection of this partition key a move copies, None where it copies none."""
    return next((table for table in registry.tables() if is_copied(table, partition)), None)


def fenced(tenant_id: str, transaction: Transaction, move: Move) -> Transaction:
    """Return the transaction as it is sent while this move is under way. Raises BeingMoved where it is too long."""
    changed = sorted(_changed(transaction))
    if not changed:
        return transaction
    if len(transaction) + MEMBERS > TRANSACTION_LIMIT:
        raise BeingMoved
    sent, moved = transaction.copy(), table()
    pk, sk = moved.hash, str(moved.range)
    key = {pk: {"S": move_key(tenant_id)}}
    fence = {sk: {"S": fence_key(move.id, random.randrange(FENCES))}}  # noqa: S311  # it spreads, and hides nothing
    entry = {sk: {"S": change_key(move.id, uuid.uuid4().hex)}, CHANGED: {"SS": changed}}
    check = {
        "TableName": moved.full_name,
        "Key": key | fence,
        "ConditionExpression": f"attribute_exists(#h) AND {_OPEN}",
        "ExpressionAttributeNames": {"#h": pk, "#c": CLOSED},
        "ExpressionAttributeValues": {":attempt": {"N": str(move.attempt)}},
    }
    sent.add("ConditionCheck", check, name=_FENCE)
    sent.add("Put", {"TableName": moved.full_name, "Item": key | entry})
    return sent


_OPEN: Final = "(attribute_not_exists(#c) OR #c < :attempt)"


def open_counter(request: dict[str, Any], move: Move | None) -> dict[str, Any]:
    """Return an update of a counter that is refused while the counter is closed. That costs nothing, so each has it."""
    attempt = {"N": str(move.attempt if move else 0)}
    return {
        **request,
        "ConditionExpression": _OPEN,
        "ExpressionAttributeNames": {**request["ExpressionAttributeNames"], "#c": CLOSED},
        "ExpressionAttributeValues": {**request["ExpressionAttributeValues"], ":attempt": attempt},
    }


def is_held(refused: TransactionRefused) -> bool:
    """Tell whether a fence refused the transaction because it is closed."""
    reason = _reason(refused)
    return reason is not None and reason.code != TRANSACTION_CONFLICT


def is_crowded(refused: TransactionRefused) -> bool:
    """Tell whether nothing but a fence refused the transaction, because another one was at it."""
    reason = _reason(refused)
    others = [r for name, r in zip(refused.names, refused.reasons, strict=False) if r and name != _FENCE]
    return reason is not None and reason.code == TRANSACTION_CONFLICT and not others


def unfenced(refused: TransactionRefused) -> TransactionRefused:
    """Return the refusal as it concerns the transaction that was to be sent."""
    if _FENCE not in refused.names:
        return refused
    end = refused.names.index(_FENCE)
    return TransactionRefused(refused.reasons[:end], refused.message, names=refused.names[:end])


def _reason(refused: TransactionRefused) -> Any:
    return refused.reason(_FENCE) if _FENCE in refused.names else None


def _changed(transaction: Transaction) -> set[str]:
    """Return the partition keys of what a transaction changes and a move copies."""
    moved = {table.full_name: table for table in registry.tables() if table.copied}
    changed = set()
    for member in transaction.members:
        ((kind, body),) = member.items()
        if kind != "ConditionCheck" and (of := moved.get(body["TableName"])):
            key = (body["Item"] if kind == "Put" else body["Key"])[of.hash]["S"]
            changed |= {key} if is_copied(of, key) else set()
    return changed


def is_copied(of: Table, partition: str) -> bool:
    """Tell whether a move copies the collection of this partition key of a table."""
    parts = keys.collection_parts(partition) if of.copied else None
    return parts is not None and parts[1] in of.copied


def wait_while_held(source: LocationSource, seen: Location, *, since: float) -> None:
    """Return once the content lies elsewhere than was seen, or nothing holds writes there any more.

    Raises BeingMoved WAIT_SECONDS after the write began, at `since` of the monotonic clock.
    """
    while source.again() == seen:
        waited = time.monotonic() - since
        if waited > WAIT_SECONDS:
            raise BeingMoved
        if waited > HOLD_SECONDS:
            source.break_hold(seen)
        retry.sleep(_LOOK_SECONDS)


# --- keys of what stands in a tenant's collection while its content moves ---


def move_key(tenant_id: str) -> str:
    """Return the partition key of the fences, the gates and the log of a tenant's moves."""
    return keys.collection(tenant_id, "MOVE")


def fence_key(move_id: str, number: int) -> str:
    """Return the sort key of one of the items that let writes pass at the place that a move leaves, or hold them."""
    return keys.joined("FENCE", move_id, keys.whole_number(number, "a fence"))


def gate_key(move_id: str, number: int) -> str:
    """Return the sort key of one of the items that let whoever carries a move out write at the place that it goes
    to."""
    return keys.joined("GATE", move_id, keys.whole_number(number, "a gate"))


def change_key(move_id: str, change_id: str) -> str:
    """Return the sort key of what one transaction has changed while a move was under way."""
    return keys.joined("CHANGE", move_id, change_id)


def changes_key(move_id: str) -> str:
    """Return the beginning of the sort keys of all that was changed during a move."""
    return keys.beginning("CHANGE", move_id)
