"""Measure what deciding about a request costs: `python -m benchmarks.door`. Status 1: more than LIMIT_US each, or fewer
than KEYS_PER_SECOND API keys verified.

Decisions for many tenants in random order, allowed and refused, with the bill of calls to the database, which is none.
Beside them, the check of the cookie's signature, which each request has anyway, so that the machine can be told from
the code. A key is verified with its item at hand, for the read is the engine's.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final
from unittest.mock import patch

LIMIT_US: Final = 20.0
KEYS_PER_SECOND: Final = 1_000
DECISIONS: Final = 20_000
ROUNDS: Final = 7
TENANTS: Final = 12_000  # more than are remembered


def main() -> int:
    """Measure, say what was found, and return the exit status."""
    os.environ |= {"DJANGO_SETTINGS_MODULE": "portal.settings", "DEBUG": "1"}
    import django

    django.setup()
    from portal.dynamo import meter
    from portal.limits.tenant_limiter import TenantLimiter
    from tenants.tenancy import pinned_tenant

    limiter = TenantLimiter()
    chance = random.Random(7)  # noqa: S311  # repeatable
    tenants = [f"{chance.randrange(TENANTS):032x}" for _ in range(DECISIONS)]
    cookie = pinned_tenant.write_cookie(pinned_tenant.Ids("s" * 32, "a" * 32, "b" * 32))

    def decide() -> None:
        for tenant in tenants:
            limiter.foresee(tenant, 1)
            limiter.spend(tenant, 1, per_second=50)

    def refuse() -> None:
        for _ in tenants:
            limiter.foresee("b" * 32, 1)
            limiter.spend("b" * 32, 5, per_second=0.01)

    def check() -> None:
        for _ in tenants:
            pinned_tenant.read_cookie(cookie)

    verify, mistype = _with_key()
    with meter.measure() as bill:
        found = {"decide": _each(decide), "refuse": _each(refuse), "check a cookie": _each(check)}
        found |= {"verify a key": _each(verify), "refuse a mistyped key": _each(mistype)}
    for name, each in found.items():
        ratio = each / found["check a cookie"]
        sys.stdout.write(f"{name}: {each:.1f} us, {ratio:.2f} of a cookie's check\n")
    kept = len(limiter.counts())
    sys.stdout.write(f"{len(bill.calls)} calls; {kept} tenants kept of {TENANTS}; limit {LIMIT_US:.0f} us\n")
    slow = max(found["decide"], found["refuse"]) > LIMIT_US or found["verify a key"] > 1e6 / KEYS_PER_SECOND
    return int(slow or bool(bill.calls))


def _with_key() -> tuple[Callable[[], None], Callable[[], None]]:
    """Return what verifies a key DECISIONS times, and what refuses a mistyped one as often."""
    from portal import clock
    from tenants.api_keys import calling, key_text
    from tenants.api_keys.calling import KeyRefused
    from tenants.api_keys.items import ApiKeyItem
    from tenants.tenancy.items import TenantItem

    tenant_id, now = "b" * 32, clock.stamp()
    text = key_text.new(tenant_id, "Ab0Cd1Ef")
    mistyped = text[:-1] + ("A" if text[-1] != "A" else "B")
    key = ApiKeyItem(tenant_id, "Ab0Cd1Ef", key_id="a" * 32, digest=key_text.digest(text), name="Benchmark")
    key.scopes, key.addresses, key.created_at = ["tickets:read"], ["203.0.113.0/24"], now
    key.last_used_at = clock.stamp(clock.now() + timedelta(hours=1))  # so that no use is noted
    stored = [key, TenantItem(tenant_id, name="Benchmark", slug="benchmark", created_at=now)]

    def verify() -> None:
        with patch("portal.dynamo.platform.get_all", lambda wanted, consistent: stored):
            for _ in range(DECISIONS):
                calling.authenticate(text, address="203.0.113.7")

    def mistype() -> None:
        for _ in range(DECISIONS):
            with suppress(KeyRefused):
                calling.authenticate(mistyped, address="203.0.113.7")

    return verify, mistype


def _each(work: Callable[[], None]) -> float:
    """Return the microseconds of processor time that one of DECISIONS takes: the median of ROUNDS."""
    times = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        work()
        times.append((time.thread_time() - began) / DECISIONS * 1e6)
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
