"""Say how much of a tenant's may be on its way at once: the defaults of all tenants, in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True)
class DeliveryLimits:
    """Bound one tenant at one sender, and again at one worker.

    `in_flight` messages may be unanswered at a time, and `per_second` may begin, after a burst of `burst`.
    """

    in_flight: int
    per_second: float
    burst: int


LimitsOf = Callable[[str], DeliveryLimits]  # by tenant id


def of_all(tenant_id: str) -> DeliveryLimits:
    """Return the limits of every tenant that has none of its own, which so far is each."""
    return DeliveryLimits(settings.DELIVERY_IN_FLIGHT, settings.DELIVERY_PER_SECOND, settings.DELIVERY_BURST)
