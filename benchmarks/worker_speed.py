"""`python -m benchmarks.worker_speed`: changes that one worker applies in a second, beside another checkout's.

The same backlog is written for each checkout, under a table prefix of its own on one engine; then `manage.py run_stream
--once` of that checkout works through it, and its line of metrics tells changes and seconds. The checkouts take turns.
A backlog has many tenants with a few changes each, which is what costs a worker most: no two tenants share a write. The
tickets were opened on as many days as `--days` says: 1 is a burst of today's, 30 an import.

Beside the seconds stands processor time, of the worker from its start on and of the engine meanwhile: it moves less
where others use the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import django

from benchmarks import machine, stack
from benchmarks.messages import say
from portal import clock
from portal.engines.engine_process import ENGINES

_WRITTEN_AT_ONCE = 25  # items of one BatchWriteItem


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.worker_speed", description="What one stream worker applies."
    )
    parser.add_argument("--tenants", type=int, default=100, help="whose tickets change (100)")
    parser.add_argument("--tickets", type=int, default=50, help="of each tenant, opened and then resolved (50)")
    parser.add_argument("--days", type=int, default=30, help="on which each tenant's tickets were opened (30)")
    parser.add_argument("--rounds", type=int, default=3, help="of all checkouts in turn (3)")
    parser.add_argument("--engine", choices=[*ENGINES], default="ministack", help="ministack, if not given")
    parser.add_argument("--against", type=Path, metavar="PATH", help="another checkout, measured in turn with this one")
    options = parser.parse_args()
    checkouts = [stack.ROOT, *([options.against] if options.against else [])]
    with stack.engine(options.engine, keep=False, report=say) as engine:
        django.setup()
        figures: dict[Path, list[Figure]] = {checkout: [] for checkout in checkouts}
        for number in range(options.rounds):
            for checkout in checkouts:
                prefix = f"Bench{number}{checkouts.index(checkout)}"
                _manage(checkout, prefix, "create_tables", "--wait")
                _fill(prefix, options)
                figures[checkout].append(_catch_up(checkout, prefix, engine.pid or 0))
    medians = [Figure.median_of(figures[checkout]) for checkout in checkouts]
    for checkout, median in zip(checkouts, medians, strict=True):
        say(f"{checkout.name}: {median} (median of {options.rounds})")
    if options.against:
        ours, theirs = medians
        say(f"ratio: {ours.rate / theirs.rate:.1f} by the clock, {theirs.cpu / ours.cpu:.1f} by processor time")
    return 0


@dataclass(frozen=True)
class Figure:
    """Changes a second, and milliseconds of processor time that a change takes, in the worker and in the engine."""

    rate: float
    worker_ms: float
    engine_ms: float

    @property
    def cpu(self) -> float:
        return self.worker_ms + self.engine_ms

    @classmethod
    def median_of(cls, several: Sequence[Figure]) -> Figure:
        return cls(*(statistics.median(getattr(one, f.name) for one in several) for f in fields(cls)))

    def __str__(self) -> str:
        return (
            f"{self.rate:,.0f} changes a second; processor time of each {self.cpu:.2f} ms, "
            f"{self.worker_ms:.2f} of them in the worker"
        )


def _catch_up(checkout: Path, prefix: str, engine_group: int) -> Figure:
    """Let the worker of a checkout work through its backlog. Raises BenchmarkError where it did not count all of it."""
    worker, engine = _children_seconds(), machine.cpu_seconds(engine_group)
    metrics = json.loads(_manage(checkout, prefix, "run_stream", "--once").splitlines()[-1])
    if metrics["dead"]:
        raise stack.BenchmarkError(f"{checkout.name} could not count {metrics['dead']} of the changes.")
    worker, engine = _children_seconds() - worker, machine.cpu_seconds(engine_group) - engine
    events = metrics["events"]
    figure = Figure(events / metrics["seconds"], worker / events * 1000, engine / events * 1000)
    say(f"{checkout.name}: {events:.0f} changes in {metrics['seconds']} s; {figure}")
    return figure


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _manage(checkout: Path, prefix: str, *arguments: str) -> str:
    """Return what a command of a checkout prints; raises CalledProcessError where it fails."""
    environ = {**os.environ, "DYNAMODB_TABLE_PREFIX": prefix}
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=checkout, env=environ, stdout=subprocess.PIPE, text=True, check=True).stdout


def _fill(prefix: str, options: argparse.Namespace) -> None:
    """Write each tenant's tickets as they are opened, and once more as they are resolved."""
    from portal.dynamo import client

    ids = [uuid.uuid4().hex for _ in range(options.tenants)]
    table = f"{prefix}.Support.Tickets"
    requests = [{"PutRequest": {"Item": item}} for item in _images(ids, options)]
    for start in range(0, len(requests), _WRITTEN_AT_ONCE):
        some = {table: requests[start : start + _WRITTEN_AT_ONCE]}
        answer = client.connection("platform").call("BatchWriteItem", RequestItems=some)
        if answer["UnprocessedItems"]:
            raise stack.BenchmarkError("The engine did not take all of the backlog.")


def _images(tenant_ids: list[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    from tickets.ticket import stored
    from tickets.ticket.stored import SummaryItem

    for status in ("open", "resolved"):
        for number in range(1, options.tickets + 1):
            opened = datetime(2026, 9, 1, 10, tzinfo=UTC) + timedelta(days=number % options.days)
            resolved = {"resolved_at": clock.stamp(opened + timedelta(hours=30))} if status == "resolved" else {}
            for tenant_id in tenant_ids:
                values: dict[str, Any] = {"number": number, "title": "Printer", "priority": "normal", "status": status}
                values |= {
                    "requester_name": "Alice",
                    "created_at": clock.stamp(opened),
                    "tags": ["vpn", f"t{number % 3}"],
                    "days": {f"{opened:%Y-%m-%d}c": 1},
                }
                values |= {"updated_at": clock.stamp(opened), **resolved}
                values |= {"tenant_status": tenant_id, "resolver_updated": "x"}  # of indexes that nobody reads here
                yield SummaryItem(stored.ticket(tenant_id, number), stored.SUMMARY, **values).serialize()


if __name__ == "__main__":
    sys.exit(main())
