"""Judge how old a tenant's numbers are, and whether they are being kept up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from portal import clock
from portal.streams.watermark import LATE_SECONDS, Watermark

State = Literal["current", "behind", "stopped", "unknown"]


@dataclass(frozen=True)
class Freshness:
    """Up to when the numbers are complete. `seconds` is how long ago that was, at the moment of reading.

    unknown: nobody says up to when, because no worker ever ran. Then `as_of` is when
    the last change was counted, None if none ever was.
    """

    state: State
    as_of: datetime | None
    seconds: int

    @classmethod
    def of(cls, watermark: Watermark | None, stored: Iterable[Mapping[str, Any]]) -> Freshness:
        """Judge items that were read now by the watermark, or without one by when they were last changed."""
        now = clock.now()
        if watermark is None:
            stamps = [raw["applied_at"]["S"] for raw in stored if "applied_at" in raw]
            as_of = clock.parse(max(stamps)) if stamps else None
            return cls("unknown", as_of, _seconds(now, as_of) if as_of else 0)
        state: State = "current"
        if _seconds(now, watermark.written_at) > LATE_SECONDS:
            state = "stopped"
        elif _seconds(now, watermark.as_of) > LATE_SECONDS:
            state = "behind"
        return cls(state, watermark.as_of, _seconds(now, watermark.as_of))


def _seconds(now: datetime, then: datetime) -> int:
    return max(0, round((now - then).total_seconds()))  # clocks of two machines may differ
