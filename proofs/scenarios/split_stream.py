"""Split, merge and roll over the shards of a stream while it is read: local engines do not, and AWS does when it likes.

The records of the engine's single shard are presented as a tree of shards. Each takes the records between two sequence
numbers whose partition keys have certain hashes, so the records of one item stay in order. A shard ends with the record
of a *cut*, a marker that goes through the stream like every change; those that are opened begin behind it. The process
that cuts says so in a journal before it writes the marker, and where the marker lies as soon as it has read it. A
reader that reaches a cut with an unknown place comes again. So all processes agree about the tree, whatever they know.

A merge is told as AWS tells it: of the shards that end, the new one names a single parent.
"""

from __future__ import annotations

import random
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from portal.dynamo import client
from portal.dynamo.store import Store
from portal.errors import PortalError, Unavailable
from portal.streams import positions, shards
from portal.streams import stored as stream_keys
from portal.streams.batch import Record, padded
from portal.streams.poller import LOOK_SECONDS
from portal.streams.shards import Listing, Shard, ShardAnswer
from portal.streams.stored import FinishedShardItem, ShardItem
from portal.streams.worker import WORKER
from proofs.forked import Journal, lines
from tickets.counting import stored
from tickets.counting.stored import MarkerItem
from tickets.ticket.stored import TICKETS

HASHES: Final = 256
_KINDS: Final = ("split", "split", "rollover", "merge")
_PATIENCE: Final = 180.0  # seconds for a marker to come by
_KEPT_SECONDS: Final = 86400

_listing, _iterator, _read = shards.listing, shards.iterator, shards.read


class CutFailed(PortalError):
    """A shard could not be split, merged or rolled over: nothing is said about the aggregates."""

    code = "cut_failed"


@dataclass(frozen=True)
class PresentedShard:
    """The records after one sequence number and up to another, "" for none, with hashes from `low` to below `high`."""

    id: str
    parent: str
    low: int
    high: int
    after: str = ""  # as the engine wrote it
    until: str = ""

    def holds(self, record: Record) -> bool:
        known = padded(self.after) < record.sequence and (not self.until or record.sequence <= padded(self.until))
        return known and self.low <= zlib.crc32(str(record.keys.get("pk", "")).encode()) % HASHES < self.high

    def ended_by(self, sequence: str) -> bool:
        return bool(self.until) and padded(sequence) >= padded(self.until)


