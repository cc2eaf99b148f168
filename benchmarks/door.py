"""Measure what deciding about a request costs: `python -m benchmarks.door`. Status 1: more than LIMIT_US each.

Decisions for many tenants in random order, allowed and refused, with the bill of calls to the database, which is none.
Beside them, the check of the cookie's signature, which each request has anyway, so that the machine can be told from
the code, and the same of an API key: its checksum, its digest and the comparison, without what is read.
"""

from __future__ import annotations

import hmac
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Final

from tenants.api_keys import key_authentication
from tenants.tenancy import request_identity

LIMIT_US: Final = 20.0
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
    from tenants.api_keys import key_text

    limiter = TenantLimiter()
    chance = random.Random(7)  # noqa: S311  # repeatable
    tenants = [f"{chance.randrange(TENANTS):032x}" for _ in range(DECISIONS)]
    cookie = request_identity.write_cookie(
        request_identity.Ids("s" * 32, "a" * 32, (request_identity.Pin("acme", "b" * 32),))
    )

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
            request_identity.read_cookie(cookie)

    text = key_text.new("b" * 32, "0aZ9bY8c")
    stored = key_text.digest(text)

    def verify() -> None:
        for _ in tenants:
            key_authentication.address_in(text)
            hmac.compare_digest(key_text.digest(text), stored)

    work = {"decide": decide, "refuse": refuse, "check a cookie": check, "verify an API key": verify}
    with meter.measure() as bill:
        found = {name: _each(one) for name, one in work.items()}
    for name, each in found.items():
        ratio = each / found["check a cookie"]
        sys.stdout.write(f"{name}: {each:.1f} us, {ratio:.2f} of a cookie's check\n")
    kept = len(limiter.counts())
    sys.stdout.write(f"{len(bill.calls)} calls; {kept} tenants kept of {TENANTS}; limit {LIMIT_US:.0f} us\n")
    slow = max(found["decide"], found["refuse"]) > LIMIT_US
    return int(slow or bool(bill.calls))


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
