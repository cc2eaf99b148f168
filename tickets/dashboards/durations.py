"""Estimate durations from a histogram: the count and the mean are exact, everything in between is an estimate.

A day's aggregate holds the number of durations, their sum in seconds, and how many fell into each of
`histogram.BUCKETS`. Histograms of days add up to that of a period; medians would not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Final

from tickets.counting.contributions import BUCKETS, OVER, Counts

_NAMES: Final = (*map(str, BUCKETS), OVER)
_BOUNDS: Final = (0.0, *map(float, BUCKETS), math.inf)


@dataclass(frozen=True)
class Bucket:
    """`count` durations above `lower` seconds, up to `upper`, which is infinite in the last one."""

    lower: float
    upper: float
    count: int


@cache
def _of(what: str) -> tuple[str, ...]:
    return tuple(f"{what}.{name}" for name in ("n", "sum", *_NAMES))


@dataclass(frozen=True)
class Durations:
    """`count` durations of `seconds` altogether, and by bucket, in the order of BUCKETS and then the rest."""

    count: int = 0
    seconds: int = 0
    histogram: tuple[int, ...] = field(default=(0,) * len(_NAMES), repr=False)

    @classmethod
    def of(cls, counts: Counts, what: str) -> Durations:
        """Read those of "first" or "done" in a day's counts."""
        if counts.get(_of(what)[0], 0) <= 0:
            return _NONE
        count, seconds, *histogram = [max(0, counts.get(name, 0)) for name in _of(what)]
        return cls(count, seconds, tuple(histogram))

    @classmethod
    def total(cls, several: Iterable[Durations]) -> Durations:
        nothing = cls()
        numbers = zip(*((one.count, one.seconds, *one.histogram) for one in (nothing, *several)), strict=True)
        count, seconds, *histogram = map(sum, numbers)
        return cls(count, seconds, tuple(histogram))

    @property
    def mean(self) -> float | None:
        """Seconds; None where there are none."""
        return self.seconds / self.count if self.count else None

    @property
    def median(self) -> float | None:
        return self.quantile(0.5)

    @property
    def p95(self) -> float | None:
        return self.quantile(0.95)

    def quantile(self, share: float) -> float | None:
        """Return seconds within which this share lies, None where there are none, infinite beyond the last bound.

        An estimate: durations are taken to lie evenly within their bucket.
        """
        wanted = share * sum(self.histogram)
        before = 0
        for (lower, upper), count in zip(pairwise(_BOUNDS), self.histogram, strict=True):
            if count and before + count >= wanted:
                return lower + (upper - lower) * (wanted - before) / count
            before += count
        return None

    @property
    def buckets(self) -> list[Bucket]:
        """All of them, the empty ones too."""
        return [Bucket(low, high, n) for (low, high), n in zip(pairwise(_BOUNDS), self.histogram, strict=True)]


_NONE: Final = Durations()
