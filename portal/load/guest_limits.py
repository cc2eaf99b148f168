"""Limit people outside the desks in this process, apart from members: each network address, and each desk's guests.

Nothing here calls a database. An address is limited before anything is read, a desk's guests once the desk is known.
They have a part of the desk's rate beside that of its members, so that strangers never use up the members' share. All
guests together have half of the threads at most.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import Final

from django.conf import settings
from django.utils.translation import gettext

from portal.errors import LimitReached
from portal.load import measurement, tenant_limiter
from portal.load.measurement import NoiseTally
from portal.load.tenant_limiter import UNLIMITED, TenantLimiter
from portal.quotas import RecentTenants, TokenBucket

SHARE: Final = 0.2  # of a desk's rate, which its guests have on top
BURST_SECONDS: Final = 30  # of an address: a page with its parts, and some people behind one address
_ALL: Final = "all"

guests: Final = TenantLimiter()  # of this process
_lock = threading.Lock()
_addresses: Final[RecentTenants[TokenBucket]] = RecentTenants(
    lambda _: TokenBucket(per_second=settings.GUEST_RATE, burst=max(1, settings.GUEST_RATE * BURST_SECONDS))
)


@contextmanager
def admitted(network: str) -> Iterator[None]:
    """Count a request of a network address. Raises LimitReached where it asks too often, or too many are at work."""
    if settings.GUEST_RATE:
        with _lock:
            bucket = _addresses.of(network)
            if not bucket.take():
                raise LimitReached(
                    gettext("This address asks too often."), retry_after=max(1, ceil(bucket.seconds_to_next()))
                )
    if not tenant_limiter.guests.enter(_ALL):
        raise LimitReached(gettext("Too many people are asking at the moment."))
    try:
        yield
    finally:
        tenant_limiter.guests.leave(_ALL)


def charge(tenant_id: str, units: float, *, per_second: float) -> None:
    """Charge the guests of a desk, whose members have `per_second` for themselves. Raises LimitReached."""
    rate = UNLIMITED if per_second == UNLIMITED else max(1.0, per_second * SHARE)
    answer = guests.spend(tenant_id, units, per_second=rate)
    allowed = answer is None or answer.allowed
    measurement.note(tenant_id, NoiseTally(requests=1, units=units) if allowed else NoiseTally(refused=1))
    if answer is not None and not answer.allowed:
        raise LimitReached(gettext("Too many people are asking this desk."), retry_after=max(1, answer.seconds))
