"""Judge a stream's tree of shards: which of them may be read, and up to when all of it is applied."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from portal.streams.items import LeaseItem
from portal.streams.shards import Listing


def readable(leases: Iterable[LeaseItem], finished: Container[str]) -> list[LeaseItem]:
    """Return the leases of shards that may be read: their parent is finished or has left the stream.

    One that was taken before was readable then, and stays so.
    """
    return [one for one in leases if not one.parent or one.counter or one.position or one.parent in finished]


def complete_until(listing: Listing, leases: Sequence[LeaseItem], finished: Container[str]) -> str:
    """Return the moment before which every change in the stream is applied, "" where that is not known.

    It is the earliest of the moments that the unfinished shards are applied to, and never later than the listing: a
    shard that is not in it was made after it, so whatever it holds is younger. A listed shard that nobody has read
    yet holds everything back, unless its lease says since when it can hold anything.
    """
    until = {lease.shard: lease.applied_until or "" for lease in leases}
    open_shards = until.keys() | {shard.id for shard in listing.shards}
    return min([listing.as_of, *(until.get(shard_id, "") for shard_id in open_shards if shard_id not in finished)])


def born_after(earlier: Listing | None, shard_id: str) -> str:
    """Return a moment before which a newly listed shard cannot hold anything, "" where that is not known."""
    listed_before = earlier is None or any(shard.id == shard_id for shard in earlier.shards)
    return "" if listed_before or earlier is None else earlier.as_of
