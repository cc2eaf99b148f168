"""Change what a row still has to do: sent, answered, failed, given up. Each can be done again without harm.

Every change is bound to what is stored: where another came first, it is made anew on what that one left. A row that has
nothing open leaves the index of pending ones; where its last two destinations answer at the same time, or a process
dies in between, `settle` sees to it.

Cost, for a row of up to 1 KB: 2 write units in the transaction of the change and 1 for the index; `sent` takes 1 and 2
for the index, since the row moves there; `answered` of the last destination 1 and 1. See docs/costs.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from delivery.outbox import keys, member_state
from delivery.outbox.items import OutboxItem
from portal import clock
from portal.dynamo.repository import Action, TenantRepository, Transaction
from portal.dynamo.retry import retrying
from portal.errors import ConditionFailed, TransactionRefused
from portal.isolation import guard
from portal.streams import worker

# Within this time a message that was sent is certainly answered, or its last receive has ended.
CERTAINLY_ANSWERED: Final = timedelta(minutes=15)
_ATTEMPTS: Final = 8

# Sends one update of the row, by whichever role; raises ConditionFailed with the stored item.
_Write = Callable[[OutboxItem, list[Action], Any], OutboxItem]


# --- by the dispatcher ---


def sent(row: OutboxItem, members: Collection[str], *, until: str = "") -> None:
    """Note that these members of `open` are on their way; they are due again at `until`, if nobody has answered."""
    until = until or clock.stamp(clock.now() + CERTAINLY_ANSWERED)

    def actions(stored: OutboxItem) -> list[Action]:
        still = member_state.due_members(stored) & set(members)
        if not still:  # sent by somebody else, or answered
            return []
        tried = {one for one in still if one in stored.attempts}
        fresh = {one for one in stored.open or () if one not in stored.attempts}
        due = {one: member_state.due_at(stored, one) for one in stored.open or ()} | dict.fromkeys(still, until)
        changes: list[Action] = [OutboxItem.due_at.set(min(due.values()))]
        if fresh and fresh <= still:
            changes.append(OutboxItem.sent_until.set(until))
        else:  # others of them still wait, so each of these has a moment of its own
            tried |= still
        for one in sorted(tried):
            attempt = {**member_state.attempt(stored, one), "next_at": until}
            changes.append(OutboxItem.attempts[one].set(attempt))
        return changes

    _write(_by_worker, row, actions)


def put_off(row: OutboxItem, until: str) -> None:
    """Let nobody look at the row before `until`, because its tenant has enough on its way. Its members stay due."""
    _write(_by_worker, row, lambda stored: [OutboxItem.due_at.set(until)] if stored.due_at == row.due_at else [])


def settle(row: OutboxItem) -> None:
    """Bring the index up to what is open: take the row out where nothing is, and else note when it is due."""

    def actions(stored: OutboxItem) -> list[Action]:
        if not stored.open:
            return _closing()
        due = min(member_state.due_at(stored, one) for one in stored.open)
        return [] if due == stored.due_at else [OutboxItem.due_at.set(due)]

    _write(_by_worker, row, actions)


# --- by who delivers, in the tenant's name ---


def answered(repository: TenantRepository, row: OutboxItem, member: str) -> None:
    """Take a member out of `open`, and the row out of the index with the last one."""
    done: Any = OutboxItem.open == {member}
    try:
        if row.open and row.open != {member}:
            left = repository.update(_key_of(row), [OutboxItem.open.delete({member})], condition=_is_pending())
            if left.open:
                return
            done = OutboxItem.open.does_not_exist()
        repository.update(_key_of(row), _closing(), condition=done & _is_pending())
    except ConditionFailed as failed:
        stored = _stored(failed)
        if stored is not None and stored.pending and member in (stored.open or ()):
            answered(repository, stored, member)


def failed(repository: TenantRepository, row: OutboxItem, member: str, *, next_at: str) -> int:
    """Note a failed attempt and when the next is due. Return how many have failed so far."""
    count = 0

    def actions(stored: OutboxItem) -> list[Action]:
        nonlocal count
        if member not in (stored.open or ()):
            return []
        now, before = clock.stamp(), member_state.attempt(stored, member)
        count = int(before["n"]) + 1
        attempt = {"n": count, "first_at": before["first_at"] or now, "last_at": now, "next_at": next_at}
        if returned := member_state.returned(stored, member):
            attempt["returned"] = returned
        due = min([next_at, *(member_state.due_at(stored, one) for one in stored.open if one != member)])
        return [OutboxItem.attempts[member].set(attempt), OutboxItem.due_at.set(due)]

    _write(_by(repository), row, actions)
    return count


def give_back(repository: TenantRepository, row: OutboxItem, member: str) -> None:
    """Let a member of `open` be due at once, whose message ends before any worker has begun it.

    No attempt is counted for it. That it was given back is, so that who sent the message knows that it has ended.
    """

    def actions(stored: OutboxItem) -> list[Action]:
        if member not in (stored.open or ()):
            return []
        now = clock.stamp()
        attempt = {
            **member_state.attempt(stored, member),
            "next_at": now,
            "returned": member_state.returned(stored, member) + 1,
        }
        return [OutboxItem.attempts[member].set(attempt), OutboxItem.due_at.set(now)]

    _write(_by(repository), row, actions)


def risk(repository: TenantRepository, row: OutboxItem, member: str, times: int) -> None:
    """Note how many attempts since the last answer may have killed a worker."""

    def actions(stored: OutboxItem) -> list[Action]:
        attempt = {
            **member_state.attempt(stored, member),
            "next_at": member_state.due_at(stored, member),
            "risked": times,
        }
        return [OutboxItem.attempts[member].set(attempt)] if member in (stored.open or ()) else []

    _write(_by(repository), row, actions)


def hasten(repository: TenantRepository, row: OutboxItem, member: str) -> bool:
    """Let a member of `open` that waits for its next attempt be due at once. Tell whether it is open.

    The attempt replaces the last one in the count, so that impatience does not use up the attempts of three days.
    """
    is_open = False

    def actions(stored: OutboxItem) -> list[Action]:
        nonlocal is_open
        is_open = member in (stored.open or ())
        now = clock.stamp()
        attempt = {
            **member_state.attempt(stored, member),
            "n": max(member_state.attempts_of(stored, member) - 1, 0),
            "next_at": now,
        }
        return [OutboxItem.attempts[member].set(attempt), OutboxItem.due_at.set(now)] if is_open else []

    _write(_by(repository), row, actions)
    return is_open


def dead(repository: TenantRepository, row: OutboxItem, member: str, *, beside: Transaction) -> None:
    """Give a member up, in one transaction with `beside`, which keeps what is known of it.

    Nothing is written where the member is not open any more.
    """
    transaction = beside.copy()
    gone = OutboxItem.open.contains(member)
    transaction.update(_key_of(row), [OutboxItem.open.delete({member})], name=member, condition=gone)
    try:
        retrying(
            lambda: repository.transact(transaction),
            again=lambda error: isinstance(error, TransactionRefused) and error.is_passing(),
            attempts=_ATTEMPTS,
        )
    except TransactionRefused as refused:
        if refused.reason(member) is None:
            raise
        return
    try:
        repository.update(_key_of(row), _closing(), condition=OutboxItem.open.does_not_exist() & _is_pending())
    except ConditionFailed:  # others are open
        return


# --- while an operator lets a tenant's rows wait ---


def hold(row: OutboxItem, *, member: str = "") -> None:
    """Put a row aside, where the dispatcher does not meet it. `member` was on its way, and is due when it is back."""
    due: list[Action] = []
    if member:
        now = clock.stamp()
        due.append(OutboxItem.due_at.set(now))
        if member in row.attempts:
            due.append(OutboxItem.attempts[member].set({**member_state.attempt(row, member), "next_at": now}))
        else:
            due.append(OutboxItem.sent_until.set(now))
    _move(row, keys.held(keys.row_parts(row.event_id)[0]), due)


def release(row: OutboxItem) -> None:
    """Put a row that was set aside back among those that the dispatcher sends when they are due."""
    _move(row, keys.pending_of(keys.row_parts(row.event_id)[1]), [])


def drop(row: OutboxItem) -> None:
    """Close a row that nobody is to get any more."""
    with suppress(ConditionFailed):
        _by_worker(_key_of(row), _closing(), _is_pending())


def _move(row: OutboxItem, partition: str, also: list[Action]) -> None:
    with suppress(ConditionFailed):  # all have answered meanwhile
        _by_worker(_key_of(row), [OutboxItem.pending.set(partition), *also], _is_pending())


# --- by an operator ---


def reopen(transaction: Transaction, row: OutboxItem, member: str, *, name: str) -> None:
    """Add to the transaction that a row waits for a member again, which is due at once with all its attempts before it.

    The transaction is refused where there is no such row, and where the member is open already.
    """
    now = clock.stamp()
    again: list[Action] = [
        OutboxItem.open.add({member}),
        OutboxItem.attempts[member].set({"n": 0, "first_at": "", "last_at": "", "next_at": now}),
        OutboxItem.pending.set(keys.pending_of(keys.row_parts(row.event_id)[1])),
        OutboxItem.due_at.set(now),
    ]
    closed = OutboxItem.event_id.exists() & ~OutboxItem.open.contains(member)
    transaction.update(_key_of(row), again, name=name, condition=closed)


# --- writing ---


def _write(write: _Write, row: OutboxItem, actions: Callable[[OutboxItem], list[Action]]) -> None:
    stored: OutboxItem | None = row
    for _ in range(_ATTEMPTS):
        if stored is None or not stored.pending or not (changes := actions(stored)):
            return
        # With an attempt or an answer between, `open` or `due_at` is another.
        unchanged = OutboxItem.due_at == stored.due_at
        unchanged &= OutboxItem.open == stored.open if stored.open else OutboxItem.open.does_not_exist()
        try:
            write(_key_of(stored), changes, unchanged)
        except ConditionFailed as refused:
            stored = _stored(refused)
        else:
            return


def _by(repository: TenantRepository) -> _Write:
    return lambda item, actions, condition: repository.update(item, actions, condition=condition)


def _by_worker(item: OutboxItem, actions: list[Action], condition: Any) -> OutboxItem:
    with guard.acting_for(keys.row_parts(item.event_id)[0]):
        return worker.change(item, actions, condition=condition)


def _closing() -> list[Action]:
    members = (OutboxItem.open, OutboxItem.pending, OutboxItem.due_at, OutboxItem.private)
    return [member.remove() for member in members]


def _is_pending() -> Any:
    return OutboxItem.pending.exists()


def _key_of(row: OutboxItem) -> OutboxItem:
    return OutboxItem(row.event_id, row.timestamp)


def _stored(failed: ConditionFailed) -> OutboxItem | None:
    return failed.stored(OutboxItem)
