"""Read what all processes noted in the last minutes, and add it up: a Query for each minute, all at the same time.

An item names at most TOLD tenants, so what is read depends on how many processes there are, not on how many tenants.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final

from portal.dynamo.client import fan_out
from portal.dynamo.platform import PLATFORM
from portal.load import stored
from portal.load.measurement import MINUTE, NoiseTally
from portal.load.reporting import NOBODY, OTHERS
from portal.load.stored import NoiseItem
from portal.schema.keys import split

LATE_MINUTES: Final = 3  # after so many without an item, what is shown is old


@dataclass
class TenantNoise:
    """Hold what was done for one tenant, in all, and the most units of its rate that it was let through in a minute."""

    tenant_id: str
    tally: NoiseTally = field(default_factory=NoiseTally)
    by_minute: Counter[int] = field(default_factory=Counter)

    @property
    def peak_units(self) -> float:
        return max(self.by_minute.values(), default=0)


@dataclass
class LoadReport:
    """Hold what all processes told of the last `minutes`, up to the end of minute `until` (counted from the epoch)."""

    minutes: int
    until: int
    tenants: dict[str, TenantNoise] = field(default_factory=dict)
    total: NoiseTally = field(default_factory=NoiseTally)
    others: NoiseTally = field(default_factory=NoiseTally)
    kinds: dict[str, set[str]] = field(default_factory=dict)  # which processes told, by kind
    latest: int | None = None  # the last minute that somebody told of

    @property
    def ended_at(self) -> datetime:
        """Return the end of the last minute that somebody told of, or of those that were looked for, in UTC."""
        minute = self.until if self.latest is None else self.latest
        return datetime.fromtimestamp((minute + 1) * MINUTE, UTC)

    @property
    def is_late(self) -> bool:
        """Tell whether nobody told of the last LATE_MINUTES."""
        return self.latest is None or self.until - self.latest >= LATE_MINUTES

    def noisiest(self, number: int) -> list[TenantNoise]:
        """Return who asked for most, the noisiest first."""
        return sorted(self.tenants.values(), key=lambda one: -one.tally.weight)[:number]

    def suffering(self, number: int) -> list[TenantNoise]:
        """Return who was refused something, had to wait or lost a delivery, those with most of it first."""
        return sorted((one for one in self.tenants.values() if _pain(one.tally)), key=lambda one: -_pain(one.tally))[
            :number
        ]

    def add(self, minute: int, items: Iterable[NoiseItem]) -> None:
        for item in items:
            kind, process, _ = split(item.process)
            self.kinds.setdefault(kind, set()).add(process)
            self.latest = max(self.latest or minute, minute)
            for tenant_id, numbers in json.loads(item.tallies).items():
                tally = NoiseTally.read(numbers)
                self.total.add(tally)
                if tenant_id == OTHERS:
                    self.others.add(tally)
                elif tenant_id != NOBODY:
                    noise = self.tenants.setdefault(tenant_id, TenantNoise(tenant_id))
                    noise.tally.add(tally)
                    noise.by_minute[minute] += round(tally.units)


def read(*, minutes: int, now: datetime) -> LoadReport:
    """Return the board of the last so many minutes that are over. Raises Throttled, Unavailable."""
    until = int(now.timestamp() // MINUTE) - 1
    board = LoadReport(minutes, until)
    wanted = range(until - minutes + 1, until + 1)
    for minute, items in zip(wanted, fan_out([partial(_items, minute) for minute in wanted]), strict=True):
        board.add(minute, items)
    return board


def _items(minute: int) -> list[NoiseItem]:
    return [*PLATFORM.query_all(NoiseItem, stored.notes_of(minute))]


def _pain(tally: NoiseTally) -> float:
    """Return how much went wrong for a tenant; a wait of a second counts as one thing, one of less as nothing."""
    return tally.throttles + tally.refused + tally.failed + tally.dead + tally.put_off + tally.held + int(tally.wait)
