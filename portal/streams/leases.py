"""Leases on the shards of a stream: who reads which one, so that any number of pollers on any machines share them.

A poller writes each lease of its own every few seconds, which moves the lease's counter. An observer that sees a
counter stand still for the lease time, by its own monotonic clock, may take the shard; clocks are never compared.
Two pollers may believe for a moment to hold the same shard: the writes of the former one are refused from then on, and
what it still applies to the aggregates counts once all the same. So leases are about work, not about correctness.

A child shard is read when its parent has been read to its end. Shares are fair: a poller takes free shards up to its
part of all of them, and where there are none it takes one at a time from the poller that holds most.

Source: AWS, "Kinesis Client Library concepts" (lease table, counter, stealing); the rules here are written anew.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import Final

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from portal import clock
from portal.errors import ConditionFailed
from portal.schema.tables import Table
from portal.streams import keys, worker
from portal.streams.items import LeaseItem, PulseItem
from portal.streams.shards import Shard

LEASE_SECONDS: Final = 10.0  # without a write before a lease may be taken
FINISHED_DAYS: Final = 3  # a stream knows its shards for one


# --- rules, without the database ---


class Watch:
    """What one observer has seen of the leases, and when, by its own clock."""

    def __init__(self, seconds: float = LEASE_SECONDS, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._now = seconds, now
        self._seen: dict[str, tuple[str, int, float]] = {}  # by shard: owner, counter, since when

    def look(self, leases: Iterable[LeaseItem]) -> None:
        """Take note of the leases as they are stored now."""
        now = self._now()
        for lease in leases:
            stand = (lease.owner, int(lease.counter))
            if self._seen.get(lease.shard, ())[:2] != stand:
                self._seen[lease.shard] = (*stand, now)

    def expired(self, lease: LeaseItem) -> bool:
        """Whether the lease has stood still for the lease time under this observer's eyes."""
        owner, counter, since = self._seen.get(lease.shard, ("", -1, 0.0))
        return (owner, counter) == (lease.owner, lease.counter) and self._now() - since >= self._seconds


def matched(stream_arn: str, shards: Iterable[Shard], stored: Iterable[LeaseItem]) -> list[LeaseItem]:
    """One lease for each shard of the stream, in their order: the stored one, or a new one that nobody holds."""
    known = {lease.shard: lease for lease in stored}
    found = []
    for shard in shards:
        lease = known.get(shard.id) or LeaseItem(stream_arn, shard.id)
        lease.parent = shard.parent
        found.append(lease)
    return found


def readable(leases: Sequence[LeaseItem]) -> list[LeaseItem]:
    """Those that may be read now: unfinished, and the parent finished or gone."""
    unfinished = {lease.shard for lease in leases if not lease.finished}
    return [lease for lease in leases if lease.shard in unfinished and lease.parent not in unfinished]


def choose(leases: Sequence[LeaseItem], *, me: str, expired: Callable[[LeaseItem], bool]) -> list[LeaseItem]:
    """What this poller should take now: free shards up to a fair share, or else one of the most loaded poller's."""
    active = readable(leases)
    free = [lease for lease in active if not lease.owner or (lease.owner != me and expired(lease))]
    held = Counter(lease.owner for lease in active if all(lease is not other for other in free))
    held[me] += 0
    short = ceil(len(active) / len(held)) - held[me]
    if short <= 0:
        return []
    if free:
        return free[:short]
    most, load = max(held.items(), key=lambda pair: (pair[1], pair[0]))
    # Only where it makes the two more even, or one shard would wander to and fro.
    return [lease for lease in active if lease.owner == most][:1] if load >= held[me] + 2 else []


def counted_until(leases: Sequence[LeaseItem]) -> str:
    """The moment before which every change in the stream has been counted, "" where that is not known.

    It is the earliest of all unfinished shards. One that has not been read yet counts by its parent: its own records
    are younger than all of that one's.
    """
    by_shard = {lease.shard: lease for lease in leases}

    def moment(lease: LeaseItem) -> str:
        parent = by_shard.get(lease.parent)
        return lease.caught_up_at or (moment(parent) if parent else "")

    return min((moment(lease) for lease in leases if not lease.finished), default="")


