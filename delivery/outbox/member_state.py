"""Read in a row what there is to do for each member of `open`, and what was tried. Nothing in here writes."""

from __future__ import annotations

from typing import Any

from delivery.outbox.items import OutboxItem
from portal import clock


def due_at(row: OutboxItem, member: str) -> str:
    """Return when somebody has to look at this member of `open` again."""
    return str(row.attempts[member]["next_at"]) if member in row.attempts else row.sent_until


def due_members(row: OutboxItem, now: str = "") -> set[str]:
    """Return the members of `open` that are to be sent: never sent yet, or due again."""
    now = now or clock.stamp()
    # The clock of the process that wrote a row may be ahead of this one's.
    fresh = row.sent_until == row.timestamp
    return {one for one in row.open or () if (fresh and one not in row.attempts) or due_at(row, one) <= now}


def attempts_of(row: OutboxItem, member: str) -> int:
    """Return how many attempts have failed."""
    return int(attempt(row, member)["n"])


def ended(row: OutboxItem, member: str) -> int:
    """Return how many messages of this member have ended: by a failed attempt, or given back without one."""
    return attempts_of(row, member) + returned(row, member)


def risked(row: OutboxItem, member: str) -> int:
    """Return how many beginnings were counted since the last answer."""
    return int(attempt(row, member).get("risked", 0))


def first_failed_at(row: OutboxItem, member: str) -> str:
    """Return when the first attempt failed, "" where none has."""
    return str(attempt(row, member)["first_at"])


def returned(row: OutboxItem, member: str) -> int:
    """Return how many messages of this member were given back that nobody had begun."""
    return int(attempt(row, member).get("returned", 0))


def attempt(row: OutboxItem, member: str) -> dict[str, Any]:
    """Return what is stored of the attempts at this member, as a map to change and to store again."""
    attempts: dict[str, Any] = row.attempts.as_dict()  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
    return {"n": 0, "first_at": "", "last_at": "", **attempts.get(member, {})}
