"""List the shards of a stream for all of its pollers, and keep a lease for each one that is not finished.

AWS allows ten DescribeStream a second for a whole account, and each tells of a hundred shards. So one poller lists, one
page a second on average, and the others find the shards in the leases.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Final

from portal.streams import leases, shard_tree, shards
from portal.streams.items import LeaseItem
from portal.streams.shard_reader import LOST
from portal.streams.shards import Listing

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
        self._arn, self._lease_seconds, self._if_lost = stream_arn, lease_seconds, if_lost
        self.listing: Listing | None = None
        self.listed_at = float("-inf")  # monotonic: when the listing was begun
        self.finished: set[str] = set()
        self._took = 0.0  # seconds, of the last listing
        self._forgot_at = float("-inf")  # monotonic
        self._absent: dict[str, tuple[int, float]] = {}  # by shard: its lease's counter, and since when it stands so

    def list_if_due(self, stored: Sequence[LeaseItem]) -> bool:
        """List the shards, make the leases that are missing, and close those of shards that have left the stream.

        `stored` are the leases as they were read before. Returns whether any lease was made or closed.
        """
        now = time.monotonic()
        pages = ceil(len(self.listing.shards) / PAGE) if self.listing else 0
        if now - self.listed_at < max(1, pages, min(_SHARE * self._took, _LONGEST)):
            return False
        earlier, self.listing, self.listed_at = self.listing, shards.listing(self._arn), now
        self._took = time.monotonic() - now
        held = {lease.shard for lease in stored}
        unheld = [shard for shard in self.listing.shards if shard.id not in held]
        self.look_up(shard.id for shard in unheld)
        missing = [shard for shard in unheld if shard.id not in self.finished]
        for shard in missing:
            since = shard_tree.born_after(earlier, shard.id)
            leases.add(self._arn, shard.id, parent=shard.parent, applied_until=since)
        if now - self._forgot_at >= FORGET_SECONDS:
            leases.forget(self._arn, listed={shard.id for shard in self.listing.shards})
            self._forgot_at = now
        return self._abandon(stored, self.listing) or bool(missing)

    def look_up(self, shard_ids: Iterable[str]) -> None:
        """Learn which of these shards are finished. One that is known to be is not read again."""
        unknown = [shard_id for shard_id in shard_ids if shard_id not in self.finished]
        for start in range(0, len(unknown), PAGE):
            self.finished |= leases.finished_among(self._arn, unknown[start : start + PAGE]).keys()

    def _abandon(self, stored: Iterable[LeaseItem], listing: Listing) -> bool:
        """Close the leases of shards that are no longer listed and stand still: nobody can read them to their end.

        Each lease was stored before the listing began, so its shard is not one that the listing came too early for.
        """
        listed, now = {shard.id for shard in listing.shards}, time.monotonic()
        absent = {lease.shard: (lease, int(lease.counter)) for lease in stored if lease.shard not in listed}
        before, self._absent = self._absent, {}
        abandoned = False
        for shard_id, (lease, counter) in absent.items():
            since = before[shard_id][1] if before.get(shard_id, (-1, 0.0))[0] == counter else now
            if now - since < self._lease_seconds:
                self._absent[shard_id] = (counter, since)
                continue
            leases.finish(lease, position=lease.position or "", lost=True)
            log.error(LOST, shard_id, shards.RETENTION_HOURS, self._if_lost)
            abandoned = True
        return abandoned