# --- stored leases ---


def stored(stream_arn: str) -> list[LeaseItem]:
    """All leases of a stream, read consistently."""
    return list(worker.items(LeaseItem, stream_arn, consistent=True))


def take(lease: LeaseItem, *, me: str) -> LeaseItem | None:
    """Make the lease mine if it still stands as it was seen. None where somebody was faster."""
    counter = int(lease.counter)
    unchanged = LeaseItem.counter == counter if counter else LeaseItem.shard.does_not_exist()
    actions: list[Action] = [
        LeaseItem.owner.set(me),
        LeaseItem.counter.set(counter + 1),
        LeaseItem.parent.set(lease.parent),
    ]
    try:
        return _change(lease, actions, condition=unchanged)
    except ConditionFailed as failed:
        # A lost answer makes the client send it again, and the second time it meets what the first has written.
        found = LeaseItem.from_raw_data(failed.item) if failed.item else None
        return found if found is not None and found.owner == me else None


def save(lease: LeaseItem, *, me: str, checkpoint: str, caught_up_at: str, finished: bool = False) -> bool:
    """Write how far the shard has been dealt with, and that its reader lives; or that it is finished for ever.

    False where it is no longer mine; then nothing was written. To be called when the aggregates have been written.
    """
    actions: list[Action] = [LeaseItem.checkpoint.set(checkpoint), LeaseItem.caught_up_at.set(caught_up_at)]
    actions += _finished() if finished else [LeaseItem.counter.set(LeaseItem.counter + 1)]
    return _if_mine(lease, me, actions)


def note_gap(lease: LeaseItem, *, me: str) -> bool:
    """Write that records were lost, and that reading starts again at the oldest one. False where it is not mine."""
    return _if_mine(lease, me, [LeaseItem.gap_at.set(clock.stamp()), LeaseItem.checkpoint.set("")])


def abandon(lease: LeaseItem) -> bool:
    """Write that the shard was never read to its end and can no longer be. False where somebody has just moved it."""
    actions: list[Action] = [LeaseItem.gap_at.set(clock.stamp()), *_finished()]
    try:
        _change(lease, actions, condition=LeaseItem.counter == int(lease.counter))
    except ConditionFailed:
        return False
    return True


def release(lease: LeaseItem, *, me: str) -> bool:
    """Let anybody take it at once. False where it is not mine."""
    return _if_mine(lease, me, [LeaseItem.owner.set(""), LeaseItem.counter.set(LeaseItem.counter + 1)])


def write_pulse(table: Table, as_of: str) -> None:
    """Write up to when everything in the table's stream has been counted. It never goes back."""
    condition = PulseItem.as_of.does_not_exist() | (PulseItem.as_of <= as_of)
    actions: list[Action] = [PulseItem.as_of.set(as_of), PulseItem.written_at.set(clock.stamp())]
    try:
        worker.change(PulseItem(table.name, keys.PULSE), actions, condition=condition)
    except ConditionFailed:
        return  # another poller knew more


def _finished() -> list[Action]:
    expires_at = int(time.time()) + FINISHED_DAYS * 86400
    counter = LeaseItem.counter.set(LeaseItem.counter + 1)
    return [LeaseItem.finished.set(1), LeaseItem.owner.set(""), LeaseItem.expires_at.set(expires_at), counter]


def _if_mine(lease: LeaseItem, me: str, actions: list[Action]) -> bool:
    try:
        _change(lease, actions, condition=LeaseItem.owner == me)
    except ConditionFailed:
        return False
    return True


def _change(lease: LeaseItem, actions: list[Action], *, condition: Condition) -> LeaseItem:
    return LeaseItem.from_raw_data(worker.change(lease, actions, condition=condition))
