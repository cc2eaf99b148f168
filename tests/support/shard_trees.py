"""A stream whose shards split, roll over and are trimmed when a test says so, read by real pollers.

Local engines have one shard and never split it. The tree has a clock of its own, the service's: every write moves it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from portal import clock
from portal.streams import batch, shards
from portal.streams.batch import Batch, BatchResult
from portal.streams.shards import Listing, Shard, ShardAnswer

ARN = "arn:aws:dynamodb:eu-central-1:000000000000:table/T/stream/2026"
START = datetime(2026, 11, 20, 10, tzinfo=UTC)


@dataclass
class SyntheticShard:
    """One shard with its raw records."""

    id: str
    parent: str
    born: datetime
    records: list[dict[str, Any]] = field(default_factory=list)
    closed: bool = False


class ShardTree:
    """The whole stream. An iterator is "shard:index". `reads` tells what was read, in order, `calls` what was asked."""

    def __init__(self, *roots: str, arn: str = ARN) -> None:
        self.arn = arn
        self.now = START
        self.shards: dict[str, SyntheticShard] = {}
        self.reads: list[str] = []
        self.calls: list[str] = []
        self.trimmed: set[str] = set()  # shards whose checkpoints are too old
        self.raises: list[Exception] = []  # by the next reads
        self.limit = 1000
        self.size = 100  # bytes of each record
        self.made_at: dict[int, datetime] = {}  # of each record, by number
        self.shard_of: dict[int, str] = {}
        self._sequence = 0
        for root in roots or ("a",):
            self.shards[root] = SyntheticShard(root, "", self.now)

    # --- what the service's users do ---

    def pass_time(self, seconds: float = 1) -> None:
        self.now += timedelta(seconds=seconds)

    def write(self, shard_id: str, *, made_at: datetime | None = None) -> int:
        """Add a record; its number."""
        self._sequence += 1
        self.made_at[self._sequence], self.shard_of[self._sequence] = made_at or self.now, shard_id
        self.shards[shard_id].records.append(raw_record(self._sequence, made_at or self.now, size=self.size))
        return self._sequence

    def close(self, shard_id: str, *children: str) -> None:
        """Roll a shard over into one child, or split it into several."""
        self.shards[shard_id].closed = True
        for child in children:
            self.shards[child] = SyntheticShard(child, shard_id, self.now)

    def forget(self, shard_id: str) -> None:
        """Let a shard leave the stream."""
        del self.shards[shard_id]

    def leaves(self) -> list[str]:
        return [shard.id for shard in self.shards.values() if not shard.closed]

    # --- what a poller asks ---

    def service_time(self, *, after: bool = False) -> str:
        return clock.stamp(self.now + (timedelta(seconds=2) if after else timedelta()))

    def listing(self, stream_arn: str) -> Listing:
        self.calls += ["DescribeStream"] * max(1, -(-len(self.shards) // 100))
        as_of = self.service_time()
        return Listing(
            tuple(Shard(s.id, s.parent if s.parent in self.shards else "", s.closed) for s in self.shards.values()),
            as_of,
        )

    def iterator(self, stream_arn: str, shard_id: str, *, after: str = "") -> str:
        self.calls.append("GetShardIterator")
        if after and shard_id in self.trimmed:
            raise shards.Trimmed("gone")
        if shard_id not in self.shards:
            raise shards.Gone("gone")
        sequences = [r["dynamodb"]["SequenceNumber"] for r in self.shards[shard_id].records]
        return f"{shard_id}:{sequences.index(after) + 1 if after else 0}"

    def read(self, iterator: str, *, limit: int = 1000) -> ShardAnswer:
        self.calls.append("GetRecords")
        if self.raises:
            raise self.raises.pop(0)
        shard_id, position = iterator.split(":")
        as_of, shard = self.service_time(), self.shards[shard_id]
        records = shard.records[int(position) :][: self.limit]
        behind = int(position) + len(records)
        self.reads += [f"{shard_id} {int(r['dynamodb']['SequenceNumber'])}" for r in records]
        at_end = shard.closed and behind == len(shard.records)
        return ShardAnswer(tuple(map(batch.parse, records)), None if at_end else f"{shard_id}:{behind}", as_of)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put the tree in the place of the service's stream."""
        monkeypatch.setattr(shards, "arn", lambda table: self.arn)
        for name in ("listing", "iterator", "read", "service_time"):
            monkeypatch.setattr(shards, name, getattr(self, name))


def raw_record(sequence: int, made_at: datetime, *, size: int = 100) -> dict[str, Any]:
    """A record of an item that is no summary, as GetRecords has it."""
    keys = {"pk": {"S": "TENANT#x"}, "sk": {"S": "DETAIL"}}
    data = {"Keys": keys, "SequenceNumber": f"{sequence:021}", "SizeBytes": size}
    data["ApproximateCreationDateTime"] = int(made_at.timestamp())
    return {"eventName": "MODIFY", "dynamodb": data}


class RecordingHandler:
    """Applies records by remembering them; `result` and `raises` say what it answers to the next batches."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.applied: list[int] = []
        self.deferring: set[int] = set()  # numbers of records that must come again, with all behind them
        self.raises: list[Exception] = []

    def __call__(self, batch: Batch) -> BatchResult:
        self.batches.append(batch)
        if self.raises:
            raise self.raises.pop(0)
        deferred = tuple(record for record in batch.records if int(record.sequence) in self.deferring)
        self.applied += [int(r.sequence) for r in batch.records if r not in deferred]
        return BatchResult(deferred)
