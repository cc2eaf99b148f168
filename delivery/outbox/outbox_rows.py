"""Read and change the rows of the outbox: which members are due, sent, answered, failed or given up.

Every change can be made again without harm. It is bound to what is stored: where another came first, it is made anew on
what that one left. A row that has nothing open leaves the index of pending ones; where its last two destinations answer
at the same time, or a process dies in between, `settle` sees to it.

The dispatcher reads rows from the images of the stream, from the index of what is due, and by their keys. A request may
hold the keys of one tenant only, so rows are read tenant by tenant, all at the same time. Rows of tenants that have an
outbox of their own are read inside of its source, and their keys say where that is.

Cost, for a row of up to 1 KB: 2 write units in the transaction of the change and 1 for the index; `sent` takes 1 and 2
for the index, since the row moves there; `answered` of the last destination 1 and 1. See docs/costs.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from delivery.outbox.stored import PENDING, OutboxItem, held, pending, pending_of, row_parts
from portal import clock
from portal.dynamo import placement
from portal.dynamo.client import fan_out
from portal.dynamo.models import ByIndex
from portal.dynamo.placement import POOL, Placement, at
from portal.dynamo.retry import retrying
from portal.dynamo.store import Action, Store, Transaction
from portal.errors import ConditionFailed, TransactionRefused
from portal.isolation import guard
from portal.streams.worker import WORKER

# --- what is to be done for each member of `open`, and what was tried ---


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


# --- reading ---

_EARLIEST: Final = "0"  # sorts before every stamp


class RowKey(NamedTuple):
    """The key of a row, and in whose outbox it stands: a placement as text, "" for that of all."""

    event_id: str
    timestamp: str
    placement: str = ""


def here() -> str:
    """Return the placement inside of which this is called, as it stands in a key and in a message."""
    now = placement.current()
    return "" if now == POOL else str(now)


def of_image(image: Mapping[str, Any] | None) -> OutboxItem | None:
    """Return the row in a typed image of the stream, None where there is no image."""
    if not image:
        return None
    typed = dict(image)
    typed["attempts"] = typed.get("attempts") or {"M": {}}  # DynamoDB Local writes {} for an empty map
    return OutboxItem.from_raw_data(typed)


def key_of(row: OutboxItem) -> RowKey:
    """Return the key of a row that was read here."""
    return RowKey(row.event_id, row.timestamp, here())


def due(shard: int, *, until: str, limit: int) -> list[RowKey]:
    """Return the keys of rows in one shard of the index that are due, the longest due first: one Query."""
    rows = WORKER.query(ByIndex(OutboxItem, PENDING), pending(shard), between=(_EARLIEST, until), limit=limit).items
    return [key_of(row) for row in rows]


def read(wanted: Iterable[RowKey]) -> dict[RowKey, OutboxItem]:
    """Return those of these rows that exist, as they are now: a consistent BatchGetItem for each tenant and 100."""
    by_tenant: dict[tuple[str, str], list[RowKey]] = defaultdict(list)
    for key in dict.fromkeys(wanted):
        by_tenant[row_parts(key.event_id)[0], key.placement].append(key)
    found = fan_out([partial(_read, *whose, mine) for whose, mine in by_tenant.items()])
    return {key: row for some in found for key, row in some}


def _read(tenant_id: str, where: str, wanted: list[RowKey]) -> list[tuple[RowKey, OutboxItem]]:
    with guard.acting_for(tenant_id), at(Placement.parse(where)):
        rows = WORKER.get_all([(OutboxItem, key.event_id, key.timestamp) for key in wanted], consistent=True)
        return [(key, row) for key, row in zip(wanted, rows, strict=True) if row is not None]


# --- by the dispatcher ---

# Within this time a message that was sent is certainly answered, or its last receive has ended.
CERTAINLY_ANSWERED: Final = timedelta(minutes=15)
_ATTEMPTS: Final = 8

# Sends one update of the row, by whichever role; raises ConditionFailed with the stored item.
_Write = Callable[[OutboxItem, list[Action], Any], OutboxItem]


def sent(row: OutboxItem, members: Collection[str], *, until: str = "") -> None:
    """Note that these members of `open` are on their way; they are due again at `until`, if nobody has answered."""
    until = until or clock.stamp(clock.now() + CERTAINLY_ANSWERED)

    def actions(stored: OutboxItem) -> list[Action]:
        still = due_members(stored) & set(members)
        if not still:  # sent by somebody else, or answered
            return []
        tried = {one for one in still if one in stored.attempts}
        fresh = {one for one in stored.open or () if one not in stored.attempts}
        due = {one: due_at(stored, one) for one in stored.open or ()} | dict.fromkeys(still, until)
        changes: list[Action] = [OutboxItem.due_at.set(min(due.values()))]
        if fresh and fresh <= still:
            changes.append(OutboxItem.sent_until.set(until))
        else:  # others of them still wait, so each of these has a moment of its own
            tried |= still
        for one in sorted(tried):
            changes.append(OutboxItem.attempts[one].set({**attempt(stored, one), "next_at": until}))
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
        due = min(due_at(stored, one) for one in stored.open)
        return [] if due == stored.due_at else [OutboxItem.due_at.set(due)]

    _write(_by_worker, row, actions)


# --- by who delivers, in the tenant's name ---


def answered(repository: Store, row: OutboxItem, member: str) -> None:
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


def failed(repository: Store, row: OutboxItem, member: str, *, next_at: str) -> None:
    """Note a failed attempt and when the next is due."""

    def change(stored: OutboxItem, before: dict[str, Any]) -> tuple[dict[str, Any], str]:
        now = clock.stamp()
        noted = {"n": int(before["n"]) + 1, "first_at": before["first_at"] or now, "last_at": now, "next_at": next_at}
        if "returned" in before:
            noted["returned"] = before["returned"]
        return noted, min([next_at, *(due_at(stored, one) for one in stored.open or () if one != member)])

    _change_attempt(repository, row, member, change)


def give_back(repository: Store, row: OutboxItem, member: str) -> None:
    """Let a member of `open` be due at once, whose message ends before any worker has begun it.

    No attempt is counted for it. That it was given back is, so that the sender of the message knows that it has ended.
    """
    now = clock.stamp()
    _change_attempt(
        repository,
        row,
        member,
        lambda stored, before: ({**before, "next_at": now, "returned": returned(stored, member) + 1}, now),
    )


def risk(repository: Store, row: OutboxItem, member: str, times: int) -> None:
    """Note how many attempts since the last answer may have killed a worker."""
    _change_attempt(
        repository,
        row,
        member,
        lambda stored, before: ({**before, "next_at": due_at(stored, member), "risked": times}, ""),
    )


def hasten(repository: Store, row: OutboxItem, member: str) -> bool:
    """Let a member of `open` that waits for its next attempt be due at once. Tell whether it is open.

    The attempt replaces the last one in the count, so that impatience does not use up the attempts of three days.
    """
    now = clock.stamp()
    return _change_attempt(
        repository,
        row,
        member,
        lambda stored, before: ({**before, "n": max(int(before["n"]) - 1, 0), "next_at": now}, now),
    )


def _change_attempt(
    repository: Store,
    row: OutboxItem,
    member: str,
    change: Callable[[OutboxItem, dict[str, Any]], tuple[dict[str, Any], str]],
) -> bool:
    """Change what is stored of the attempts at a member, if it is open still; tell whether it is.

    `change` returns what is stored from then on, and when the row is due, "" to leave that.
    """
    is_open = False

    def actions(stored: OutboxItem) -> list[Action]:
        nonlocal is_open
        is_open = member in (stored.open or ())
        if not is_open:
            return []
        noted, due = change(stored, attempt(stored, member))
        return [OutboxItem.attempts[member].set(noted), *([OutboxItem.due_at.set(due)] if due else [])]

    _write(lambda item, some, condition: repository.update(item, some, condition=condition), row, actions)
    return is_open


def dead(repository: Store, row: OutboxItem, member: str, *, transaction: Transaction) -> None:
    """Give a member up, in one transaction with `transaction`, which keeps what is known of it.

    Nothing is written where the member is not open any more.
    """
    writing = transaction.copy()
    gone = OutboxItem.open.contains(member)
    writing.update(_key_of(row), [OutboxItem.open.delete({member})], name=member, condition=gone)
    try:
        retrying(
            lambda: repository.transact(writing),
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
            due.append(OutboxItem.attempts[member].set({**attempt(row, member), "next_at": now}))
        else:
            due.append(OutboxItem.sent_until.set(now))
    _move(row, held(row_parts(row.event_id)[0]), due)


def release(row: OutboxItem) -> None:
    """Put a row that was set aside back among those that the dispatcher sends when they are due."""
    _move(row, pending_of(row_parts(row.event_id)[1]), [])


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
        OutboxItem.pending.set(pending_of(row_parts(row.event_id)[1])),
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


def _by_worker(item: OutboxItem, actions: list[Action], condition: Any) -> OutboxItem:
    with guard.acting_for(row_parts(item.event_id)[0]):
        return WORKER.update(item, actions, condition=condition)


def _closing() -> list[Action]:
    members = (OutboxItem.open, OutboxItem.pending, OutboxItem.due_at, OutboxItem.private)
    return [member.remove() for member in members]


def _is_pending() -> Any:
    return OutboxItem.pending.exists()


def _key_of(row: OutboxItem) -> OutboxItem:
    return OutboxItem(row.event_id, row.timestamp)


def _stored(failed: ConditionFailed) -> OutboxItem | None:
    return failed.stored(OutboxItem)
