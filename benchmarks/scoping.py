"""Measure what the guard and the credentials per tenant cost: `python -m benchmarks.scoping`.

Two clients on the same engine take turns, request by request, so that the machine's noise hits both alike: one plain,
one with the policy guard and with credentials assumed for the tenant. The difference of their distributions is the
price of scoping. A second part fills the credentials cache with 10,000 tenants and says what it holds in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

from portal.engines.endpoint import point_at
from portal.engines.engine_process import start_engine

ROLE: Final = "arn:aws:iam::000000000000:role/pooldesk-tenant"
TRUST: Final = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole", "sts:TagSession"]},
    ],
}
TENANTS: Final = 50
LIMIT_MS: Final = 0.3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scoping", description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=3000, help="measured requests of each client")
    options = parser.parse_args()
    with start_engine("ministack") as engine:
        point_at(engine.endpoint_url, os.environ)
        os.environ |= {"DJANGO_SETTINGS_MODULE": "portal.settings", "DEBUG": "1", "TENANT_ROLE_ARN": ROLE}
        import django

        django.setup()
        measure(options.requests)
        cached()


def measure(requests: int) -> None:
    from django.conf import settings

    from portal.dynamo import client, provisioning
    from portal.isolation import guard
    from tickets.ticket import stored
    from tickets.ticket.stored import TICKETS

    provisioning.create_all()
    iam = client._create("iam", client._session(settings.DYNAMODB_ENDPOINT_URL), settings.DYNAMODB_ENDPOINT_URL)
    iam.create_role(RoleName="pooldesk-tenant", AssumeRolePolicyDocument=json.dumps(TRUST))
    plain, scoped = client.make_client("platform"), client.make_client("tenant")
    tenants = [f"{n:032x}" for n in range(TENANTS)]

    def ask(with_client: Any, tenant: str) -> float:
        key = {"pk": {"S": stored.ticket(tenant, 1)}, "sk": {"S": stored.SUMMARY}}
        started = time.perf_counter()
        with guard.acting_for(tenant):
            with_client.get_item(TableName=TICKETS.full_name, Key=key)
        return (time.perf_counter() - started) * 1000

    for tenant in tenants:  # warm: connections, credentials, compiled patterns
        ask(plain, tenant), ask(scoped, tenant)
    times: dict[str, list[float]] = {"plain": [], "scoped": []}
    for n in range(requests):
        tenant = tenants[n % TENANTS]
        pair = [("plain", plain), ("scoped", scoped)]
        for name, chosen in pair if n % 2 else reversed(pair):
            times[name].append(ask(chosen, tenant))
    print(f"GetItem, {requests} each, taking turns; load {os.getloadavg()[0]:.1f}")  # noqa: T201
    for label, of in _QUANTILES.items():
        a, b = of(times["plain"]), of(times["scoped"])
        print(f"  {label}: plain {a:.3f} ms, scoped {b:.3f} ms, ratio {b / a:.2f}, added {b - a:+.3f} ms")  # noqa: T201
    added = sorted(b - a for a, b in zip(times["plain"], times["scoped"], strict=True))
    print(f"  pair by pair: median {statistics.median(added):+.3f} ms (limit {LIMIT_MS} ms)")  # noqa: T201


_QUANTILES: Final[dict[str, Callable[[list[float]], float]]] = {
    "p50": statistics.median,
    "p95": lambda values: statistics.quantiles(values, n=100)[94],
    "p99": lambda values: statistics.quantiles(values, n=100)[98],
}


def cached() -> None:
    from botocore.credentials import ReadOnlyCredentials

    from portal.isolation.credentials import SESSION, TenantCredentials

    def assume(tenant: str) -> tuple[ReadOnlyCredentials, float]:
        return ReadOnlyCredentials(tenant[:20], tenant + "s" * 8, tenant * 32, None), time.time() + SESSION

    tracemalloc.start()
    cache = TenantCredentials(assume)
    for n in range(10_000):
        cache.get(f"{n:032x}")
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"Credentials of 10,000 tenants: {used / 1e6:.1f} MB (limit 50 MB)")  # noqa: T201


if __name__ == "__main__":
    main()
