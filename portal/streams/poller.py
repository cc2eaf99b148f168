"""Follow the stream of a table in a process of its own: one of any number of pollers reads it, the others stand by.

Each poller gives a sign of life. The first by name of those that live follows the stream; names begin with the moment
of the start, so it is the oldest. When its sign stands still for the lease time, the next one goes on. Two pollers may
follow for a moment: positions are facts, and what is applied twice counts once, so this costs work and nothing else.

One thread looks after the shards; a bounded number of others read them, each shard in one of them at a time. The poller
never ends because the engine is down: each shard waits with full jitter and goes on with what it had read.

A poller follows the stream of the source inside of which it works: that of the table of all, or a tenant's own.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, Final

from portal import clock
from portal.errors import Unavailable
from portal.schema.registry import Table
from portal.streams import positions, shards, stream_source, watermark
from portal.streams.batch import Handler
from portal.streams.lease import SignWatch
from portal.streams.shard_lister import ShardLister
from portal.streams.shard_reader import SAVE_SECONDS, SAVES_PER_SECOND, Metrics, ShardReader, delay
from portal.streams.stored import ShardItem

log = logging.getLogger("pooldesk.poller")

IDLE_SECONDS: Final = 0.25  # between reads of a shard that bring nothing, at least; AWS Lambda polls as often
IDLE_READS_PER_SECOND: Final = 200  # of one poller, however many quiet shards it holds: each read is paid for
LEASE_SECONDS: Final = 10.0  # without a sign of life before another poller goes on
LOOK_SECONDS: Final = 2.0  # between looks at the signs of life and the shards, at most
THREADS: Final = 8  # that read shards at the same time


class Poller:
    """One poller of the stream of `table`. With `taking` off it begins no more shards and keeps those that it has.

    `if_lost` says in the log what is to be done where records are lost: only who handles them knows.
    """

    def __init__(
        self,
        table: Table,
        handler: Handler,
        *,
        if_lost: str = "",
        lease_seconds: float = LEASE_SECONDS,
        threads: int = THREADS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.me = f"{time.time_ns():x}-{uuid.uuid4().hex}"
        self.metrics = Metrics()
        self.taking = True
        self._table, self._handler, self._if_lost = table, handler, if_lost
        self._watch = SignWatch(lease_seconds)
        self._rest_seconds = idle_seconds
        self._lease_seconds, self._look_seconds = lease_seconds, min(LOOK_SECONDS, lease_seconds / 4)
        self._arn = ""
        self._lister = ShardLister("", lease_seconds=lease_seconds, if_lost=if_lost)  # of no stream yet
        self._known: list[ShardItem] = []
        self._readers: dict[str, ShardReader] = {}
        self._turns: dict[str, Future[bool]] = {}
        self._idle_until: dict[str, float] = {}
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="shard")
        self._looked_at = self._not_before = float("-inf")
        self._failures = 0
        self._lists = False
        self._asked_at, self._asked_as_of = float("-inf"), ""

    def run(self, again: Callable[[], bool]) -> None:
        """Follow the stream until `again` says no, then write the positions and let another one follow."""
        try:
            while again():
                self._look_if_due()
                self._begin_turns(idle_too=False)
                self._collect(wait(self._turns.values(), timeout=self._pause(), return_when=FIRST_COMPLETED).done)
                if not self._turns:
                    time.sleep(self._pause())
        finally:
            self.release()

    def step(self) -> bool:
        """Look at the shards if it is time to, and read each shard once. Return whether there was anything to read."""
        self._look_if_due()
        self._begin_turns(idle_too=True)
        return self._collect(wait(self._turns.values()).done)

    def release(self) -> None:
        """Write how far each shard was read and let others go on. Without an answer they do that a little later."""
        self._collect(wait(self._turns.values()).done)
        try:
            for reader in self._readers.values():
                reader.save(at_once=True, owner="")
            if self._arn:
                if self.leads:
                    self._write_watermark()
                positions.leave(self._arn, me=self.me)
        except Unavailable as error:
            log.warning("How far the shards were read could not be written: %s", error.message)
        self._readers.clear()
        self._pool.shutdown()

    # --- how it stands ---

    @property
    def stream_arn(self) -> str:
        """Return the ARN of the stream that is followed, "" before it is known."""
        return self._arn

    @property
    def held(self) -> int:
        return len(self._readers)

    @property
    def leads(self) -> bool:
        """Tell whether this is the one poller that follows the stream now."""
        return self._watch.is_first(self.me)

    def caught_up(self, since: float) -> bool:
        """Tell whether the whole stream is applied up to a moment of this process's monotonic clock.

        The shards were listed after it; those that are held here were found empty after it; those of other pollers are
        applied until a moment of the service's clock that lies after it.
        """
        lister = self._lister
        self._lists = True
        if lister.listing is None or lister.listed_at < since:
            return False
        if self._asked_at != since:
            self._asked_at, self._asked_as_of = since, shards.service_time(after=True)
        listed = {shard.id for shard in lister.listing.shards} | {shard.shard for shard in self._known}
        others = {shard.shard: shard.applied_until or "" for shard in self._known}
        return all(
            self._readers[shard_id].tip_seen_at >= since
            if shard_id in self._readers
            else others.get(shard_id, "") >= self._asked_as_of
            for shard_id in listed - lister.finished
        )

    def drained(self, since: float) -> bool:
        """Tell whether the shards that are held here were found empty after a moment of the monotonic clock."""
        return all(reader.tip_seen_at >= since for reader in self._readers.values())

    def report(self) -> dict[str, Any]:
        """Return the metrics, the shards held, and by how many milliseconds the slowest of them lags behind."""
        oldest = min((reader.applied_until for reader in [*self._readers.values()]), default="")
        now = shards.service_time()
        lag = max(0, round((clock.parse(now) - clock.parse(oldest)).total_seconds() * 1000)) if oldest and now else None
        return {**self.metrics.read(), "shards": self.held, "lag_ms": lag}

    # --- who follows ---

    def _look_if_due(self) -> None:
        now = time.monotonic()
        if now - self._looked_at < self._look_seconds or now < self._not_before:
            return
        try:
            self._look()
            self._failures = 0
        except Unavailable as error:
            self._failures += 1
            self._not_before = time.monotonic() + delay(self._failures)
            self.metrics.add({"read_errors": 1})
            if self._failures == 1:
                log.warning("The shards cannot be looked up: %s", error.message)

    def _look(self) -> None:
        # The first time, or the table may have been made anew: the shards of its former stream are all finished.
        if not self._known or self._failures:
            self._follow(shards.arn(self._table))
        positions.give_heartbeat(self._arn, me=self.me)
        self._watch.look(positions.heartbeats(self._arn))
        leads, stored = self.leads, positions.unfinished(self._arn)
        if (leads or self._lists) and self._lister.list_if_due(stored):
            stored = positions.unfinished(self._arn)
        self._known = stored
        if not leads:
            for shard_id in list(self._readers):
                self._drop(shard_id)
        elif self.taking:
            self._begin()
        if leads:
            self._write_watermark()
        self._looked_at = time.monotonic()

    def _follow(self, stream_arn: str) -> None:
        if stream_arn != self._arn:
            source = stream_source.current()
            if source != stream_source.POOLED:
                positions.note_stream(source.name(self._table), stream_arn)
            self._arn, self._readers = stream_arn, {}
            self._lister = ShardLister(stream_arn, lease_seconds=self._lease_seconds, if_lost=self._if_lost)

    def _begin(self) -> None:
        """Begin to read the shards that may be read and are not read yet."""
        new = [shard for shard in self._known if shard.shard not in self._readers]
        # A shard may have been stored again by a poller that had not heard yet that it is finished.
        self._lister.look_up([shard.shard for shard in new] + [shard.parent for shard in new if shard.parent])
        for shard in self._lister.readable(self._known):
            if shard.shard not in self._readers:
                reader = ShardReader(self._table, shard, self.me, self._handler, self.metrics, self._if_lost)
                reader.save(at_once=True)  # so that people see who reads it
                self._readers[shard.shard] = reader
                log.info("Shard %s is read here from %s on.", shard.shard, shard.checkpoint or "its beginning")
        for reader in self._readers.values():
            reader.save_seconds = max(SAVE_SECONDS, len(self._readers) / SAVES_PER_SECOND)

    def _drop(self, shard_id: str) -> None:
        self._readers.pop(shard_id).lost = True
        log.info("Shard %s has gone to another poller.", shard_id)

    def _write_watermark(self) -> None:
        for shard in self._known:
            if reader := self._readers.get(shard.shard):
                shard.applied_until = reader.applied_until
        if as_of := self._lister.complete_until(self._known):
            watermark.write(self._table, as_of)

    # --- shards ---

    def _begin_turns(self, *, idle_too: bool) -> None:
        now = time.monotonic()
        for shard_id, reader in self._readers.items():
            rests = not idle_too and now < self._idle_until.get(shard_id, 0)
            if shard_id not in self._turns and now >= reader.not_before and not rests:
                self._turns[shard_id] = self._pool.submit(copy_context().run, reader.turn)

    def _collect(self, done: set[Future[bool]]) -> bool:
        """Take the results of turns that have ended. Return whether any of them had anything to read."""
        read = False
        for shard_id in [shard_id for shard_id, turn in self._turns.items() if turn in done]:
            had_records = self._turns.pop(shard_id).result()
            self._idle_until[shard_id] = 0 if had_records else time.monotonic() + self._idle_seconds()
            read = read or had_records
            reader = self._readers.get(shard_id)
            if reader is not None and reader.finished:
                del self._readers[shard_id]
                self._lister.finished.add(shard_id)
                self._looked_at = float("-inf")  # its children may be read now
        return read

    def _idle_seconds(self) -> float:
        return max(self._rest_seconds, len(self._readers) / IDLE_READS_PER_SECOND)

    def _pause(self) -> float:
        """Return seconds until something may be due."""
        now = time.monotonic()
        due = [
            max(reader.not_before, self._idle_until.get(s, 0))
            for s, reader in self._readers.items()
            if s not in self._turns
        ]
        return min(IDLE_SECONDS, max(0.01, min(due, default=now + IDLE_SECONDS) - now))
