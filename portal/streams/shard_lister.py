"""List the shards of a stream for all of its pollers, and judge which may be read, and up to when all is applied.

AWS allows ten DescribeStream a second for a whole account, and each tells of a hundred shards. So one poller lists, one
page a second on average, and the others find the shards in what it has stored.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Container, Iterable, Sequence
from math import ceil
from typing import Final

from portal.dynamo.store import chunked
from portal.streams import positions, shards
from portal.streams.lease import SignWatch
from portal.streams.shard_reader import LOST
from portal.streams.shards import Listing
from portal.streams.stored import ShardItem

log = logging.getLogger("pooldesk.poller")

FORGET_SECONDS: Final = 3600.0  # between looks at what is kept of finished shards
# An engine may look through all records of a stream for a listing, while everybody else waits.
_SHARE: Final = 20.0  # times what a listing took
_LONGEST: Final = 30.0  # seconds between two of them for that reason
PAGE: Final = 100  # shards that one DescribeStream tells of, and keys that one BatchGetItem takes


class ShardLister:
    """Knows a stream's shards as they were last listed here, and which shards are known to be finished.

    `if_lost` says in the log what is to be done where records of a shard are lost.
    """

    def __init__(self, stream_arn: str, *, lease_seconds: float, if_lost: str = "") -> None:
        self._arn, self._if_lost = stream_arn, if_lost
        self.listing: Listing | None = None
        self.listed_at = float("-inf")  # monotonic: when the listing was begun
        self.finished: set[str] = set()
        self._took = 0.0  # seconds, of the last listing
        self._forgot_at = float("-inf")  # monotonic
        self._absent = SignWatch(lease_seconds)  # of shards that are no longer listed, by what is stored of each

    def list_if_due(self, stored: Sequence[ShardItem]) -> bool:
        """List the shards, store those that are missing, and close those that have left the stream.

        `stored` are the unfinished shards as they were read before. Returns whether any was made or closed.
        """
        now = time.monotonic()
        pages = ceil(len(self.listing.shards) / PAGE) if self.listing else 0
        if now - self.listed_at < max(1, pages, min(_SHARE * self._took, _LONGEST)):
            return False
        earlier, self.listing, self.listed_at = self.listing, shards.listing(self._arn), now
        self._took = time.monotonic() - now
        held = {shard.shard for shard in stored}
        unheld = [shard for shard in self.listing.shards if shard.id not in held]
        self.look_up(shard.id for shard in unheld)
        missing = [shard for shard in unheld if shard.id not in self.finished]
        for shard in missing:
            since = born_after(earlier, shard.id)
            positions.add(self._arn, shard.id, parent=shard.parent, applied_until=since)
        if now - self._forgot_at >= FORGET_SECONDS:
            positions.forget(self._arn, listed={shard.id for shard in self.listing.shards})
            self._forgot_at = now
        return self._abandon(stored, self.listing) or bool(missing)

    def look_up(self, shard_ids: Iterable[str]) -> None:
        """Learn which of these shards are finished. One that is known to be is not read again."""
        for some in chunked([shard_id for shard_id in shard_ids if shard_id not in self.finished], PAGE):
            self.finished |= positions.finished_among(self._arn, some).keys()

    def _abandon(self, stored: Iterable[ShardItem], listing: Listing) -> bool:
        """Close shards that are no longer listed and stand still: nobody can read them to their end.

        Each was stored before the listing began, so it is not one that the listing came too early for.
        """
        listed = {shard.id for shard in listing.shards}
        absent = {shard.shard: shard for shard in stored if shard.shard not in listed}
        self._absent.look({name: (shard.position, shard.applied_until) for name, shard in absent.items()})
        lost = [shard for name, shard in absent.items() if self._absent.is_still(name)]
        for shard in lost:
            positions.finish(shard, position=shard.position or "", lost=True)
            log.error(LOST, shard.shard, shards.RETENTION_HOURS, self._if_lost)
        return bool(lost)

    def readable(self, stored: Sequence[ShardItem]) -> list[ShardItem]:
        """Return the unfinished shards that may be read: their parent is finished or has left the stream."""
        waits = {shard.id for shard in self.listing.shards} if self.listing else set[str]()
        waits = (waits | {shard.shard for shard in stored}) - self.finished
        return [one for one in stored if one.shard not in self.finished and (one.position or one.parent not in waits)]

    def complete_until(self, stored: Sequence[ShardItem]) -> str:
        """Return the moment before which every change in the stream is applied, "" where that is not known."""
        return complete_until(self.listing, stored, self.finished) if self.listing else ""


def complete_until(listing: Listing, stored: Sequence[ShardItem], finished: Container[str]) -> str:
    """Return the moment before which every change in the stream is applied, "" where that is not known.

    It is the earliest of the moments that the unfinished shards are applied to, and never later than the listing: a
    shard that is not in it was made after it, so whatever it holds is younger. A listed shard that nobody has read
    yet holds everything back, unless it is stored since when it can hold anything.
    """
    until = {shard.shard: shard.applied_until or "" for shard in stored}
    open_shards = until.keys() | {shard.id for shard in listing.shards}
    return min([listing.as_of, *(until.get(shard_id, "") for shard_id in open_shards if shard_id not in finished)])


def born_after(earlier: Listing | None, shard_id: str) -> str:
    """Return a moment before which a newly listed shard cannot hold anything, "" where that is not known."""
    listed_before = earlier is None or any(shard.id == shard_id for shard in earlier.shards)
    return "" if listed_before or earlier is None else earlier.as_of
