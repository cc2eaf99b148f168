"""Up to which moment the aggregates have counted everything: for a page that shows them.

The pollers of the stream write it every few seconds (`portal.streams.leases`). It stands still while none of them
runs, and where a Lambda function follows the stream instead there is none at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from portal import clock
from portal.dynamo import platform
from portal.streams import keys
from portal.streams.items import LeaseItem, PulseItem
from portal.streams.tables import LEASES
from tickets.ticket.tables import TICKETS


@dataclass(frozen=True)
class Pulse:
    """All changes before `as_of` are counted; `written_at` is when that was known. Both in UTC."""

    as_of: datetime
    written_at: datetime


def read() -> Pulse | None:
    """The latest pulse by one GetItem, None where no poller has caught up yet. Raises Throttled, Unavailable."""
    found = platform.get(PulseItem, TICKETS.name, keys.PULSE)
    return Pulse(clock.parse(found.as_of), clock.parse(found.written_at)) if found else None


def leases(stream_arn: str) -> list[LeaseItem]:
    """Who reads which shard of a stream, and how far: one Query, at most 1 MB, which is some thousand shards."""
    page = platform.query(LEASES, stream_arn)
    return [LeaseItem.from_raw_data(raw) for raw in page.items]
