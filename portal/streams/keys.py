"""Form the keys of what the followers of a stream store."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

WATERMARK: Final = "WATERMARK"  # the sort key of the one item in its partition


def finished(stream_arn: str) -> str:
    """Form the partition key of a stream's shards that were read to their end; the ARN itself is that of the others."""
    return keys.joined("FINISHED", stream_arn)


def pollers(stream_arn: str) -> str:
    """Form the partition key of the pollers that follow a stream."""
    return keys.joined("POLLERS", stream_arn)


def of_stream(stream_arn: str) -> tuple[str, str, str]:
    """Return the partition keys of all that is kept of a stream under its ARN."""
    return stream_arn, finished(stream_arn), pollers(stream_arn)


def own_stream(placement: str, tenant_id: str, table: str) -> str:
    """Form the partition key of what is kept of the stream of one tenant's own table under the table's name."""
    return keys.joined("PLACED", keys.tenant(tenant_id), placement, table)
