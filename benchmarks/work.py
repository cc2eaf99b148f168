"""Measure what follows the stream, on what was filled: counting, a rebuild beside a worker, an index.

The worker is `manage.py run_stream`, as an operator starts it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.fill import Filled
from benchmarks.memory import Resident, resident
from benchmarks.stack import BenchmarkError
from portal.dynamo.store import Store
from portal.engines.processes import Child
from portal.streams import shards
from proofs.portal_server import ROOT, STOP_SECONDS
from tickets.counting import merge, stored
from tickets.counting.stream_handler import Positions
from tickets.search import index_check, index_rebuild
from tickets.ticket.stored import TICKETS
from tickets.verification import rebuild


class StreamWork(NamedTuple):
    """Changes or tickets a second, and the milliseconds of our own processor time that each took."""

    title: str
    number: int
    per_second: float
    cpu_ms: float


def _timed(title: str, do: Callable[[], int]) -> StreamWork:
    started, cpu = time.monotonic(), time.process_time()
    number = do()
    seconds, cpu = time.monotonic() - started, time.process_time() - cpu
    return StreamWork(title, number, number / seconds, cpu * 1000 / number)


def catch_up(tenant: Filled) -> list[StreamWork]:
    """Count all that was filled, and return how fast that was. Raises BenchmarkError."""
    command = [sys.executable, "manage.py", "run_stream", "--once"]
    before = _cpu_of_children()
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    cpu = _cpu_of_children() - before
    if done.returncode:
        raise BenchmarkError(f"The stream worker ended with status {done.returncode}.")
    metrics: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    # All moves out of RECENT, so that the counts lie in the same items each time.
    store = Store("worker", tenant.context.tenant_id)
    while (recent := stored.recent(store)).counts:
        merge.merge(store, recent, position=Positions(shards.arn(TICKETS)))
    changes = int(metrics["events"])
    return [StreamWork("index and count changes", changes, changes / float(metrics["seconds"]), cpu * 1000 / changes)]


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def all_of(tenant: Filled) -> tuple[list[StreamWork], list[Resident]]:
    """Rebuild a tenant's aggregates beside a worker, and make its index anew; and the worker's memory.

    Raises BenchmarkError where something had to be corrected, or lacks afterwards.
    """
    worker = Child("stream worker", [sys.executable, ROOT / "manage.py", "run_stream", "--metrics", "0"])
    try:
        done = [_timed(f"rebuild, {tenant.size:,} tickets", lambda: _rebuild(tenant))]
        memory = resident(worker.pid, "stream worker")
    finally:
        worker.stop(seconds=STOP_SECONDS)
    done.append(
        _timed(f"index, {tenant.size:,} tickets", lambda: index_rebuild.rebuild(tenant.context.repository).tickets)
    )
    verdict = index_check.check(tenant.context.repository)
    if verdict.state != index_check.OK:
        raise BenchmarkError(f"The search index lacks {verdict.lacking} postings. {verdict.why}")
    return done, memory


def _rebuild(tenant: Filled) -> int:
    done = rebuild.rebuild(tenant.context.repository)
    if done.removed:
        raise BenchmarkError(f"{len(done.removed)} counts were wrong.")
    return done.tickets
