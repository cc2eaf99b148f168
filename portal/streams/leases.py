"""Judge and store leases on the shards of a stream: who reads which one, so that any number of pollers share them.

A poller writes one heartbeat every few seconds, whatever it holds. An observer that sees a heartbeat stand still for
the lease time, by its own monotonic clock, may take that poller's shards; clocks are never compared. Two pollers may
believe for a moment to hold the same shard: the writes of the former one are refused from then on, and what it still
applies counts once all the same. So leases are about work, not about correctness.

A finished shard leaves the partition of the leases for another one. That it is finished is a fact, so whoever has read
it to its end may write it, its lease or not; and it is written before the lease goes, so a shard that was ever read and
has no lease any more is written down as finished.

Source: AWS, "Kinesis Client Library concepts" (lease table, counter, stealing); the rules here are written anew.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from math import ceil
from typing import Final

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from portal import clock
from portal.dynamo.batches import batch_get
from portal.errors import ConditionFailed
from portal.streams import keys, shards, worker
from portal.streams.items import FinishedShardItem, FollowedStreamItem, HeartbeatItem, LeaseItem

LEASE_SECONDS: Final = 10.0  # without a heartbeat before a shard may be taken
KEPT_SECONDS: Final = 3 * 86400  # of a silent poller


# --- rules, without the database ---


class HeartbeatWatch:
    """Remembers when one observer saw each poller's heartbeat move, by its own clock."""

    def __init__(self, seconds: float = LEASE_SECONDS) -> None:
        self._seconds = seconds
        self._seen: dict[str, tuple[int, float]] = {}  # by poller: counter, since when

    def look(self, heartbeats: Iterable[HeartbeatItem], owners: Iterable[str] = ()) -> None:
        """Take note of the heartbeats as they are stored now, and of owners of leases, who may have none."""
        now = time.monotonic()
        counters = dict.fromkeys(owners, -1) | {one.shard: int(one.counter) for one in heartbeats}
        self._seen = {
            poller: seen if (seen := self._seen.get(poller, (-2, now)))[0] == counter else (counter, now)
            for poller, counter in counters.items()
        }

    def expired(self, poller: str) -> bool:
        """Tell whether a poller gave no sign of life for the lease time while this observer looked."""
        return poller in self._seen and time.monotonic() - self._seen[poller][1] >= self._seconds

    def leads(self, poller: str) -> bool:
        """Tell whether this poller lists the shards for all: the first by name of those that live."""
        return all(other >= poller or self.expired(other) for other, (counter, _) in self._seen.items() if counter >= 0)


def choose(leases: Sequence[LeaseItem], *, me: str, expired: Callable[[str], bool]) -> list[LeaseItem]:
    """Return the leases to take now: free ones up to a fair share, or else one of the most loaded poller's.

    `leases` are those of the shards that may be read now.
    """
    free = [lease for lease in leases if not lease.owner or (lease.owner != me and expired(lease.owner))]
    held = Counter(lease.owner for lease in leases if all(lease is not other for other in free))
    held[me] += 0
    short = ceil(len(leases) / len(held)) - held[me]
    if short <= 0:
        return []
    if free:
        return free[:short]
    most, load = max(held.items(), key=lambda pair: (pair[1], pair[0]))
    # Only where it makes the two more even, or one shard would wander to and fro.
    return [lease for lease in leases if lease.owner == most][:1] if load >= held[me] + 2 else []


# --- stored leases ---


def stored(stream_arn: str) -> list[LeaseItem]:
    """Return the leases of all unfinished shards of a stream, read consistently."""
    return list(worker.items(LeaseItem, stream_arn, consistent=True))


def add(stream_arn: str, shard_id: str, *, parent: str, applied_until: str = "") -> None:
    """Make the lease of a shard that nobody has read, if there is none."""
    lease = LeaseItem(stream_arn, shard_id, parent=parent, applied_until=applied_until)
    stored = [a for a in LeaseItem.get_attributes().values() if not (a.is_hash_key or a.is_range_key or a.null)]
    actions: list[Action] = [a.set(getattr(lease, str(a.attr_name))) for a in stored]
    try:
        worker.change(lease, actions, condition=LeaseItem.shard.does_not_exist())
    except ConditionFailed:
        return


def take(lease: LeaseItem, *, me: str) -> LeaseItem | None:
    """Make the lease mine if it still stands as it was seen, and return it; None where somebody was faster."""
    counter = int(lease.counter)
    actions: list[Action] = [
        LeaseItem.owner.set(me),
        LeaseItem.counter.set(counter + 1),
    ]
    try:
        return _change(lease, actions, condition=LeaseItem.counter == counter)
    except ConditionFailed as failed:
        # A lost answer makes the client send it again, and the second time it meets what the first has written.
        now = failed.stored(LeaseItem)
        return now if now is not None and now.owner == me else None


