"""Tell operators how full the queues are, as a worker last saw it: the portal itself has no right to ask them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from delivery.queues.queue_transport import Depth
from delivery.queues.stored import DEPTHS, LATEST, DepthsItem
from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.streams.worker import WORKER

EVERY_SECONDS: Final = 60  # how often workers look
LATE_SECONDS: Final = 150  # two turns and a half: after so long nobody looks any more


@dataclass(frozen=True)
class Depths:
    """The depth of each queue by number, seen at `at`."""

    at: datetime
    queues: tuple[Depth, ...]

    @property
    def is_late(self) -> bool:
        return (clock.now() - self.at).total_seconds() > LATE_SECONDS


def write(depths: Sequence[Depth]) -> None:
    """Store what was seen now, as the worker: one PutItem."""
    seen = [[depth.waiting, depth.in_flight, depth.delayed] for depth in depths]
    WORKER.put(DepthsItem(DEPTHS, LATEST, at=clock.stamp(), depths=json.dumps(seen)))


def summary() -> dict[str, Any]:
    """Return how many messages wait in all queues, and how many seconds ago that was seen: one GetItem."""
    seen = read()
    if seen is None:
        return {"waiting": None}
    age = (clock.now() - seen.at).total_seconds()
    return {"waiting": sum(depth.total for depth in seen.queues), "seen": round(age), "late": seen.is_late}


def read() -> Depths | None:
    """Return what was seen last, None where nobody has looked yet: one GetItem."""
    item = PLATFORM.get(DepthsItem, DEPTHS, sort=LATEST)
    if item is None:
        return None
    return Depths(clock.parse(item.at), tuple(Depth(*seen[:3]) for seen in json.loads(item.depths)))
