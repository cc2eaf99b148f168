"""Measure what follows the stream, on what was filled: counting, a rebuild beside a worker, an index, an import.

The worker is `manage.py run_stream`, as an operator starts it. Counting the rest of a kept fill takes no time, so then
there is no figure.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.fill import Filled
from benchmarks.memory import Resident, resident
from benchmarks.stack import BenchmarkError
from portal.dynamo.store import Store
from portal.engines.processes import Child
from portal.streams import shards
from proofs.portal_server import ROOT, STOP_SECONDS
from tickets.counting import merge, stored
from tickets.counting.stream_handler import Positions
from tickets.data import importer
from tickets.search import index_check, index_rebuild
from tickets.ticket.stored import TICKETS
from tickets.verification import rebuild

LEAST: Final = 200  # changes that a figure can be made of
ROWS: Final = 300  # of the archive that is imported


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


def catch_up(tenants: Sequence[Filled]) -> list[StreamWork]:
    """Count all that was filled. Return how fast that was, [] where too little was left. Raises BenchmarkError."""
    command = [sys.executable, "manage.py", "run_stream", "--once"]
    before = _cpu_of_children()
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    cpu = _cpu_of_children() - before
    if done.returncode:
        raise BenchmarkError(f"The stream worker ended with status {done.returncode}.")
    metrics: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    for tenant in tenants:
        # All moves out of RECENT, so that every tenant's counts lie in the same items.
        store = Store("worker", tenant.context.tenant_id)
        while (recent := stored.recent(store)).counts:
            merge.merge(store, recent, position=Positions(shards.arn(TICKETS)))
    changes = int(metrics["events"])
    if changes < LEAST:
        return []
    return [StreamWork("index and count changes", changes, changes / float(metrics["seconds"]), cpu * 1000 / changes)]


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def all_of(tenant: Filled) -> tuple[list[StreamWork], list[Resident]]:
    """Rebuild a tenant's aggregates beside a worker, make its index anew, import into it; and the worker's memory.

    Raises BenchmarkError where something had to be corrected, lacks afterwards, or is refused.
    """
    worker = Child("stream worker", [sys.executable, ROOT / "manage.py", "run_stream", "--metrics", "0"])
    try:
        done = [_timed(f"rebuild, {tenant.label} tickets", lambda: _rebuild(tenant))]
        memory = resident(worker.pid, "stream worker")
    finally:
        worker.stop(seconds=STOP_SECONDS)
    done.append(
        _timed(f"index, {tenant.label} tickets", lambda: index_rebuild.rebuild(tenant.context.repository).tickets)
    )
    verdict = index_check.check(tenant.context.repository)
    if verdict.state != index_check.OK:
        raise BenchmarkError(f"The search index of {tenant.slug} lacks {verdict.lacking} postings. {verdict.why}")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "archive.json"
        path.write_text(_archive())
        return [*done, _timed(f"import, {ROWS} tickets", lambda: _import(tenant, path))], memory


def _rebuild(tenant: Filled) -> int:
    done = rebuild.rebuild(tenant.context.repository)
    if done.removed:
        raise BenchmarkError(f"{len(done.removed)} counts of {tenant.slug} were wrong.")
    return done.tickets


def _archive() -> str:
    """Return an archive of issues with two comments each."""
    at = [f"2024-03-0{day}T09:00:00Z" for day in range(1, 9)]
    comments = [{"author": "bob", "body": f"Comment {n}", "createdAt": at[n], "updatedAt": at[n]} for n in range(1, 3)]
    issue = {
        "state": "OPEN", "author": "carol", "body": "It *broke*.", "labels": ["bug"], "comments": comments,
        "createdAt": at[0], "updatedAt": at[7],
    }  # fmt: skip
    rows = [{**issue, "number": n, "title": f"Issue {n}"} for n in range(1, ROWS + 1)]
    return json.dumps({"repo": f"example/{time.time_ns()}", "issues": rows, "pulls": []})


def _import(tenant: Filled, path: Path) -> int:
    done = importer.Import(tenant.context, path).run()
    if done.new != ROWS:
        raise BenchmarkError(f"{done.refused} rows of an archive were refused.")
    return done.new
