"""One run from the empty tables to the table of pages. Imported when an engine is running and Django is set up."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from django.core.management import call_command

from benchmarks import measure, memory, stack, work
from benchmarks.fill import fill
from benchmarks.floor import Floor
from benchmarks.measure import Stopwatch
from benchmarks.measured_pages import PAGES, visit
from benchmarks.stack import KEPT, progress, say, table
from portal.engines.engine_process import Engine
from proofs.portal_server import ROOT, serving

_COSTS: Final = {"trips": "trips", "calls": "calls", "read_units": "read", "write_units": "write"}
_TIMES: Final = {
    "p50": "p50 ms", "p95": "p95", "portal_cpu": "CPU ms: portal", "engine_cpu": "engine", "per_second": "req/s",
}  # fmt: skip
_COMPARED: Final = {"trips": "trips", "p50": "p50", "portal_cpu": "CPU", "per_second": "req/s"}
_FLOOR: Final = (("p50", "floor_p50"), ("portal_cpu", "floor_portal_cpu"))
Figures = Mapping[str, Any]


def run(options: argparse.Namespace, engine: Engine) -> None:
    """Fill, count, time, and write it all down. Raises BenchmarkError."""
    # Templates name static files by their hashes, as they do in production.
    call_command("collectstatic", interactive=False, verbosity=0)
    with progress("Filling", options.tickets) as advance:
        filled, password = fill(options.tickets, advance)
    say("Counting what was filled, and what pages cost.")
    done = work.catch_up(filled)
    # One sequence more than bursts have: that of the floor.
    visitor = visit(filled, password=password, sequences=options.concurrency + 1)
    if options.profile:
        measure.profile(visitor, options.profile, options.requests)
        return
    counts = {page.name: measure.count(visitor, page) for page in PAGES}
    floor, load = Floor(visitor, engine.pid or 0), stack.load()
    trips = {page.name: floor.record(page) for page in PAGES}
    with serving(engine.log_path.parent / "portal.log", workers=stack.WORKERS, environ={}) as server:
        watch = Stopwatch(server, engine.pid or 0, visitor, options.requests, options.concurrency, floor.replay)
        say(f"Measuring, {watch.rounds} rounds. Load average {load}.")
        with progress("Measuring", watch.bursts) as advance:
            found = watch.run(advance)
        resident = [*memory.resident(server.pid, "web"), *memory.resident(engine.pid or 0, "engine")]
    visitor.verify()
    say("Rebuilding the aggregates and the index.")
    more, worker = work.all_of(filled)
    report = {
        "commit": _commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": stack.description(),
        "engine": engine.kind,
        "web": f"gunicorn, {stack.WORKERS} workers of {stack.THREADS} threads",
        "requests": options.requests,
        "tickets": f"{options.tickets:,}",
        "load": [load, stack.load()],
        "pages": {
            page.name: {"title": page.title, **counts[page.name], **found[page.name], "floor_trips": trips[page.name]}
            for page in PAGES
        },
        "work": {one.title: one._asdict() for one in (*done, *more)},
        "memory": [one._asdict() for one in (*resident, *worker)],
    }
    then = json.loads(options.against.read_text())
    sys.stdout.write("\n\n".join(_texts(report, then)) + "\n")
    for path in (options.json, KEPT if options.keep_as_release else None):
        if path:
            path.write_text(json.dumps(report, indent=1) + "\n")


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def _texts(report: Figures, then: Figures) -> list[str]:
    """Return what is printed: the pages, one a row, the work behind the stream, and memory."""
    about = ("commit", "date", "machine", "engine", "web", "tickets")
    heading = "\n".join(
        f"{name}: {'; '.join(str(one[part]) for part in about)} tickets."
        for name, one in (("This run", report), ("Compared with", then))
    )
    pages = [
        [
            one["title"], *(f"{one[name]:g}" for name in _COSTS), *(f"{one[name]:.1f}" for name in _TIMES),
            *(_ratio(one, before, figure) for figure in _COMPARED),
            *(f"{_ratio(one, one, figure, of)} ({_ratio(before, before, figure, of)})" for figure, of in _FLOOR),
        ]
        for one, before in ((one, then["pages"].get(name)) for name, one in report["pages"].items())
    ]  # fmt: skip
    done = [
        [one["title"], f"{one['number']:,}", f"{one['per_second']:,.0f}", f"{one['cpu_ms']:.2f}",
         *(_ratio(one, then["work"].get(one["title"]), figure) for figure in ("per_second", "cpu_ms"))]
        for one in report["work"].values()
    ]  # fmt: skip
    resident, before = ([memory.Resident(**each) for each in of["memory"]] for of in (report, then))
    ratios = [f"{name} / before" for name in _COMPARED.values()]
    return [
        f"{heading}\nLoad average {report['load'][0]} before, {report['load'][1]} behind.",
        table(["page", *_COSTS.values(), *_TIMES.values(), *ratios, "p50 / floor", "CPU / floor"], pages),
        table(["work", "number", "a second", "CPU ms each", "a second / before", "CPU / before"], done),
        memory.as_text(resident, before),
    ]


def _ratio(above: Figures | None, below: Figures | None, figure: str, of: str = "") -> str:
    """Return one figure over another; a dash where one is missing or nothing."""
    divisor = below.get(of or figure) if below else None
    return f"{above[figure] / divisor:.2f}" if above and divisor else "-"
