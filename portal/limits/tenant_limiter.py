"""Let each tenant through at its rate, by a token bucket in this process: no call to the database, no waiting.

Several processes serve a tenant. Each has a share of the rate, which `rate_sharing.py` says; without it, all of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final

from portal.limits.rates import BURST_SECONDS, LEAST_BURST, UNLIMITED
from portal.tenant_buckets import MOST_TENANTS, RecentTenants, TokenBucket

_POLICY: Final = "desk"  # its name in the headers
_CERTAIN_SECONDS: Final = 5.0  # for which what was heard of a tenant's rate is believed without asking again


@dataclass(frozen=True, slots=True)
class RateAnswer:
    """Tell whether a request may go on, and what to tell its client.

    `left` units are there now; in `seconds` there are enough for this request where it was refused, or all of `quota`.
    """

    allowed: bool
    left: int
    seconds: int
    quota: int

    @property
    def headers(self) -> dict[str, str]:
        """Return the header fields for the client. Source: draft-ietf-httpapi-ratelimit-headers-10."""
        return {
            "RateLimit-Policy": f'"{_POLICY}";q={self.quota};w={BURST_SECONDS}',
            "RateLimit": f'"{_POLICY}";r={self.left};t={self.seconds}',
        }


@dataclass(frozen=True, slots=True)
class Counts:
    """Count what a tenant asked of this process so far: units that went through and that were refused, and requests."""

    units: float = 0.0
    refused_units: float = 0.0
    requests: int = 0
    refused: int = 0

    def since(self, before: Counts) -> Counts:
        """Return what was counted after `before`."""
        return Counts(
            self.units - before.units,
            self.refused_units - before.refused_units,
            self.requests - before.requests,
            self.refused - before.refused,
        )

    @property
    def asked(self) -> float:
        """Return the units that were asked for, whatever became of them."""
        return self.units + self.refused_units


class _Meter:
    """One tenant at this process. `rate` is this process's part of `per_second`, which the bucket is filled with."""

    __slots__ = ("bucket", "heard_at", "per_second", "rate", "refused", "refused_units", "requests", "units")

    def __init__(self) -> None:
        self.bucket: TokenBucket | None = None
        self.heard_at = 0.0
        self.per_second = self.rate = UNLIMITED
        self.units = self.refused_units = 0.0
        self.requests = self.refused = 0


class TenantLimiter:
    """Hold tenants to their rates, for any number of threads."""

    def __init__(self, *, most: int = MOST_TENANTS, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._meters: RecentTenants[_Meter] = RecentTenants(lambda _: _Meter(), most=most)
        self._shares: dict[str, float] = {}
        self._share = 1.0

    def spend(self, tenant_id: str, units: float, *, per_second: float) -> RateAnswer | None:
        """Take so many units of the tenant's rate, where they are there. None: this tenant has no limit."""
        with self._lock:
            meter = self._meters.of(tenant_id)
            meter.per_second, meter.heard_at = per_second, self._clock()
            bucket = self._bucket(tenant_id, meter)
            if bucket is None or bucket.take(units):
                meter.units += units
                meter.requests += 1
                return None if bucket is None else _answer(True, bucket, units, per_second)
            meter.refused_units += units
            meter.refused += 1
            return _answer(False, bucket, units, per_second)

    def foresee(self, tenant_id: str, units: float) -> RateAnswer | None:
        """Refuse what `spend` certainly would, before it is known who asks; None where it may be let through.

        Nothing is taken: whoever asks may turn out to be no member, who spends nothing of the tenant's. Now and then
        one is let through, so that a rate that operators have raised is heard of.
        """
        with self._lock:
            meter = self._meters.known(tenant_id)
            if meter is None or self._clock() - meter.heard_at > _CERTAIN_SECONDS:
                return None
            bucket = self._bucket(tenant_id, meter)
            if bucket is None or bucket.has(units):
                return None
            meter.refused_units += units
            meter.refused += 1
            return _answer(False, bucket, units, meter.per_second)

    def counts(self) -> dict[str, tuple[float, Counts]]:
        """Return, by tenant, the rate as it was last heard of, and what was counted so far."""
        with self._lock:
            return {
                tenant_id: (m.per_second, Counts(m.units, m.refused_units, m.requests, m.refused))
                for tenant_id, m in self._meters.all()
            }

    def divide(self, share: float, shares: dict[str, float]) -> None:
        """Give this process these parts of the rates from now on: `share` of each that `shares` does not name.

        A part is more than nothing, and 1 at most.
        """
        with self._lock:
            self._share, self._shares = share, shares

    def _bucket(self, tenant_id: str, meter: _Meter) -> TokenBucket | None:
        if meter.per_second == UNLIMITED:
            return None
        rate = meter.per_second * self._shares.get(tenant_id, self._share)
        if meter.bucket is None:
            meter.bucket = TokenBucket(per_second=rate, burst=_burst(rate), clock=self._clock)
        elif rate != meter.rate:
            meter.bucket.change(per_second=rate, burst=_burst(rate))
        meter.rate = rate
        return meter.bucket


def _burst(rate: float) -> float:
    return max(rate * BURST_SECONDS, LEAST_BURST)


def _answer(allowed: bool, bucket: TokenBucket, units: float, per_second: float) -> RateAnswer:
    quota = int(_burst(per_second))
    left = bucket.left()
    wanted = min(bucket.burst, quota) if allowed else units
    return RateAnswer(allowed, int(left), ceil(bucket.seconds_to_next(wanted)), quota)


limiter: Final = TenantLimiter()  # of this process
