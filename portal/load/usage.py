"""Store what a tenant asked for by minute, where it was more than a little, for the page on which the tenant sees it.

Each process adds its own, once a minute: one UpdateItem for each tenant that asked for more than TOLD_SHARE of the
process's part of its rate, or was refused something. So a minute without a row had less.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from portal.dynamo.store import Action, Store
from portal.errors import PortalError
from portal.load import rate_sharing
from portal.load.measurement import NoiseTally
from portal.load.stored import UsageItem
from portal.load.tenant_limiter import limiter
from portal.schema import keys

log = logging.getLogger("pooldesk.limits")

TOLD_SHARE: Final = 0.05
SECONDS: Final = 60.0
KEPT: Final = timedelta(hours=24)


@dataclass(frozen=True)
class UsedMinute:
    """Hold what a tenant asked of all processes in one minute. `begins` is in UTC."""

    begins: datetime
    requests: int
    units: int
    refused: int


def share(units: float, *, per_second: float) -> float | None:
    """Return how much of its rate a tenant used in a minute; None where it has no rate, or it was little.

    A process writes down what is more than TOLD_SHARE of its own part, which may be little of the whole.
    """
    used = units / (per_second * SECONDS) if per_second else 0.0
    return used if used >= TOLD_SHARE else None


def write(asked: Mapping[str, NoiseTally], *, at: datetime) -> None:
    """Write what this process was asked for in a minute, by tenant. Data that cannot be written is dropped."""
    rates = limiter.asked()
    for tenant_id, tally in asked.items():
        per_second, _ = rates.get(tenant_id, (0.0, 0.0))
        if tally.refused or tally.units > TOLD_SHARE * per_second * SECONDS / rate_sharing.processes() > 0:
            try:
                add(tenant_id, tally, at=at)
            except PortalError as error:
                log.warning("What tenant %s asked for is not written down: %s", tenant_id, error.message)


def add(tenant_id: str, tally: NoiseTally, *, at: datetime) -> None:
    """Add what one process measured to the tenant's row of the minute: one UpdateItem."""
    actions: list[Action] = [
        UsageItem.requests.add(round(tally.requests)),
        UsageItem.units.add(round(tally.units)),
        UsageItem.refused.add(round(tally.refused)),
        UsageItem.expires_at.set(int(time.time() + KEPT.total_seconds())),
    ]
    Store("tenant", tenant_id).update(UsageItem(tenant_id, _minute(at)), actions)


def latest(repository: Store, *, minutes: int, now: datetime) -> list[UsedMinute]:
    """Return the rows of the last so many minutes, the latest first: one Query."""
    between = (_minute(now - timedelta(minutes=minutes)), _minute(now))
    items = repository.query_all(UsageItem, keys.tenant, between=between, descending=True)
    return [UsedMinute(_parsed(item.minute), int(item.requests), int(item.units), int(item.refused)) for item in items]


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M}"


def _parsed(minute: str) -> datetime:
    return datetime.fromisoformat(minute).replace(tzinfo=UTC)
