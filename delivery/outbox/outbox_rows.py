"""Read and change the rows of the outbox: which members are due, sent, answered, failed or given up.

Every change can be made again without harm: it is bound to what is stored, and made anew on what another change left. A
row that has nothing open leaves the index of pending ones; where its last two destinations answer at the same time, or
a process dies in between, `settle` sees to it. A request may hold the keys of one tenant only, so rows are read tenant
by tenant, all at the same time; those of an outbox of a tenant's own inside of its source.

Cost, for a row of up to 1 KB: 2 write units in the transaction of the change and 1 for the index; `sent` takes 1 and 2
for the index, since the row moves there; `answered` of the last destination 1 and 1. See docs/costs.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from delivery.outbox.publisher import member
from delivery.outbox.stored import OutboxItem, PendingRow, held, outbox_row, pending, pending_of, row_parts
from portal import clock
from portal.dynamo import placement
from portal.dynamo.client import fan_out
from portal.dynamo.library_errors import is_missing
from portal.dynamo.placement import POOL, Placement, at
from portal.dynamo.retry import retrying
from portal.dynamo.store import Action, Store, Transaction
from portal.errors import ConditionFailed, TransactionRefused, Unavailable
from portal.isolation import guard
from portal.streams.worker import WORKER

# --- what is to be done for each member of `open`, and what was tried ---


@dataclass(frozen=True)
class Tried:
    """Hold what was tried for a member of `open`, as stored in `attempts`.

    `n` attempts have failed. `returned` messages were given back that no worker had begun. `risked` beginnings were
    counted since the last answer. Without an entry in `attempts` there is no `next_at`.
    """

    n: int = 0
    first_at: str = ""
    last_at: str = ""
    next_at: str = ""
    returned: int = 0
    risked: int = 0

    @property
    def ended(self) -> int:
        """The number of messages of this member that have ended: by a failed attempt, or given back without one."""
        return self.n + self.returned

    def stored(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value or name not in ("returned", "risked")}


def tried(row: OutboxItem, member: str) -> Tried:
    """Return what was tried for a member of `open`."""
    attempts: dict[str, Any] = row.attempts.as_dict()  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
    return Tried(**attempts.get(member, {}))


def due_at(row: OutboxItem, member: str) -> str:
    """Return when somebody has to look at this member of `open` again."""
    return tried(row, member).next_at or row.sent_until


def due_members(row: OutboxItem, now: str = "") -> set[str]:
    """Return the members of `open` that are to be sent: never sent yet, or due again. Those of a row that is held are
    sent at once, as messages that nobody receives before."""
    now = now or clock.stamp()
    # The clock of the process that wrote a row may be ahead of this one's.
    fresh = row.sent_until == (row.held_until or row.timestamp)
    return {one for one in row.open or () if (fresh and one not in row.attempts) or due_at(row, one) <= now}


@dataclass(frozen=True)
class Work:
    """One event of a row that is to be delivered to one destination.

    `index` is the event's place in the row; `deadline` a moment of this process's monotonic clock, after which nobody
    waits for the outcome. `repository` is the tenant's, in whose outbox the row is.
    """

    repository: Store
    row: OutboxItem
    index: int
    destination: str
    deadline: float = float("inf")

    @property
    def tenant_id(self) -> str:
        return self.repository.tenant_id

    @property
    def member(self) -> str:
        return member(self.index, self.destination)

    @property
    def is_open(self) -> bool:
        return self.member in (self.row.open or ())

    @property
    def tried(self) -> Tried:
        return tried(self.row, self.member)

    @property
    def attempt(self) -> int:
        return self.tried.n + 1


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


def key_of(row: OutboxItem | PendingRow) -> RowKey:
    return RowKey(row.event_id, row.timestamp, here())


def due(shard: int, *, until: str, limit: int) -> list[RowKey]:
    """Return the keys of rows in one shard of the index that are due, the longest due first: one Query."""
    found = WORKER.query(PendingRow, pending(shard), between=(_EARLIEST, until), limit=limit)
    return [key_of(row) for row in found.items]


def read(wanted: Iterable[RowKey]) -> dict[RowKey, OutboxItem]:
    """Return those of these rows that exist, as they are now: a consistent BatchGetItem for each tenant and 100."""
    by_tenant: dict[tuple[str, str], list[RowKey]] = defaultdict(list)
    for key in dict.fromkeys(wanted):
        by_tenant[row_parts(key.event_id)[0], key.placement].append(key)
    found = fan_out([partial(_read, *whose, mine) for whose, mine in by_tenant.items()])
    return {key: row for some in found for key, row in some}


def find(repository: Store, row_id: str, timestamp: str) -> OutboxItem | None:
    """Read a row consistently, None where there is none; also where it was in an outbox of a tenant's own that is no
    more. Raises Unavailable."""
    try:
        return repository.get(OutboxItem, outbox_row, row_id, sort=timestamp, consistent=True)
    except Unavailable as error:
        if repository.placement == POOL or not is_missing(error):
            raise
        return None


def _read(tenant_id: str, where: str, wanted: list[RowKey]) -> list[tuple[RowKey, OutboxItem]]:
    with guard.acting_for(tenant_id), at(Placement.parse(where)):
        rows = WORKER.get_all([(OutboxItem, key.event_id, key.timestamp) for key in wanted], consistent=True)
        return [(key, row) for key, row in zip(wanted, rows, strict=True) if row is not None]


# --- by the dispatcher ---

# Within this time a message that was sent is certainly answered, or its last receive has ended.
CERTAINLY_ANSWERED: Final = timedelta(minutes=15)
_ATTEMPTS: Final = 8


def sent(row: OutboxItem, members: Collection[str], *, until: str = "") -> None:
    """Note that these members of `open` are on their way; they are due again at `until`, if nobody has answered."""
    until = until or clock.stamp(clock.now() + CERTAINLY_ANSWERED)

    def actions(stored: OutboxItem) -> list[Action]:
        still = due_members(stored) & set(members)
        if not still:  # sent by somebody else, or answered
            return []
        with_moment = {one for one in still if one in stored.attempts}
        fresh = {one for one in stored.open or () if one not in stored.attempts}
        due = {one: due_at(stored, one) for one in stored.open or ()} | dict.fromkeys(still, until)
        changes: list[Action] = [OutboxItem.due_at.set(min(due.values()))]
        if fresh and fresh <= still:
            changes.append(OutboxItem.sent_until.set(until))
        else:  # others of them still wait, so each of these has a moment of its own
            with_moment |= still
        return changes + [_note(one, replace(tried(stored, one), next_at=until)) for one in sorted(with_moment)]

    _write(WORKER, row, actions)


def put_off(row: OutboxItem, until: str) -> None:
    """Let nobody look at the row before `until`, because its tenant has enough on its way. Its members stay due."""
    _write(WORKER, row, lambda stored: [OutboxItem.due_at.set(until)] if stored.due_at == row.due_at else [])


def settle(row: OutboxItem) -> None:
    """Bring the index up to what is open: take the row out where nothing is, and else note when it is due."""

    def actions(stored: OutboxItem) -> list[Action]:
        if not stored.open:
            return _closing()
        due = min(due_at(stored, one) for one in stored.open)
        return [] if due == stored.due_at else [OutboxItem.due_at.set(due)]

    _write(WORKER, row, actions)


# --- by who delivers, in the tenant's name ---


def answered(work: Work) -> None:
    """Take the member out of `open`, and the row out of the index with the last one."""
    row, repository = work.row, work.repository
    done: Any = OutboxItem.open == {work.member}
    try:
        if row.open and row.open != {work.member}:
            taken_out = OutboxItem.open.delete({work.member})
            if repository.update(_key_of(row), [taken_out], condition=_is_pending()).open:
                return
            done = OutboxItem.open.does_not_exist()
        repository.update(_key_of(row), _closing(), condition=done & _is_pending())
    except ConditionFailed as failed:
        stored = failed.stored(OutboxItem)
        if stored is not None and stored.pending and (again := replace(work, row=stored)).is_open:
            answered(again)


def failed(work: Work, *, next_at: str) -> None:
    """Note a failed attempt and when the next is due."""

    def change(stored: OutboxItem, before: Tried) -> tuple[Tried, str]:
        now = clock.stamp()
        noted = Tried(before.n + 1, before.first_at or now, now, next_at, before.returned)
        return noted, min([next_at, *(due_at(stored, one) for one in stored.open or () if one != work.member)])

    _change_attempt(work, change)


def give_back(work: Work) -> None:
    """Let a member of `open` be due at once, whose message ends before any worker has begun it.

    No attempt is counted for it. That it was given back is, so that the sender of the message knows that it has ended.
    """
    now = clock.stamp()
    _change_attempt(work, lambda stored, before: (replace(before, next_at=now, returned=before.returned + 1), now))


def risk(work: Work, times: int) -> None:
    """Note how many attempts since the last answer may have killed a worker."""
    _change_attempt(
        work, lambda stored, before: (replace(before, next_at=due_at(stored, work.member), risked=times), "")
    )


def hasten(work: Work) -> bool:
    """Let a member of `open` that waits for its next attempt be due at once. Tell whether it is open.

    The attempt replaces the last one in the count, so that impatience does not use up the attempts of three days.
    """
    now = clock.stamp()
    return _change_attempt(work, lambda stored, before: (replace(before, n=max(before.n - 1, 0), next_at=now), now))


def _change_attempt(work: Work, change: Callable[[OutboxItem, Tried], tuple[Tried, str]]) -> bool:
    """Change what is stored of the attempts at a member, if it is open still; tell whether it is.

    `change` returns what is stored from then on, and when the row is due, "" to leave that.
    """
    is_open = False

    def actions(stored: OutboxItem) -> list[Action]:
        nonlocal is_open
        is_open = work.member in (stored.open or ())
        if not is_open:
            return []
        noted, due = change(stored, tried(stored, work.member))
        return [_note(work.member, noted), *([OutboxItem.due_at.set(due)] if due else [])]

    _write(work.repository, work.row, actions)
    return is_open


def dead(work: Work, *, transaction: Transaction) -> None:
    """Give a member up, in one transaction with `transaction`, which keeps what is known of it.

    Nothing is written where the member is not open any more.
    """
    writing = transaction.copy()
    still_open = OutboxItem.open.contains(work.member)
    writing.update(_key_of(work.row), [OutboxItem.open.delete({work.member})], name=work.member, condition=still_open)
    try:
        retrying(
            lambda: work.repository.transact(writing),
            again=lambda error: isinstance(error, TransactionRefused) and error.is_passing(),
            attempts=_ATTEMPTS,
        )
    except TransactionRefused as refused:
        if refused.reason(work.member) is None:
            raise
        return
    with suppress(ConditionFailed):  # others are open
        work.repository.update(
            _key_of(work.row), _closing(), condition=OutboxItem.open.does_not_exist() & _is_pending()
        )


# --- rows that are held for some seconds, so that their change can be undone ---


def hold_seconds(row: OutboxItem) -> int:
    """Return for how many seconds more nothing of a row may leave, 0 for none."""
    if not row.held_until or row.sealed_at:
        return 0
    return max(0, math.ceil((clock.parse(row.held_until) - clock.now()).total_seconds()))


def seal_held(work: Work) -> bool:
    """Let a held row be withdrawn no more, before anything of it leaves: one write, the first time. Return whether
    there is something to deliver still."""
    if not work.row.held_until or work.row.sealed_at:
        return True
    sealing = OutboxItem.sealed_at.set(OutboxItem.sealed_at | clock.stamp())
    try:
        work.repository.update(_key_of(work.row), [sealing], condition=_is_pending())
    except ConditionFailed:
        return False
    return True


def withdraw(tenant_id: str, row_id: str, timestamp: str, *, transaction: Transaction, name: str) -> None:
    """Add to a transaction that nothing of a held row leaves. It is refused where something has left already."""
    key = OutboxItem(outbox_row(tenant_id, row_id), timestamp)
    still = _is_pending() & OutboxItem.held_until.exists() & OutboxItem.sealed_at.does_not_exist()
    transaction.update(key, _closing(), name=name, condition=still)


# --- while an operator lets a tenant's rows wait ---


def hold(row: OutboxItem, *, member: str = "") -> None:
    """Put a row aside, where the dispatcher does not meet it. `member` was on its way, and is due when it is back."""
    due: list[Action] = []
    if member:
        now = clock.stamp()
        due.append(OutboxItem.due_at.set(now))
        if member in row.attempts:
            due.append(_note(member, replace(tried(row, member), next_at=now)))
        else:
            due.append(OutboxItem.sent_until.set(now))
    _move(row, held(row_parts(row.event_id)[0]), due)


def release(row: OutboxItem | PendingRow) -> None:
    """Put a row that was set aside back among those that the dispatcher sends when they are due."""
    _move(row, pending_of(row_parts(row.event_id)[1]), [])


def _move(row: OutboxItem | PendingRow, partition: str, also: list[Action]) -> None:
    with suppress(ConditionFailed):  # all have answered meanwhile
        _update(WORKER, row, [OutboxItem.pending.set(partition), *also], _is_pending())


def drop(row: OutboxItem | PendingRow) -> None:
    """Close a row that nobody is to get any more."""
    with suppress(ConditionFailed):
        _update(WORKER, row, _closing(), _is_pending())


# --- by an operator ---


def reopen(transaction: Transaction, row: OutboxItem, member: str, *, name: str) -> None:
    """Add to the transaction that a row waits for a member again, which is due at once with all its attempts before it.

    The transaction is refused where there is no such row, and where the member is open already.
    """
    now = clock.stamp()
    again: list[Action] = [
        OutboxItem.open.add({member}),
        _note(member, Tried(next_at=now)),
        OutboxItem.pending.set(pending_of(row_parts(row.event_id)[1])),
        OutboxItem.due_at.set(now),
    ]
    closed = OutboxItem.event_id.exists() & ~OutboxItem.open.contains(member)
    transaction.update(_key_of(row), again, name=name, condition=closed)


# --- writing ---


def _write(store: Store, row: OutboxItem, actions: Callable[[OutboxItem], list[Action]]) -> None:
    """Make a change that depends on what is stored; made anew on what another change has left, _ATTEMPTS times."""
    stored: OutboxItem | None = row
    for _ in range(_ATTEMPTS):
        if stored is None or not stored.pending or not (changes := actions(stored)):
            return
        # With an attempt or an answer between, `open` or `due_at` is another.
        unchanged = OutboxItem.due_at == stored.due_at
        unchanged &= OutboxItem.open == stored.open if stored.open else OutboxItem.open.does_not_exist()
        try:
            _update(store, stored, changes, unchanged)
        except ConditionFailed as refused:
            stored = refused.stored(OutboxItem)
        else:
            return


def _update(store: Store, row: OutboxItem | PendingRow, actions: list[Action], condition: Any) -> None:
    with guard.acting_for(row_parts(row.event_id)[0]):
        store.update(_key_of(row), actions, condition=condition)


def _note(member: str, tried: Tried) -> Action:
    noted: Action = OutboxItem.attempts[member].set(tried.stored())
    return noted


def _closing() -> list[Action]:
    members = (OutboxItem.open, OutboxItem.pending, OutboxItem.due_at, OutboxItem.private)
    return [member.remove() for member in members]


def _is_pending() -> Any:
    return OutboxItem.pending.exists()


def _key_of(row: OutboxItem | PendingRow) -> OutboxItem:
    return OutboxItem(row.event_id, row.timestamp)
