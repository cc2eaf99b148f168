"""A table's stream as workers read it: shards, iterators, records. Errors are ours.

A shard is a run of changes in order; it is closed after some hours or when its partition splits, and its children go
on. Changes of one item are always in order if a parent is read to its end before its children.

Source: AWS, "Change data capture for DynamoDB Streams" and its API reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from portal.dynamo import client
from portal.errors import PortalError, Unavailable
from portal.schema.tables import Table

RECORDS_LIMIT: Final = 1000  # of one GetRecords
RETENTION_HOURS: Final = 24  # a record cannot be read after it


class IteratorExpired(PortalError):
    """It was not used for 15 minutes; ask for another one behind the last record."""

    code = "iterator_expired"


class Trimmed(PortalError):
    """The records asked for are gone: older than the retention, or lost by an engine that was killed."""

    code = "trimmed"


@dataclass(frozen=True)
class Shard:
    """`parent` is "" for one whose parent has been trimmed; `closed` when it gets no more records."""

    id: str
    parent: str
    closed: bool


@dataclass(frozen=True)
class Batch:
    """Records in order, and the iterator behind them, None when a closed shard has been read to its end."""

    records: list[dict[str, Any]]
    next: str | None


def arn(table: Table) -> str:
    """The ARN of the table's stream, the newest where there were several. Raises Unavailable where there is none."""
    found = _call("ListStreams", TableName=table.full_name)["Streams"]
    if not found:
        raise Unavailable(f"{table.full_name} has no stream. Run: manage.py create_tables --wait")
    # The label is the moment at which the stream was enabled. One that was disabled can still be read for a day.
    return str(max(found, key=lambda stream: stream["StreamLabel"])["StreamArn"])


def name_of(stream_arn: str, shard_id: str) -> str:
    """What names a shard for ever and everywhere: some engines give every stream a shard of the same id."""
    return f"{stream_arn}/{shard_id}"


def shards(stream_arn: str) -> list[Shard]:
    """All shards that can still be read."""
    found: list[Shard] = []
    start: dict[str, str] = {}
    while True:
        described = _call("DescribeStream", StreamArn=stream_arn, **start)["StreamDescription"]
        for raw in described["Shards"]:
            closed = "EndingSequenceNumber" in raw.get("SequenceNumberRange", {})
            found.append(Shard(raw["ShardId"], raw.get("ParentShardId", ""), closed))
        if not described.get("LastEvaluatedShardId"):
            break
        start = {"ExclusiveStartShardId": described["LastEvaluatedShardId"]}
    known = {shard.id for shard in found}
    return [Shard(s.id, s.parent if s.parent in known else "", s.closed) for s in found]


def iterator(stream_arn: str, shard_id: str, *, after: str = "") -> str:
    """Where to read on: behind the record with this sequence number, or at the oldest one. Raises Trimmed."""
    where = {"ShardIteratorType": "TRIM_HORIZON"}
    if after:
        where = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
    found: str = _call("GetShardIterator", StreamArn=stream_arn, ShardId=shard_id, **where)["ShardIterator"]
    return found


def read(shard_iterator: str, *, limit: int = RECORDS_LIMIT) -> Batch:
    """Up to `limit` records or 1 MB. Raises IteratorExpired, Trimmed, Throttled, Unavailable."""
    answer = _call("GetRecords", ShardIterator=shard_iterator, Limit=limit)
    return Batch(answer["Records"], answer.get("NextShardIterator"))


def _call(operation: str, **params: Any) -> dict[str, Any]:
    try:
        return client.streams().call(operation, **params)
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code == "ExpiredIteratorException":
            raise IteratorExpired("The iterator has expired.") from error
        if code == "TrimmedDataAccessException":
            raise Trimmed("The records are no longer in the stream.") from error
        raise