def save(lease: LeaseItem, *, me: str, position: str, checkpoint: str, applied_until: str) -> bool:
    """Write up to where the shard is applied; False where it is no longer mine, and then nothing was written.

    A position that is already further, because somebody else has read the same shard, stays.
    """
    writing = [LeaseItem.applied_until.set(applied_until)] if applied_until else []
    moving = [LeaseItem.position.set(position), LeaseItem.checkpoint.set(checkpoint)] if position else []
    if moving:
        behind = LeaseItem.position.does_not_exist() | (LeaseItem.position <= position)
        try:
            _change(lease, [*writing, *moving, _counter_raised()], condition=(LeaseItem.owner == me) & behind)
        except ConditionFailed as failed:
            now = failed.stored(LeaseItem)
            if now is None or now.owner != me:
                return False
        else:
            return True
    return _if_mine(lease, me, [*writing, _counter_raised()])


def note_gap(lease: LeaseItem, *, me: str) -> bool:
    """Write that records were lost, and that reading goes on at the oldest one. False where it is not mine."""
    return _if_mine(lease, me, [LeaseItem.gap_at.set(clock.stamp()), _counter_raised()])


def release(lease: LeaseItem, *, me: str) -> bool:
    """Let anybody take it at once. False where it is not mine."""
    return _if_mine(lease, me, [LeaseItem.owner.set(""), _counter_raised()])


# --- finished shards ---


def finish(lease: LeaseItem, *, position: str, lost: bool = False) -> None:
    """Write that a closed shard was read to its end, or with `lost` that it can no longer be."""
    gap_at = clock.stamp() if lost else lease.gap_at
    worker.put(FinishedShardItem(keys.finished(lease.stream), lease.shard, position=position, gap_at=gap_at))
    worker.remove(lease)


def finished_among(stream_arn: str, shard_ids: Iterable[str]) -> dict[str, FinishedShardItem]:
    """Return those of these shards that are finished, read consistently, by shard."""
    wanted = [(FinishedShardItem, keys.finished(stream_arn), shard_id) for shard_id in shard_ids]
    if not wanted:
        return {}
    items = batch_get(worker.connection(), wanted, consistent=True)
    return {item.shard: item for item in items if isinstance(item, FinishedShardItem)}


def forget(stream_arn: str, *, listed: Container[str]) -> None:
    """Remove what is kept of finished shards that have left the stream; `listed` are those that have not.

    The stream is asked for each of them once more, because who finds no position asks it as well (`positions.read`).
    """
    for item in worker.items(FinishedShardItem, keys.finished(stream_arn)):
        if item.shard not in listed and shards.has_left(stream_arn, item.shard):
            worker.remove(item)


# --- heartbeats ---


def heartbeats(stream_arn: str) -> list[HeartbeatItem]:
    """Return the heartbeats of all pollers of a stream, read consistently."""
    return list(worker.items(HeartbeatItem, keys.pollers(stream_arn), consistent=True))


def give_heartbeat(stream_arn: str, *, me: str) -> None:
    """Write a sign of life."""
    expires_at = HeartbeatItem.expires_at.set(int(time.time()) + KEPT_SECONDS)
    counter: Action = HeartbeatItem.counter.add(1)
    worker.change(HeartbeatItem(keys.pollers(stream_arn), me), [counter, expires_at])


def leave(stream_arn: str, *, me: str) -> None:
    """Take back one's heartbeat, so that nobody waits for it."""
    worker.remove(HeartbeatItem(keys.pollers(stream_arn), me))


def _counter_raised() -> Action:
    counter: Action = LeaseItem.counter.set(LeaseItem.counter + 1)
    return counter


def _if_mine(lease: LeaseItem, me: str, actions: list[Action]) -> bool:
    try:
        _change(lease, actions, condition=LeaseItem.owner == me)
    except ConditionFailed:
        return False
    return True


def _change(lease: LeaseItem, actions: list[Action], *, condition: Condition) -> LeaseItem:
    return worker.change(lease, actions, condition=condition)


# --- streams that are followed no more ---


def note_stream(name: str, stream_arn: str) -> None:
    """Note under a name of a tenant's own table that the stream with this ARN is followed."""
    worker.put(FollowedStreamItem(name, stream_arn))


def forget_stream(name: str, stream_arn: str) -> None:
    """Remove what is kept of one stream of a tenant's own table that was followed under this name, once it is no more.

    A poller that has not heard of that yet writes some of it again, so each one forgets where it ends.
    """
    for item in list(_under(stream_arn)):
        worker.remove(item)
    worker.remove(FollowedStreamItem(name, stream_arn))


def _under(stream_arn: str) -> Iterator[FollowedStreamItem]:
    for partition in keys.of_stream(stream_arn):
        yield from worker.items(FollowedStreamItem, partition, consistent=True)
