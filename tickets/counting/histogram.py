"""Say into which buckets durations are counted: the limits of the histograms."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

# Upper bounds of the histograms in seconds, some two to a factor of four; above the last is "over".
BUCKETS: Final = (
    300, 900, 1800, 3600, 7200, 14400, 28800, 57600, 86400,
    172800, 345600, 604800, 1209600, 2592000, 7776000,
)  # fmt: skip
OVER: Final = "over"
BUCKET_NAMES: Final = (*map(str, BUCKETS), OVER)


def bucket_of(seconds: float) -> str:
    """Name the bucket of a duration: its upper bound in seconds, or OVER."""
    return BUCKET_NAMES[bisect_left(BUCKETS, seconds)]
