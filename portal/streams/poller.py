"""Follows the tickets' stream in a process of its own: reads the shards that it holds and applies what they carry.

It never ends because the engine is down: each shard waits with full jitter and goes on with the batch that it had
read. A batch is written to the aggregates first and the checkpoint after it; what is read again after a death in
between is known to the aggregates already (`tickets.counting.fold`).

Sources: AWS, "GetRecords" (an empty answer may come in the middle of a shard; iterators last 15 minutes) and
"Exponential backoff and jitter".
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from portal import clock
from portal.errors import Unavailable
from portal.streams import leases, shards
from portal.streams.items import LeaseItem
from portal.streams.shards import Batch
from tickets.counting import fold
from tickets.ticket.tables import TICKETS

log = logging.getLogger("pooldesk.poller")

IDLE_SECONDS: Final = 0.25  # between reads that bring nothing; AWS Lambda polls as often
LOOK_SECONDS: Final = 2.0  # between looks at the leases, at most
LIST_SECONDS: Final = 10.0  # between looks at the stream's shards; a finished one is a reason to look at once
_MUCH: Final = 200  # records in an answer that make it worth while to ask for more before they are applied
_ANSWERS: Final = 8  # in one batch, of at most 1,000 records or 1 MB each
_PATIENCE: Final = 2  # empty reads in a row that say that a shard has nothing more to tell
_BACKOFF: Final = (0.1, 5.0)  # seconds: the first upper bound, the last one
_RETENTION: Final = timedelta(hours=shards.RETENTION_HOURS - 1)
LOST: Final = "Records of shard %s are lost: nobody read them within %s hours. Run: manage.py rebuild_aggregates"
_jitter = random.SystemRandom()


@dataclass
class Metrics:
    """What the poller has done since its start. `records` counts all that were read, `events` those of summaries."""

    records: int = 0
    events: int = 0
    applied: int = 0
    dead: int = 0
    batches: int = 0
    write_units: float = 0.0
    read_errors: int = 0
    write_errors: int = 0

    def add(self, outcome: fold.Outcome) -> None:
        for name in ("events", "applied", "dead", "write_units"):
            setattr(self, name, getattr(self, name) + getattr(outcome, name))


@dataclass
class Reader:
    """A shard that is held. `position` is the last sequence number that the aggregates know."""

    lease: LeaseItem
    position: str
    caught_up_at: str
    saved_at: float  # monotonic: when the lease was written last
    iterator: str | None = None
    batch: Batch | None = None  # read, and not applied yet
    read_at: float = 0.0
    empty: int = 0  # reads in a row that brought nothing
    failures: int = 0
    not_before: float = 0.0
    unsaved: bool = False  # the aggregates are ahead of the checkpoint
    finished: bool = False


class Poller:
    """One poller. With `taking` off it takes no more shards and keeps those that it has."""

    def __init__(self, *, lease_seconds: float = leases.LEASE_SECONDS) -> None:
        self.me = uuid.uuid4().hex
        self.metrics = Metrics()
        self.taking = True
        self._watch = leases.Watch(lease_seconds)
        self._save_seconds = lease_seconds / 4
        self._look_seconds = min(LOOK_SECONDS, lease_seconds / 4)
        self._arn = ""
        self._shards: list[shards.Shard] = []
        self._known: list[LeaseItem] = []
        self._readers: dict[str, Reader] = {}
        self._listed_at = self._looked_at = float("-inf")
        self._failures = 0
        self._not_before = 0.0

    def run(self, again: Callable[[], bool]) -> None:
        """Follow the stream until `again` says no, then write the checkpoints and release the leases."""
        try:
            while again():
                if not self.step():
                    time.sleep(IDLE_SECONDS)
        finally:
            self.release()

    def step(self) -> bool:
        """Look at the leases if it is time to, and read each shard once. Whether there was anything to read."""
        now = time.monotonic()
        if now - self._looked_at >= self._look_seconds and now >= self._not_before:
            try:
                self._look()
                self._failures = 0
            except Unavailable as error:
                self._failures += 1
                self._not_before = time.monotonic() + _delay(self._failures)
                self.metrics.read_errors += 1
                if self._failures == 1:
                    log.warning("The leases cannot be read: %s", error.message)
        advanced = [self._advance(reader) for reader in list(self._readers.values())]
        return any(advanced)

    def release(self) -> None:
        """Write how far each shard was read and let others have it. Without an answer they take it a little later."""
        try:
            for reader in list(self._readers.values()):
                checkpoint, caught_up_at = reader.position, reader.caught_up_at
                if leases.save(reader.lease, me=self.me, checkpoint=checkpoint, caught_up_at=caught_up_at):
                    leases.release(reader.lease, me=self.me)
            self._beat()
        except Unavailable as error:
            log.warning("The leases could not be released: %s", error.message)
        self._readers.clear()

    # --- how it stands ---

    @property
    def held(self) -> int:
        return len(self._readers)

    def counted_since(self, moment: str, *, own: bool = False) -> bool:
        """Whether everything before the moment has been counted: in the whole stream, or in the shards held here."""
        if own:
            return all(reader.caught_up_at >= moment for reader in self._readers.values())
        if self._known and all(lease.finished for lease in self._known):
            return self._looked_at > 0  # a stream that was switched off
        return leases.counted_until(self._current()) >= moment

    def report(self) -> dict[str, Any]:
        """The metrics, the shards held, and by how many milliseconds the slowest of them lags behind."""
        oldest = min((r.caught_up_at for r in self._readers.values()), default="")
        lag = round((clock.now() - clock.parse(oldest)).total_seconds() * 1000) if oldest else None
        units = round(self.metrics.write_units, 1)
        return vars(self.metrics) | {"write_units": units, "shards": self.held, "lag_ms": lag}

    # --- leases ---

    def _look(self) -> None:
        if time.monotonic() - self._listed_at >= LIST_SECONDS:
            self._list()
        stored = leases.stored(self._arn)
        self._watch.look(stored)
        self._abandon(stored)
        self._known = leases.matched(self._arn, self._shards, stored)
        for lease in self._known:
            if lease.shard in self._readers and lease.owner != self.me:
                self._drop(self._readers[lease.shard])
        if self.taking:
            for lease in leases.choose(self._known, me=self.me, expired=self._watch.expired):
                if taken := leases.take(lease, me=self.me):
                    self._hold(taken)
        for lease in self._known:
            if lease.owner == self.me and lease.shard not in self._readers:
                self._hold(lease)  # a write that seemed to have failed had not
        self._beat()
        self._looked_at = time.monotonic()

    def _list(self) -> None:
        arn = shards.arn(TICKETS)
        if arn != self._arn:  # the first time, or the table was made anew
            self._arn, self._readers = arn, {}
        self._shards = shards.shards(arn)
        self._listed_at = time.monotonic()

    def _abandon(self, stored: list[LeaseItem]) -> None:
        """Close the leases of shards that have left the stream before anybody had read them to their end."""
        listed = {shard.id for shard in self._shards}
        for lease in stored:
            gone = lease.shard not in listed and not lease.finished and self._watch.expired(lease)
            if gone and leases.abandon(lease):
                log.error(LOST, lease.shard, shards.RETENTION_HOURS)

    def _hold(self, lease: LeaseItem) -> None:
        reader = Reader(lease, lease.checkpoint, lease.caught_up_at, saved_at=time.monotonic())
        self._readers[lease.shard] = reader
        log.info("Shard %s is read here from %s on.", lease.shard, lease.checkpoint or "its beginning")

    def _drop(self, reader: Reader) -> None:
        self._readers.pop(reader.lease.shard, None)
        log.info("Shard %s has gone to another poller.", reader.lease.shard)

    def _current(self) -> list[LeaseItem]:
        """The leases with what is known here and not yet written."""
        for lease in self._known:
            if reader := self._readers.get(lease.shard):
                lease.caught_up_at, lease.finished = reader.caught_up_at, int(reader.finished)
        return self._known

    def _beat(self) -> None:
        """Write the pulse, if it is here that the first of the unfinished shards is read: one writer is enough."""
        current = self._current()
        first = next((lease for lease in leases.readable(current)), None)
        as_of = leases.counted_until(current)
        if as_of and first is not None and first.shard in self._readers:
            leases.write_pulse(TICKETS, as_of)

    # --- one shard ---

    def _advance(self, reader: Reader) -> bool:
        """Read and apply once, and keep the lease. Whether there was anything to read."""
        if time.monotonic() < reader.not_before:
            return False
        read = False
        try:
            read = self._read(reader)
        except Unavailable as error:
            self.metrics.read_errors += 1
            # An engine that was restarted may take an iterator of before for a place in another run of records.
            reader.iterator = None
            self._wait(reader, "cannot be read", error)
            return False
        try:
            if reader.batch is not None:
                self._apply(reader, reader.batch)
            self._save_if_due(reader)
        except Unavailable as error:
            self.metrics.write_errors += 1
            self._wait(reader, "cannot be applied", error)
            return False
        if reader.failures:
            log.info("Shard %s goes on.", reader.lease.shard)
        reader.failures = 0
        return read

    def _read(self, reader: Reader) -> bool:
        if reader.batch is not None and time.monotonic() - reader.read_at < fold.HELD_SECONDS - 60:
            return True  # it could not be applied the last time
        reader.batch = None
        if reader.finished:
            return False
        try:
            if reader.iterator is None:
                reader.iterator = shards.iterator(self._arn, reader.lease.shard, after=reader.position)
            moment, reader.read_at = clock.stamp(), time.monotonic()
            reader.batch = _read_on(reader.iterator)
        except shards.IteratorExpired:
            reader.iterator = None
            return False
        except shards.Trimmed:
            self._start_over(reader)
            return False
        if reader.batch.records:
            reader.empty = 0
            return True
        reader.empty += 1
        # The end of a closed shard says nothing about now: its children may have records already.
        if reader.empty >= _PATIENCE and reader.batch.next is not None:
            reader.caught_up_at = max(reader.caught_up_at, moment)
        return False

    def _apply(self, reader: Reader, batch: Batch) -> None:
        if batch.records:
            shard = shards.name_of(self._arn, reader.lease.shard)
            outcome = fold.process(batch.records, shard=shard, read_at=reader.read_at, between=self._keep_all)
            self.metrics.add(outcome)
            self.metrics.batches += 1
            self.metrics.records += len(batch.records)
            last = batch.records[-1]["dynamodb"]
            reader.position = last["SequenceNumber"]
            reader.caught_up_at = max(reader.caught_up_at, _created(last))
            reader.unsaved = reader.unsaved or outcome.events > 0
        reader.batch, reader.iterator = None, batch.next
        reader.finished = batch.next is None

    def _keep_all(self) -> None:
        """Keep the leases while a batch is being applied: one of many tenants may take longer than the lease time, and
        would else be taken, applied and lost again by one poller after the other, without ever getting on."""
        for reader in list(self._readers.values()):
            try:
                self._save_if_due(reader)
            except Unavailable:
                self.metrics.write_errors += 1

    def _save_if_due(self, reader: Reader) -> None:
        due = time.monotonic() - reader.saved_at >= self._save_seconds
        if not (reader.unsaved or reader.finished or due):
            return
        mine = leases.save(
            reader.lease,
            me=self.me,
            checkpoint=reader.position,
            caught_up_at=reader.caught_up_at,
            finished=reader.finished,
        )
        reader.saved_at, reader.unsaved = time.monotonic(), False
        if not mine:
            self._drop(reader)
        elif reader.finished:
            del self._readers[reader.lease.shard]
            self._listed_at = self._looked_at = float("-inf")  # its children may be read now
            log.info("Shard %s has been read to its end.", reader.lease.shard)

    def _start_over(self, reader: Reader) -> None:
        """The records behind the checkpoint are not in the stream any more: read on at the oldest one.

        Nothing is lost where the shard was caught up within the retention: then only old news was trimmed.
        """
        at = reader.caught_up_at
        if reader.position and (not at or clock.parse(at) < clock.now() - _RETENTION):
            log.error(LOST, reader.lease.shard, shards.RETENTION_HOURS)
            if not leases.note_gap(reader.lease, me=self.me):
                self._drop(reader)
        reader.position, reader.iterator = "", None

    def _wait(self, reader: Reader, what: str, error: Unavailable) -> None:
        reader.failures += 1
        reader.not_before = time.monotonic() + _delay(reader.failures)
        if reader.failures == 1:
            log.warning("Shard %s %s: %s It is tried again.", reader.lease.shard, what, error.message)


def _read_on(iterator: str) -> Batch:
    """What lies behind the iterator, in one batch of several answers where much does.

    A batch costs a write for each aggregate item of each tenant in it, however many changes it holds, and most
    records of an answer are none of a summary: so whoever is behind catches up sooner, and for less, in large batches.
    """
    batch = shards.read(iterator)
    answers, size = [batch.records], len(batch.records)
    while size >= _MUCH and batch.next is not None and len(answers) < _ANSWERS:
        try:
            batch = shards.read(batch.next)
        except (Unavailable, shards.IteratorExpired, shards.Trimmed):
            break  # the next read meets it again
        answers.append(batch.records)
        size = len(batch.records)
    return Batch([record for records in answers for record in records], batch.next)


def _delay(failures: int) -> float:
    """Seconds before trying again: full jitter, so that pollers do not come back all at once."""
    first, last = _BACKOFF
    return _jitter.uniform(0, min(last, first * 2 ** min(failures, 16)))


def _created(record: dict[str, Any]) -> str:
    """When a change was made, to the second below, as a stamp: an engine may answer with a number or a datetime."""
    at = record.get("ApproximateCreationDateTime", 0)
    moment = at if isinstance(at, datetime) else datetime.fromtimestamp(float(at), UTC)
    return clock.stamp(moment.replace(microsecond=0))
