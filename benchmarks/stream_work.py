"""Measure the stream worker on what was filled, a rebuild beside it, and an import. Dashboards have numbers by that.

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import stack
from benchmarks.fill import Filled
from benchmarks.memory import Resident, resident
from benchmarks.stack import table
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


@dataclass(frozen=True)
class StreamWork:
    """`number` changes or tickets that took so many seconds, and `cpu` seconds of our own processor time."""

    title: str
    number: int
    seconds: float
    cpu: float

    @property
    def per_second(self) -> float:
        return self.number / self.seconds

    @property
    def cpu_each(self) -> float:
        """The processor time of one, in milliseconds."""
        return self.cpu * 1000 / self.number


def catch_up(tenants: Sequence[Filled]) -> StreamWork | None:
    """Count all that was filled. Return how fast that was, None where too little was left. Raises BenchmarkError."""
    command = [sys.executable, "manage.py", "run_stream", "--once"]
    before = _cpu_of_children()
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    cpu = _cpu_of_children() - before
    if done.returncode:
        raise stack.BenchmarkError(f"The stream worker ended with status {done.returncode}.")
    metrics: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    for tenant in tenants:
        _merge(tenant.tenant_id)
    changes = int(metrics["events"])
    if changes < LEAST:
        return None
    return StreamWork("index and count changes", changes, float(metrics["seconds"]), cpu)


def _merge(tenant_id: str) -> None:
    """Move all out of RECENT, so that every tenant's counts lie in the same items."""
    position, store = Positions(shards.arn(TICKETS)), Store("worker", tenant_id)
    while (recent := stored.recent(store)).counts:
        merge.merge(store, recent, position=position)


def rebuilt(tenant: Filled) -> tuple[StreamWork, list[Resident]]:
    """Rebuild a tenant's aggregates beside a worker, and return the memory of this as well.

    Raises BenchmarkError where there was anything to correct.
    """
    with _worker() as worker:
        with _timed() as took:
            done = rebuild.rebuild(tenant.context.repository)
        memory = resident(worker.pid, "stream worker")
    if done.removed:
        raise stack.BenchmarkError(f"{len(done.removed)} counts of {tenant.slug} were wrong.")
    return StreamWork(f"rebuild, {tenant.label} tickets", done.tickets, *took), memory


def imported(tenant: Filled) -> StreamWork:
    """Import an archive of issues with two comments each. Raises BenchmarkError where a row is refused."""
    at = [f"2024-03-0{day}T09:00:00Z" for day in range(1, 9)]
    comments = [{"author": "bob", "body": f"Comment {n}", "createdAt": at[n], "updatedAt": at[n]} for n in range(1, 3)]
    issue = {"state": "OPEN", "author": "carol", "body": "It *broke*.", "labels": ["bug"], "comments": comments}
    rows = [
        {**issue, "number": n, "title": f"Issue {n}", "createdAt": at[0], "updatedAt": at[7]}
        for n in range(1, ROWS + 1)
    ]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "archive.json"
        path.write_text(json.dumps({"repo": f"example/{time.time_ns()}", "issues": rows, "pulls": []}))
        with _timed() as took:
            done = importer.Import(tenant.context, path).run()
    if done.new != ROWS:
        raise stack.BenchmarkError(f"{done.refused} rows of an archive were refused.")
    return StreamWork(f"import, {ROWS} tickets", done.new, *took)


def indexed(tenant: Filled) -> StreamWork:
    """Make a tenant's search index anew. Raises BenchmarkError where it lacks anything afterwards."""
    with _timed() as took:
        done = index_rebuild.rebuild(tenant.context.repository)
    verdict = index_check.check(tenant.context.repository)
    if verdict.state != index_check.OK:
        raise stack.BenchmarkError(f"The search index of {tenant.slug} lacks {verdict.lacking} postings. {verdict.why}")
    return StreamWork(f"index, {tenant.label} tickets", done.tickets, *took)


@contextmanager
def _timed() -> Iterator[list[float]]:
    """Yield a list that gets the seconds, and those of processor time, when the context ends."""
    took: list[float] = []
    started, cpu = time.monotonic(), time.process_time()
    yield took
    took += [time.monotonic() - started, time.process_time() - cpu]


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def _worker() -> Iterator[Child]:
    child = Child("stream worker", [sys.executable, ROOT / "manage.py", "run_stream", "--metrics", "0"])
    try:
        yield child
    finally:
        child.stop(seconds=STOP_SECONDS)


def as_json(one: StreamWork) -> dict[str, Any]:
    return {**asdict(one), "per_second": round(one.per_second, 1), "cpu_each": round(one.cpu_each, 3)}


def as_text(done: Sequence[StreamWork]) -> str:
    rows = [
        [one.title, f"{one.number:,}", f"{one.seconds:.1f}", f"{one.per_second:,.0f}", f"{one.cpu_each:.2f}"]
        for one in done
    ]
    return table(["stream work", "number", "seconds", "a second", "CPU ms each"], rows)
