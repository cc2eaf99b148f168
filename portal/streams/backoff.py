"""Say how long a shard, or the look at the leases, waits before it is tried again."""

from __future__ import annotations

from typing import Final

from portal.dynamo import retry

FIRST_SECONDS: Final = 0.1
LAST_SECONDS: Final = 5.0


def delay(failures: int) -> float:
    """Return seconds to wait after so many failures in a row: full jitter, so that pollers do not all come at once."""
    return retry.pause(failures, first=FIRST_SECONDS, longest=LAST_SECONDS)
