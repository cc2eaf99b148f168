"""Form the keys of what stands in a tenant's collection while its content moves to another place."""

from __future__ import annotations

from portal.schema import keys


def move(tenant_id: str) -> str:
    """Return the partition key of the fences, the gates and the log of a tenant's moves."""
    return keys.collection(tenant_id, "MOVE")


def fence(move_id: str, number: int) -> str:
    """Return the sort key of one of the items that let writes pass at the place that a move leaves, or hold them."""
    return keys.joined("FENCE", move_id, keys.whole_number(number, "a fence"))


def gate(move_id: str, number: int) -> str:
    """Return the sort key of one of the items that let whoever carries a move out write at the place that it goes
    to."""
    return keys.joined("GATE", move_id, keys.whole_number(number, "a gate"))


def change(move_id: str, change_id: str) -> str:
    """Return the sort key of what one transaction has changed while a move was under way."""
    return keys.joined("CHANGE", move_id, change_id)


def changes(move_id: str) -> str:
    """Return the beginning of the sort keys of all that was changed during a move."""
    return keys.beginning("CHANGE", move_id)
