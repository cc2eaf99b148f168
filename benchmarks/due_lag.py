"""`python -m benchmarks.due_lag`: by how much missed targets are told late, while one desk has many of them.

Tickets of a busy desk and of a quiet one miss their targets at an even rate, and one worker tells of them as it does in
production: receipts, events, the next row. The lag of each is the time from its moment to the call of its handler.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import django

from benchmarks import stack
from benchmarks.stack import say
from portal.engines.engine_process import ENGINES

OPENED = datetime(2026, 3, 2, 8, tzinfo=UTC)
TARGET = timedelta(days=1)
LEAD = timedelta(seconds=5)  # in which the worker begins
QUIET_SECONDS = 2.0  # between two targets of the quiet desk


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.due_lag", description=__doc__)
    parser.add_argument("--rate", type=float, default=100_000 / 3600, help="targets a second of the busy desk (27.8)")
    parser.add_argument("--seconds", type=int, default=120, help="for so long (120)")
    parser.add_argument("--engine", choices=[*ENGINES], default="dynamodb-local")
    options = parser.parse_args()
    with stack.engine(options.engine, keep=False, report=say):
        django.setup()
        _measure(options.rate, options.seconds)
    return 0


def _measure(rate: float, seconds: int) -> None:
    dues = {"busy": [one / rate for one in range(int(rate * seconds))]}
    dues["quiet"] = [one * QUIET_SECONDS for one in range(int(seconds / QUIET_SECONDS))]
    desks = _opened(dues)
    say(f"Telling of {len(dues['busy'])} targets of one desk and {len(dues['quiet'])} of another; load {stack.load()}.")
    began, cpu = time.monotonic(), time.process_time()
    lags = _told(desks, {slug: len(offsets) for slug, offsets in dues.items()}, until=began + seconds + 300)
    took, cpu = time.monotonic() - began - LEAD.total_seconds(), time.process_time() - cpu
    rows = []
    for slug, found in lags.items():
        cut = statistics.quantiles(found, n=100)
        rows.append([slug, str(len(found)), *(f"{value:.2f}" for value in (cut[49], cut[94], cut[98], max(found)))])
    told = sum(map(len, lags.values()))
    sys.stdout.write(stack.table(["desk", "targets", "p50 s", "p95 s", "p99 s", "most s"], rows) + "\n")
    rate_told, each = told / took, cpu * 1000 / told
    sys.stdout.write(f"{rate_told:.1f} a second; {each:.1f} ms of processor time each; load {stack.load()}.\n")


def _opened(dues: dict[str, list[float]]) -> dict[str, Any]:
    """Return a desk for each name, with tickets whose targets are due so many seconds after TARGET."""
    from benchmarks import fill  # models read the environment, which names the engine only now
    from portal import clock
    from tenants.audit_trail.recording import SYSTEM, Actor
    from tenants.lifecycle import tenant_lifecycle
    from tenants.tenancy.context import enter
    from tickets.desk import creating
    from tickets.sla import policy_versions
    from tickets.sla.calendar import Calendar
    from tickets.sla.policy import TargetRule

    with tempfile.TemporaryDirectory() as scratch:
        fill.prepare_tables(Path(scratch) / "schema")
    (user, _), now, desks = fill.person(), [OPENED], dict[str, Any]()
    clock.now = lambda: now[0]
    always = Calendar("UTC", (((0, 1440),),) * 7)
    rules = (TargetRule(first=int(TARGET.total_seconds())),)
    for slug, offsets in dues.items():
        now[0] = OPENED - timedelta(hours=1)
        made = tenant_lifecycle.create(name=slug.capitalize(), slug=slug, owner=user, by=SYSTEM)
        desk: Any = enter(user, made.tenant_id)
        wanted = replace(policy_versions.read(desk), rules=rules, warning=0, country="", calendar=always)
        policy_versions.save(desk, wanted, seen=wanted.version, by=Actor(user.id))
        desks[slug] = enter(user, made.tenant_id)  # with the targets
        with stack.progress(f"Opening {len(offsets)} tickets", len(offsets)) as advance:
            for offset in offsets:
                now[0] = OPENED + timedelta(seconds=offset)
                creating.create(desks[slug], title="The printer does not print")
                advance(1)
    return desks


def _told(desks: dict[str, Any], most: dict[str, int], *, until: float) -> dict[str, list[float]]:
    """Let a worker tell of the targets from LEAD before the first one on. Return the lags in seconds by desk."""
    from delivery.timers import due
    from delivery.timers.due_worker import DueWorker
    from portal import clock
    from tickets.sla import tracking

    begin, lags = time.monotonic(), defaultdict[str, list[float]](list)
    clock.now = lambda: OPENED + TARGET - LEAD + timedelta(seconds=time.monotonic() - begin)

    def tell(tenant: Any, entity: str, version: str, at: datetime) -> None:
        lags[tenant.slug].append((clock.now() - at).total_seconds())
        tracking.tell(tenant, entity, version, at)

    due._handlers[tracking.KIND_OF_WORK] = tell
    with DueWorker().running():
        while time.monotonic() < until and any(len(lags[slug]) < count for slug, count in most.items()):
            time.sleep(0.2)
    if faults := [fault for desk in desks.values() for n in range(1, 21) for fault in tracking.check(desk, n).faults]:
        raise stack.BenchmarkError("; ".join(faults))
    return lags


if __name__ == "__main__":
    sys.exit(main())
