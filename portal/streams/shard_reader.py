"""Read one shard and hand its records to the handler: one turn at a time, in whichever thread has time for it.

The handler comes first, the position after it: what is read again after a death in between is known to whatever the
handler maintains. Records that the handler defers are kept and come again in front of the next ones; the position
stays below them, and where they become many the shard is not read on.

Source: AWS, "GetRecords" (an empty answer may come in the middle of a shard; iterators last 15 minutes).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from portal import clock
from portal.dynamo import retry
from portal.errors import Unavailable
from portal.schema.registry import Table
from portal.streams import positions, shards, stream_source
from portal.streams.batch import Batch, Handler, Record
from portal.streams.stored import ShardItem

log = logging.getLogger("pooldesk.poller")

DEFERRED_LIMIT: Final = 2000  # records that may wait while the shard is read on,
DEFERRED_BYTES: Final = 8_000_000  # and how large they may be together
# An idle shard's iterator is asked for anew after so long: a local engine that was restarted within the retries of one
# call takes the old one for a place in another run of records, and says nothing.
ITERATOR_SECONDS: Final = 15.0
SAVES_PER_SECOND: Final = 20  # of one poller, however many shards it holds
SAVE_SECONDS: Final = 2.0  # between two saves of one shard, at least
FIRST_SECONDS: Final = 0.1  # of waiting before what failed is tried again, at most; doubled with each failure
LAST_SECONDS: Final = 5.0
LOST: Final = "Records of shard %s are lost: nobody read them within %s hours. %s"
_MUCH: Final = 200  # records in an answer that make it worth while to ask for more before they are handled
_ANSWERS: Final = 8  # in one batch, of at most 1,000 records or 1 MB each
_RETENTION: Final = timedelta(hours=shards.RETENTION_HOURS - 1)


def delay(failures: int) -> float:
    """Return seconds to wait after so many failures in a row: full jitter, so that pollers do not all come at once."""
    return retry.pause(failures, first=FIRST_SECONDS, longest=LAST_SECONDS)


class Metrics:
    """Adds up what a poller has done since its start; `records` counts all that were read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, float] = dict.fromkeys(("records", "batches", "read_errors", "write_errors"), 0)

    def add(self, counts: Mapping[str, float]) -> None:
        with self._lock:
            for name, count in counts.items():
                self._counts[name] = self._counts.get(name, 0) + count

    def read(self) -> dict[str, float]:
        with self._lock:
            return {
                name: round(count, 1) if isinstance(count, float) else count for name, count in self._counts.items()
            }