@dataclass
class SplitStream:
    """The stream as it is presented. `path` is the journal of the cuts, `root` the engine's one shard."""

    path: Path
    root: str
    cuts: Counter[str] = field(default_factory=Counter)  # by kind, of this process

    # --- the tree ---

    def tree(self) -> tuple[dict[str, PresentedShard], set[str]]:
        """Return the shards by id, and the partition keys of cuts whose places are not known yet."""
        found = {self.root: PresentedShard(self.root, "", 0, HASHES)}
        coming: set[str] = set()
        for line in lines(self.path):
            if "at" not in line:
                coming.add(line["cut"])
                continue
            coming.discard(line["cut"])
            for shard_id in line["close"]:
                found[shard_id] = PresentedShard(**{**vars(found[shard_id]), "until": line["at"]})
            for raw in line["open"]:
                found[raw["id"]] = PresentedShard(**raw, after=line["at"])
        return found, coming

    def leaves(self) -> list[PresentedShard]:
        return sorted((one for one in self.tree()[0].values() if not one.until), key=lambda one: one.low)

    # --- what a poller asks ---

    def listing(self, stream_arn: str) -> Listing:
        as_of = _listing(stream_arn).as_of
        return Listing(tuple(Shard(s.id, s.parent, bool(s.until)) for s in self.tree()[0].values()), as_of)

    def iterator(self, stream_arn: str, shard_id: str, *, after: str = "") -> str:
        place = after or self.tree()[0][shard_id].after
        return f"{shard_id} {place or '-'} {_iterator(stream_arn, self.root, after=place)}"

    def read(self, shard_iterator: str, *, limit: int = shards.RECORDS_LIMIT) -> ShardAnswer:
        """Read on until something belongs to the shard: an empty answer says that it holds nothing unread."""
        shard_id, place, engines = shard_iterator.split(" ", 2)
        place = "" if place == "-" else place
        while True:
            answer = _read(engines, limit=limit)
            tree, coming = self.tree()
            shard = tree[shard_id]
            if any(one.keys.get("pk") in coming for one in answer.records):
                raise Unavailable("A cut is being made.")
            place = answer.records[-1].checkpoint if answer.records else place
            kept = tuple(one for one in answer.records if shard.holds(one))
            if shard.ended_by(place or "0"):
                return ShardAnswer(kept, None, answer.as_of)
            if answer.next is None:
                raise CutFailed("The engine has closed its shard.")
            engines = answer.next
            if kept or not answer.records:
                return ShardAnswer(kept, f"{shard_id} {place or '-'} {engines}", answer.as_of)

    def install(self) -> Callable[[], None]:
        """Put it in place of the engine's stream in this process; return what takes it away again."""
        before = shards.listing, shards.iterator, shards.read
        shards.listing, shards.iterator, shards.read = self.listing, self.iterator, self.read

        def uninstall() -> None:
            shards.listing, shards.iterator, shards.read = before

        return uninstall

    # --- cuts ---

    def cut(self, tenant_id: str, rng: random.Random) -> None:
        """Split a shard, roll one over to another one with the same keys, or merge two neighbours, in turn."""
        leaves, kind = self.leaves(), _KINDS[self.cuts.total() % len(_KINDS)]
        if kind == "merge" and len(leaves) > 1:
            first = rng.randrange(len(leaves) - 1)
            left, right = leaves[first : first + 2]
            self._cut(kind, tenant_id, [left, right], [(left.low, right.high)])
        elif kind == "rollover":
            shard = rng.choice(leaves)
            self._cut(kind, tenant_id, [shard], [(shard.low, shard.high)])
        else:
            shard = rng.choice([one for one in leaves if one.high - one.low > 1])
            middle = (shard.low + shard.high) // 2
            self._cut("split", tenant_id, [shard], [(shard.low, middle), (middle, shard.high)])

    def _cut(self, kind: str, tenant_id: str, ended: list[PresentedShard], ranges: list[tuple[int, int]]) -> None:
        told = Journal(self.path)
        pk, at = self.mark_now(tenant_id, announce=lambda pk: told.write(cut=pk))
        number = len(self.tree()[0])
        opened = [
            {"id": f"{self.root}-{number + n:04}", "parent": ended[0].id, "low": low, "high": high}
            for n, (low, high) in enumerate(ranges)
        ]
        told.write(cut=pk, at=at, close=[one.id for one in ended], open=opened)
        self.cuts[kind] += 1

    def mark_now(self, tenant_id: str, *, announce: Callable[[str], None] = lambda pk: None) -> tuple[str, str]:
        """Write a marker, and return its partition key and its sequence number. Raises CutFailed."""
        repository = Store("tenant", tenant_id)
        pk = repository.key(stored.marker, f"cut-{uuid.uuid4().hex}", 0)
        asked = {"StreamArn": shards.arn(TICKETS), "ShardId": self.root, "ShardIteratorType": "LATEST"}
        engines = client.streams().call("GetShardIterator", **asked)["ShardIterator"]
        announce(pk)
        repository.update(MarkerItem(pk, stored.MARKER), [MarkerItem.expires_at.set(int(time.time()) + _KEPT_SECONDS)])
        return pk, next(one.checkpoint for one in _records_behind(engines) if one.keys.get("pk") == pk)

    def give_back(self, applied: str) -> None:
        """Let the next poller of the engine's own shard go on behind this record, "" for behind the first cut."""
        arn, tree = shards.arn(TICKETS), self.tree()[0]
        position = applied or tree[self.root].until
        if not position:
            return
        for shard_id in tree:
            WORKER.delete(ShardItem(arn, shard_id))
            WORKER.delete(FinishedShardItem(stream_keys.finished_key(arn), shard_id))
        positions.advance(arn, self.root, position)


def _records_behind(engines: str) -> Iterator[Record]:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        answer = _read(engines)
        yield from answer.records
        if answer.next is None:
            break
        engines = answer.next
        time.sleep(0 if answer.records else 0.05)
    raise CutFailed("The stream does not show the marker of a cut.")


def present(path: Path) -> tuple[SplitStream | None, str]:
    """Return the stream as it can be cut, or None and why it cannot."""
    arn = shards.arn(TICKETS)
    listed = _listing(arn).shards
    if len(listed) != 1:
        return None, f"the engine has {len(listed)} by itself"
    if _followed(arn):
        return None, "another poller follows the stream"
    return SplitStream(path, listed[0].id), ""


def _followed(arn: str) -> bool:
    """Tell whether any poller gives a sign of life."""
    before = positions.heartbeats(arn)
    if before:
        time.sleep(LOOK_SECONDS + 1)
    return any(counter != before.get(name) for name, counter in positions.heartbeats(arn).items())
