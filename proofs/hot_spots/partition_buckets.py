"""Refuse what is over the capacity of one partition key, as DynamoDB does and local engines do not.

A partition takes 1,000 write units and 3,000 read units a second, and what it did not use is kept for up to 300
seconds; each partition key of a table and of an index is held to that by itself here. Adaptive capacity is left out: it
gives a partition more than its share of what the table has, and never more than these bounds. So is that several keys
can share a partition, until DynamoDB has parted them.

Source: Amazon DynamoDB Developer Guide, "DynamoDB burst and adaptive capacity". The clock is the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

WRITE_UNITS: Final = 1000.0  # a second
READ_UNITS: Final = 3000.0
BURST_SECONDS: Final = 300.0

Place = tuple[str, str]  # a table or an index, and a partition key
Units = Sequence[tuple[Place, float]]


class PartitionBuckets:
    """Two buckets for each place, for writes and for reads, full in the beginning.

    `burst_seconds` is for how long unused capacity is kept. With less than 1 a bucket holds one second's: so it is for
    who has been busy for long.
    """

    def __init__(self, *, burst_seconds: float = BURST_SECONDS) -> None:
        self._seconds = max(1.0, burst_seconds)
        self._written: dict[Place, tuple[float, float]] = {}  # what is left, and when that was
        self._read: dict[Place, tuple[float, float]] = {}

    def write(self, at: float, units: Units) -> bool:
        """Take the write units from all of these places, or none from any. False: it is throttled."""
        return self._take(self._written, at, units, WRITE_UNITS)

    def read(self, at: float, units: Units) -> bool:
        """Take the read units. False: it is throttled."""
        return self._take(self._read, at, units, READ_UNITS)

    def _take(self, buckets: dict[Place, tuple[float, float]], at: float, units: Units, rate: float) -> bool:
        full = rate * self._seconds
        left: dict[Place, float] = {}
        for place, wanted in units:
            had = left.get(place)
            if had is None:
                known, since = buckets.get(place, (full, at))
                had = min(full, known + (at - since) * rate)
            if had < wanted:
                return False
            left[place] = had - wanted
        for place, rest in left.items():
            buckets[place] = (rest, at)
        return True