@dataclass
class ShardReader:
    """A shard that this poller reads. `position` and `checkpoint` are of the last record before the first deferred one.

    `tip_seen_at` is when, by the monotonic clock of this process, a call began that found nothing unread.
    """

    table: Table
    shard: ShardItem
    me: str
    handler: Handler
    metrics: Metrics
    if_lost: str = ""  # what is to be done then, for the log
    position: str = ""
    checkpoint: str = ""
    applied_until: str = ""
    deferred: tuple[Record, ...] = ()
    finished: bool = False  # read to its end, and written so
    lost: bool = False  # another poller reads it
    not_before: float = 0.0  # monotonic
    tip_seen_at: float = float("-inf")
    save_seconds: float = SAVE_SECONDS
    _iterator: str | None = None
    _iterator_at: float = 0.0  # monotonic
    _idle: bool = False
    _newest: Record | None = None  # that was read
    _start_at_oldest: bool = False
    _at_end: bool = False
    _failures: int = 0
    _saved_at: float = 0.0
    _unsaved: bool = False

    def __post_init__(self) -> None:
        self.position, self.checkpoint = self.shard.position or "", self.shard.checkpoint or ""
        self.applied_until = self.shard.applied_until or ""
        self._saved_at = time.monotonic()

    def turn(self) -> bool:
        """Read and handle once, and save when it is due. Return whether there was anything to read."""
        records: tuple[Record, ...] = ()
        try:
            if not (self._at_end or self._has_enough()):
                records = self._read()
        except Unavailable as error:
            self.metrics.add({"read_errors": 1})
            # An engine that was restarted may take an iterator of before for a place in another run of records.
            self._iterator = None
            self._wait("cannot be read", error)
            return False
        try:
            if records or self.deferred:
                self._handle(records)
            if self._at_end and not self.deferred:
                positions.finish(self.shard, position=self.position)
                self.finished = True
                log.info("Shard %s has been read to its end.", self.shard.shard)
            else:
                self.save(at_once=False)
        except Unavailable as error:
            self.metrics.add({"write_errors": 1})
            self._wait("cannot be applied", error)
            return False
        if not self.deferred:
            if self._failures:
                log.info("Shard %s goes on.", self.shard.shard)
            self._failures = 0
        return bool(records)

    def save(self, *, at_once: bool, owner: str | None = None) -> None:
        """Write how far the shard is applied, if it is due or `at_once`. `owner` reads it from then on."""
        if self.lost or not (at_once or (self._unsaved and time.monotonic() - self._saved_at >= self.save_seconds)):
            return
        positions.save(
            self.shard,
            owner=self.me if owner is None else owner,
            position=self.position,
            checkpoint=self.checkpoint,
            applied_until=self.applied_until,
        )
        self._saved_at, self._unsaved = time.monotonic(), False

    def _has_enough(self) -> bool:
        """Tell whether so much waits that reading on would only fill the memory."""
        return len(self.deferred) >= DEFERRED_LIMIT or sum(one.size for one in self.deferred) >= DEFERRED_BYTES

    def _read(self) -> tuple[Record, ...]:
        began = time.monotonic()
        try:
            if self._iterator is None or (self._idle and began - self._iterator_at >= ITERATOR_SECONDS):
                self._iterator_at = began
                self._iterator = shards.iterator(self.shard.stream, self.shard.shard, after=self._last_read())
            answer = _read_on(self._iterator)
        except shards.IteratorExpired:
            self._iterator = None
            return ()
        except shards.Trimmed:
            self._start_over()
            return ()
        self._iterator, self._at_end = answer.next, answer.next is None
        # The end of a closed shard says nothing about now: its children may have records already.
        if not answer.records and not self.deferred and answer.next is not None:
            self.tip_seen_at = began
            self._reach(answer.as_of)
        self._start_at_oldest = False
        self._idle = not answer.records
        if answer.records:
            self._newest = answer.records[-1]
        waiting = {record.sequence for record in self.deferred}
        return tuple(record for record in answer.records if record.sequence not in waiting)

    def _last_read(self) -> str:
        """Return the sequence number to read on behind, as the engine wrote it, "" for the oldest record."""
        if self._start_at_oldest:
            return ""
        return self._newest.checkpoint if self._newest else self.checkpoint

    def _handle(self, records: tuple[Record, ...]) -> None:
        """Hand over what was deferred and what is new. Raises Unavailable, and then all of it is deferred."""
        waiting = self.deferred + records
        self.deferred = waiting
        self.metrics.add({"records": len(records)})
        result = self.handler(stream_source.own(self.table, Batch(self.shard.stream, self.shard.shard, waiting)))
        self.deferred = result.deferred
        self.metrics.add({"batches": 1, **result.counts})
        last = result.last_applied(waiting) if self.deferred else self._newest
        if last is not None:
            self.checkpoint, self.position = last.checkpoint, max(self.position, last.sequence)
            self._unsaved = True
            self._reach(last.created_at)
        if result.deferred:
            self._failures += 1
            self.not_before = time.monotonic() + delay(self._failures)

    def _reach(self, moment: str) -> None:
        """Note that every change in the shard before the moment is applied."""
        if moment > self.applied_until:
            self.applied_until, self._unsaved = moment, True

    def _start_over(self) -> None:
        """Read on at the oldest record, since those behind the checkpoint are not in the stream any more.

        Nothing is lost where the shard was caught up within the retention: then only old news was trimmed.
        """
        now, at = shards.service_time(), self.applied_until
        if self.position and not (at and now and clock.parse(at) >= clock.parse(now) - _RETENTION):
            log.error(LOST, self.shard.shard, shards.RETENTION_HOURS, self.if_lost)
            self.shard.gap_at = clock.stamp()
            positions.note_gap(self.shard)
        self._iterator, self._start_at_oldest = None, True

    def _wait(self, what: str, error: Unavailable) -> None:
        self._failures += 1
        self.not_before = time.monotonic() + delay(self._failures)
        if self._failures == 1:
            log.warning("Shard %s %s: %s It is tried again.", self.shard.shard, what, error.message)


def _read_on(iterator: str) -> shards.ShardAnswer:
    """Read what lies behind the iterator, in one answer made of several where much does.

    A batch costs a write for each item that it changes, however many changes it holds, and most records of an answer
    concern nobody: so whoever is behind catches up sooner, and for less, in large batches.
    """
    first = answer = shards.read(iterator)
    records = [answer.records]
    while len(answer.records) >= _MUCH and answer.next is not None and len(records) < _ANSWERS:
        try:
            answer = shards.read(answer.next)
        except (Unavailable, shards.IteratorExpired, shards.Trimmed):
            break  # the next turn meets it again
        records.append(answer.records)
    return shards.ShardAnswer(tuple(record for some in records for record in some), answer.next, first.as_of)
