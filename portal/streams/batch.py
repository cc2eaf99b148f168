"""Describe what a follower of a stream hands to its handler, and what the handler answers.

A handler is a plain function, `Handler`. It gets records of one shard in their order and returns when each of them is
applied, skipped or dead-lettered. Records that cannot be applied yet, because one tenant is throttled, are returned in
`BatchResult.deferred`. The handler gets them again, before the next records of the shard. It raises Throttled or
Unavailable where the whole batch must come again. A batch may come again at any time, whole or in part.

Sequence numbers have up to 40 digits and are compared as text here, so they are padded.

Source: AWS, "Amazon DynamoDB Streams API Reference", Record and StreamRecord.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache
from typing import Any, Final, overload

from portal import clock

SEQUENCE_DIGITS: Final = 40

Image = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """One change of one item, its images in plain Python: numbers are Decimal, a missing image is None.

    Images are read when they are asked for, and of them what is asked for: most records concern no handler, which tells
    by their keys, and none needs everything.

    `created_at` is when it was made by the service's clock, to the second below, as a stamp; "" where nobody says.
    `raw` is the record as it was delivered, for a dead letter.
    """

    sequence: str
    event: str
    keys: Image
    created_at: str
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def typed_old(self) -> Image | None:
        """The old image as the engine wrote it, for `plain`, or to be compared with another one."""
        typed: Image | None = self.raw["dynamodb"].get("OldImage")
        return typed

    @property
    def typed_new(self) -> Image | None:
        typed: Image | None = self.raw["dynamodb"].get("NewImage")
        return typed

    @cached_property
    def old(self) -> Image | None:
        return plain(self.typed_old)

    @cached_property
    def new(self) -> Image | None:
        return plain(self.typed_new)

    @property
    def size(self) -> int:
        """The bytes of keys and images, as the engine counts them."""
        return int(self.raw["dynamodb"].get("SizeBytes", 0))

    @property
    def checkpoint(self) -> str:
        """The sequence number as the engine wrote it, which is the form in which it takes it back."""
        return str(self.raw["dynamodb"]["SequenceNumber"])


@dataclass(frozen=True)
class Batch:
    """Records of one shard in their order. `stream_arn` and `shard_id` together name the shard for ever."""

    stream_arn: str
    shard_id: str
    records: tuple[Record, ...]


@dataclass(frozen=True)
class BatchResult:
    """The outcome of a batch. `deferred` are those of its records, in their order, that must come again: for each item
    they hold all of its records from the first deferred one on. `counts` are added up in the poller's metrics."""

    deferred: tuple[Record, ...] = ()
    counts: Mapping[str, float] = field(default_factory=dict)

    def last_applied(self, records: Sequence[Record]) -> Record | None:
        """Return the last of these records before the first deferred one, None where that is their first."""
        if not self.deferred:
            return records[-1] if records else None
        return next((one for one in reversed(records) if one.sequence < self.deferred[0].sequence), None)


Handler = Callable[[Batch], BatchResult]


@cache
def _deserializer() -> Any:
    """Return what makes plain values of typed ones, made at first use: few processes read a stream."""
    from boto3.dynamodb.types import TypeDeserializer

    class TolerantDeserializer(TypeDeserializer):  # type: ignore[misc]  # boto3 has no types
        """Accepts an empty map without its type: DynamoDB Local's streams write {} where AWS writes {"M": {}}."""

        def deserialize(self, value: Any) -> Any:
            return super().deserialize(value) if value else {}

    return TolerantDeserializer()


def padded(sequence: str) -> str:
    """Return a sequence number in the form in which it is compared."""
    return sequence.zfill(SEQUENCE_DIGITS)


def parse(raw: Mapping[str, Any]) -> Record:
    """Read one record of GetRecords or of an event of Lambda's."""
    data = raw["dynamodb"]
    return Record(
        sequence=padded(data["SequenceNumber"]),
        event=raw.get("eventName", ""),
        keys=plain(data.get("Keys")) or {},
        created_at=_created_at(data.get("ApproximateCreationDateTime")),
        raw=raw,
    )


def batch_of(stream_arn: str, shard_id: str, raw: Sequence[Mapping[str, Any]]) -> Batch:
    """Read the records of one shard as one batch."""
    return Batch(stream_arn, shard_id, tuple(parse(record) for record in raw))


@overload
def plain(typed: None) -> None: ...
@overload
def plain(typed: Mapping[str, Any], only: Sequence[str] | None = None) -> Image: ...
def plain(typed: Mapping[str, Any] | None, only: Sequence[str] | None = None) -> Image | None:
    """Turn a typed image into plain Python, or those of its attributes that are named in `only`."""
    if typed is None:
        return None
    names = typed if only is None else [name for name in only if name in typed]
    deserialize = _deserializer().deserialize
    # Nearly all are texts, of which boto3's way finds the kind by name.
    return {name: value["S"] if "S" in (value := typed[name]) else deserialize(value) for name in names}


@lru_cache(maxsize=64)  # the many records of one second
def _created_at(at: datetime | float | None) -> str:
    """Return a moment as a stamp, "" for none: an engine sends a number, or text that botocore makes a datetime of."""
    if at is None:
        return ""
    moment = at if isinstance(at, datetime) else datetime.fromtimestamp(float(at), UTC)
    return clock.stamp(moment.replace(microsecond=0))
