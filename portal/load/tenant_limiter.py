"""Limit each tenant in this process: to its rate, by a token bucket, and to some work at the same time.

That calls no database. A rate is a number of units a second, by the tenant's plan or its own. A request that only
reads is one unit, one that changes something several: it costs DynamoDB and the processor about that much more. Bursts
of BURST_SECONDS' worth are allowed. Several processes serve a tenant: each has a share of the rate, which
`rate_sharing.py` gives it.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from portal.errors import LimitReached
from portal.quotas import MOST_TENANTS, RecentTenants, TenantPlaces, TokenBucket

READ_UNITS: Final = 1
CHANGE_UNITS: Final = 5
BURST_SECONDS: Final = 10
LEAST_BURST: Final = 2 * CHANGE_UNITS  # so that a process with a small share of a rate still takes a form
MOST: Final = 100_000  # units a second that can be given
UNLIMITED: Final = 0.0
_ANY_OTHER: Final = "standard"  # the plan whose rate those have that are not named
_OFF: Final = "off"
_RATE: Final = re.compile(r"([a-z0-9-]{1,40})=([0-9]{1,6}(?:\.[0-9]{1,3})?)\Z")


def of(plan: str, own: float | None) -> float:
    """Return the units a second of a tenant of this plan, or its `own` where operators gave it one, or UNLIMITED.

    Raises ImproperlyConfigured where TENANT_RATES cannot be read.
    """
    if settings.TENANT_RATES == _OFF:
        return UNLIMITED
    return float(own) if own is not None else of_plan(plan)


def of_plan(plan: str) -> float:
    """Return the units a second of a plan; UNLIMITED where neither it nor `standard` has a rate."""
    rates = by_plan()
    return rates.get(plan, rates.get(_ANY_OTHER, UNLIMITED))


def by_plan() -> Mapping[str, float]:
    """Return the rates of the plans that have one, as TENANT_RATES gives them."""
    text: str = settings.TENANT_RATES
    return {} if text == _OFF else _read(text)


@lru_cache(maxsize=8)
def _read(text: str) -> Mapping[str, float]:
    found = {}
    for word in text.split():
        match = _RATE.match(word)
        if match is None or not 0 < float(match[2]) <= MOST:
            raise ImproperlyConfigured(f"TENANT_RATES has {word!r}, which is no plan with its rate, as standard=50 is.")
        found[match[1]] = float(match[2])
    return found


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


class _Meter:
    """One tenant at this process. `rate` is this process's part of `per_second`, which the bucket is filled with."""

    __slots__ = ("asked", "bucket", "heard_at", "per_second", "rate")

    def __init__(self) -> None:
        self.bucket: TokenBucket | None = None
        self.heard_at = 0.0
        self.per_second = self.rate = UNLIMITED
        self.asked = 0.0  # units, whatever became of them


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
            meter.asked += units
            return None if bucket is None else _answer(bucket.take(units), bucket, units, per_second)

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
            meter.asked += units
            return _answer(False, bucket, units, meter.per_second)

    def asked(self) -> dict[str, tuple[float, float]]:
        """Return, by tenant, the rate as it was last heard of, and the units that were asked for so far."""
        with self._lock:
            return {tenant_id: (meter.per_second, meter.asked) for tenant_id, meter in self._meters.all()}

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


# --- what is at work at the same time in this process: more is refused ---
# A search first waits a moment, because searches of one person who types come close together.

SEARCH_WAIT_SECONDS = 2.0  # that a search waits for a place; it holds a thread of its tenant meanwhile
TOO_MANY: Final = "too_many_at_once"  # the code of what is refused here, for programs
_threads: int | None = None
stopping: Final = threading.Event()  # set when this process is to end
jobs: Final[set[threading.Thread]] = set()  # work beside requests, which ends itself soon after `stopping` is set


class TooHeavy(LimitReached):
    """The tenant has as much heavy work under way as it may have at a time."""

    code = TOO_MANY


def serve_with(threads: int) -> None:
    """Take note of how many threads this process answers requests with, where that is not WEB_THREADS."""
    global _threads
    _threads = threads


def _half_of_the_threads() -> int:
    return max(1, (_threads or settings.WEB_THREADS) // 2)


requests: Final = TenantPlaces(_half_of_the_threads)
guests: Final = TenantPlaces(_half_of_the_threads)  # all people outside together, under one name
heavy: Final = TenantPlaces(lambda: settings.HEAVY_AT_A_TIME)  # bulk changes, exports and the like
searches: Final = TenantPlaces(lambda: settings.SEARCHES_AT_A_TIME)  # those while somebody types among them
