"""One run from the empty tables to the table of pages. Imported when an engine is running and Django is set up."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from django.core.management import call_command

from benchmarks import measure, memory, stack, work
from benchmarks.fill import Filled, person, prepare_tables, tenant
from benchmarks.floor import Floor
from benchmarks.measure import Cost, Rounds, Stopwatch
from benchmarks.measured_pages import PAGES, MeasuredPage, visit
from benchmarks.stack import progress, say, table
from benchmarks.work import StreamWork
from portal.engines.engine_process import Engine
from proofs.portal_server import ROOT, serving

SHARDS: Final = 4
KEPT: Final = Path(__file__).with_name("release.json")
Counts = Mapping[tuple[str, str], Cost]  # by page and tenant


def run(options: argparse.Namespace, engine: Engine) -> int:
    """Fill, count, time, and write it all down; return the exit status."""
    tenants, password = _filled(options, engine)
    if options.profile:
        visitor = visit(tenants[0], password=password, sequences=1)
        measure.profile(visitor, _page(options.profile), options.requests, sys.stdout.write)
        return 0
    say("Counting what was filled.")
    done = work.catch_up(tenants)
    # One sequence more than bursts have: that of the floor.
    visitors = [visit(one, password=password, sequences=options.concurrency + 1) for one in tenants]
    say("Counting what pages cost.")
    counts = {(p.name, v.tenant.slug): measure.count(v, p) for v in visitors for p in PAGES}
    floor = Floor(visitors[0], engine.pid or 0)
    trips = {page.name: floor.record(page) for page in PAGES}
    load = stack.load()
    with serving(engine.log_path.parent / "portal.log", workers=stack.WORKERS, environ={}) as server:
        watch = Stopwatch(server, engine.pid or 0, visitors, options.requests, options.concurrency, floor.replay)
        say(f"Measuring, {watch.rounds} rounds. Load average {load}.")
        with progress("Measuring", watch.bursts) as advance:
            rounds = watch.run(advance)
        resident = [*memory.resident(server.pid, "web"), *memory.resident(engine.pid or 0, "engine")]
    for visitor in visitors:
        visitor.verify()
    say("Rebuilding the aggregates and the index of the smallest, and importing into it.")
    more, worker = work.all_of(tenants[0])
    report = {
        "commit": _commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": stack.description(),
        "engine": engine.kind,
        "web": f"gunicorn, {stack.WORKERS} workers of {stack.THREADS} threads",
        "requests": options.requests,
        "tickets": tenants[0].label,
        "load": [load, stack.load()],
        "pages": {
            page.name: _figures(page, tenants, counts, rounds, options.concurrency) | {"floor_trips": trips[page.name]}
            for page in PAGES
        },
        "work": {one.title: one._asdict() for one in (*done, *more)},
        "memory": [one._asdict() for one in (*resident, *worker)],
    }
    return _written(report, options)


def _written(report: dict[str, Any], options: argparse.Namespace) -> int:
    """Print and keep the report; the exit status."""
    then = json.loads(KEPT.read_text())
    resident, before = ([memory.Resident(**each) for each in of["memory"]] for of in (report, then))
    parts = [_heading(report, then), *_tables(report, then), memory.as_text(resident, before)]
    sys.stdout.write("\n\n".join(parts) + "\n")
    for path in (options.json, KEPT if options.keep_as_release else None):
        if path:
            path.write_text(json.dumps(report, indent=1) + "\n")
    different = [f"{name} ({', '.join(one['differs'])})" for name, one in report["pages"].items() if one["differs"]]
    say(f"The counts differ between sizes: {', '.join(different)}." if different else "All sizes cost the same.")
    return 1 if different else 0


def _filled(options: argparse.Namespace, engine: Engine) -> tuple[list[Filled], str]:
    """Return a tenant of each size and one in shards, and the password of who is in all; for a profile the largest."""
    shapes = [(size, 1) for size in options.sizes]
    shapes.append((options.sizes[len(options.sizes) // 2], SHARDS))
    if options.profile:
        shapes = shapes[-2:-1]
    # Templates name static files by their hashes, as they do in production.
    call_command("collectstatic", interactive=False, verbosity=0)
    prepare_tables((engine.state_dir or engine.log_path.parent) / "shape")
    user, password = person()
    with progress("Filling", sum(size for size, _ in shapes)) as advance:
        return [tenant(user, size=size, shards=shards, advance=advance) for size, shards in shapes], password


def _page(name: str) -> MeasuredPage:
    page = next((p for p in PAGES if p.name == name), None)
    if page is None:
        raise stack.BenchmarkError(f"There is no page {name!r}: {', '.join(p.name for p in PAGES)}.")
    return page


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def _figures(
    page: MeasuredPage, tenants: Sequence[Filled], counts: Counts, rounds: Rounds, most: int
) -> dict[str, Any]:
    """Return what is known of a page: its cost and times in the smallest tenant, its median in each, and its growth."""
    plain = [one.slug for one in tenants if one.shards == 1]
    costs = {one.slug: counts[page.name, one.slug] for one in tenants}
    alone = {one.slug: rounds[page.name, one.slug, 1] for one in tenants}
    ratio, verdict = measure.growth(alone[plain[0]], alone[plain[-1]])
    of_page = measure.figures(alone[plain[0]], rounds[page.name, plain[0], most])
    floor = rounds[page.name, plain[0], measure.FLOOR]
    of_floor = measure.figures(floor, floor)
    return {
        "title": page.title,
        **costs[plain[0]],
        **of_page,
        **{f"floor_{name}": of_floor[name] for name in ("p50", "portal_cpu")},
        "p50_of": {one.label: measure.figures(alone[one.slug], alone[one.slug])["p50"] for one in tenants},
        "growth": ratio,
        "verdict": verdict,
        "differs": measure.differences(
            page, [costs[slug] for slug in plain], [cost for slug, cost in costs.items() if slug not in plain]
        ),
    }


def _heading(report: Mapping[str, Any], then: Mapping[str, Any]) -> str:
    about = "; ".join(str(then[name]) for name in ("commit", "date", "machine", "engine", "web", "tickets"))
    return (
        f"{report['machine']}; {report['engine']}; {report['web']}; {report['requests']} requests of each kind. Load "
        f"average {report['load'][0]} before, {report['load'][1]} behind.\nCosts, p95, CPU and req/s are those of "
        f"{report['tickets']} tickets. The last release: {about} tickets."
    )


_COSTS: Final = {"trips": "trips", "calls": "calls", "read_units": "read", "write_units": "write"}
_RELEASE: Final = {"p50": "p50", "portal_cpu": "CPU", "per_second": "req/s"}
_FLOOR: Final = (("p50", "floor_p50"), ("portal_cpu", "floor_portal_cpu"))
_TIMES: Final = {"p95": "p95", "portal_cpu": "CPU ms: portal", "engine_cpu": "engine", "per_second": "req/s"}


def _tables(report: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """Return the pages, one a row, and the work behind the stream."""
    pages = report["pages"].values()
    sizes = list(next(iter(pages))["p50_of"])
    head = ["page", *_COSTS.values(), *(f"p50 ms, {size}" for size in sizes), "large / small", *_TIMES.values()]
    rows = [
        [
            one["title"], *(f"{one[name]:g}" for name in _COSTS), *(f"{ms:.1f}" for ms in one["p50_of"].values()),
            f"{one['growth']:.2f} {one['verdict']}", *(f"{one[name]:.1f}" for name in _TIMES),
            *(_ratio(one, kept, figure) for figure in _RELEASE),
            *(f"{_ratio(one, one, figure, of)} ({_ratio(kept, kept, figure, of)})" for figure, of in _FLOOR),
        ]
        for one, kept in ((one, then["pages"].get(name)) for name, one in report["pages"].items())
    ]  # fmt: skip
    done = [
        [one.title, f"{one.number:,}", f"{one.per_second:,.0f}", f"{one.cpu_ms:.2f}",
         _ratio(one._asdict(), then["work"].get(one.title), "per_second")]
        for one in (StreamWork(**each) for each in report["work"].values())
    ]  # fmt: skip
    return [
        table([*head, *(f"{name} / release" for name in _RELEASE.values()), "p50 / floor", "CPU / floor"], rows),
        table(["work", "number", "a second", "CPU ms each", "a second / release"], done),
    ]


def _ratio(above: Mapping[str, Any] | None, below: Mapping[str, Any] | None, figure: str, of: str = "") -> str:
    """Return one figure over another; a dash where one is missing or nothing."""
    divisor = below.get(of or figure) if below else None
    return f"{above[figure] / divisor:.2f}" if above and divisor else "-"
