"""Read a table's stream: shards, iterators, records. Errors are those of `portal.errors`.

A shard is a run of changes in order; it is closed after some hours or when its partition splits, and its children go
on. Changes of one item are always in order if a parent is read to its end before its children.

Answers carry the service's own time, from the HTTP header Date of an answer that had arrived before the call was made:
what the engine did after that moment may be missing in the answer, what it did before is not.

Source: AWS, "Change data capture for DynamoDB Streams" and its API reference; RFC 9110, section 6.6.1 (Date).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from portal import clock
from portal.dynamo import client, placement
from portal.dynamo.library_errors import is_missing
from portal.errors import PortalError, Unavailable
from portal.schema.registry import Table
from portal.streams import batch
from portal.streams.batch import Record

RECORDS_LIMIT: Final = 1000  # of one GetRecords
RETENTION_HOURS: Final = 24  # a record cannot be read after it
# Between a write and its record in the stream, and between two machines of the service. AWS names no bound, so
# nothing but what people are shown may rest on it.
SERVICE_MARGIN: Final = timedelta(seconds=1)

_last_dates: dict[str, str] = {}  # the header Date of the last answer, by site: each has a clock of its own


class IteratorExpired(PortalError):
    """It was not used for 15 minutes; ask for another one behind the last record."""

    code = "iterator_expired"


class Trimmed(PortalError):
    """The records asked for are gone: older than the retention, or lost by an engine that was killed."""

    code = "trimmed"


class Gone(Unavailable):
    """There is no such shard or stream: it has left, or an engine lost its state."""

    code = "gone"


@dataclass(frozen=True)
class Shard:
    """`parent` is "" for one whose parent has been trimmed; `closed` when it gets no more records."""

    id: str
    parent: str
    closed: bool


@dataclass(frozen=True)
class Listing:
    """All shards that can still be read, with every one that had been made at `as_of`, "" where that is not known."""

    shards: tuple[Shard, ...]
    as_of: str


@dataclass(frozen=True)
class ShardAnswer:
    """Records in order, and the iterator behind them, None when a closed shard has been read to its end.

    Without records and with an iterator, the shard held nothing unread at `as_of`, "" where that is not known.
    """

    records: tuple[Record, ...]
    next: str | None
    as_of: str


def arn(table: Table) -> str:
    """Return the ARN of the table's stream, the newest of several. Raises Unavailable where there is none."""
    streams = _call("ListStreams", TableName=table.full_name)["Streams"]
    if not streams:
        raise Unavailable(f"{table.full_name} has no stream. Run: manage.py create_tables --wait")
    # The label is the moment at which the stream was enabled. One that was disabled can still be read for a day.
    return str(max(streams, key=lambda stream: stream["StreamLabel"])["StreamArn"])


def name_of(stream_arn: str, shard_id: str) -> str:
    """Return a name of a shard for ever and everywhere: some engines give every stream a shard of the same id."""
    return f"{stream_arn}/{shard_id}"


def listing(stream_arn: str) -> Listing:
    """List the stream's shards: one DescribeStream for each hundred of them."""
    as_of = service_time()
    shards: list[Shard] = []
    start: dict[str, str] = {}
    while True:
        described = _call("DescribeStream", StreamArn=stream_arn, **start)["StreamDescription"]
        for raw in described["Shards"]:
            closed = "EndingSequenceNumber" in raw.get("SequenceNumberRange", {})
            shards.append(Shard(raw["ShardId"], raw.get("ParentShardId", ""), closed))
        if not described.get("LastEvaluatedShardId"):
            break
        start = {"ExclusiveStartShardId": described["LastEvaluatedShardId"]}
    known = {shard.id for shard in shards}
    return Listing(tuple(Shard(s.id, s.parent if s.parent in known else "", s.closed) for s in shards), as_of)


def iterator(stream_arn: str, shard_id: str, *, after: str = "") -> str:
    """Return an iterator behind the record with this sequence number, or at the oldest record. Raises Trimmed."""
    where = {"ShardIteratorType": "TRIM_HORIZON"}
    if after:
        where = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
    answer = _call("GetShardIterator", StreamArn=stream_arn, ShardId=shard_id, **where)
    return str(answer["ShardIterator"])


def has_left(stream_arn: str, shard_id: str) -> bool:
    """Tell whether a shard that was in the stream is in it no more, so that no record of it can be read again.

    One GetShardIterator where it still is, and a listing where it is not. False where there is no such stream. Raises
    Throttled, Unavailable.
    """
    try:
        iterator(stream_arn, shard_id)
    except Gone:
        try:
            return all(shard.id != shard_id for shard in listing(stream_arn).shards)
        except Gone:
            return False
    return False


def read(shard_iterator: str, *, limit: int = RECORDS_LIMIT) -> ShardAnswer:
    """Read up to `limit` records or 1 MB. Raises IteratorExpired, Trimmed, Throttled, Unavailable."""
    as_of = service_time()
    answer = _call("GetRecords", ShardIterator=shard_iterator, Limit=limit)
    records = tuple(batch.parse(raw) for raw in answer["Records"])
    return ShardAnswer(records, answer.get("NextShardIterator"), as_of)


def service_time(*, after: bool = False) -> str:
    """Return a moment that had passed by the clock of the service that is asked here, when this process last heard of
    it; "" before that.

    With `after` it is one that had not come yet.
    """
    last = _last_dates.get(placement.current().site, "")
    if not last:
        return ""
    # A header Date has no fractions of a second.
    return clock.stamp(parsedate_to_datetime(last) + (2 * SERVICE_MARGIN if after else -SERVICE_MARGIN))


def _call(operation: str, **params: Any) -> dict[str, Any]:
    try:
        answer = client.streams().call(operation, **params)
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code == "ExpiredIteratorException":
            raise IteratorExpired("The iterator has expired.") from error
        if code == "TrimmedDataAccessException":
            raise Trimmed("The records are no longer in the stream.") from error
        raise
    except Unavailable as error:
        if is_missing(error):
            raise Gone(error.message) from error
        raise
    if date := answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date"):
        _last_dates[placement.current().site] = date
    return answer
