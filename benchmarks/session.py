"""One run from the empty tables to the verdict. Imported when an engine is running and Django is set up."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from contextlib import closing
from dataclasses import asdict
from typing import Any

from django.core.management import call_command

from benchmarks import measure as measuring
from benchmarks import memory, release, stack, stream_work, summary
from benchmarks.exchange import Connection, in_process
from benchmarks.fill import EMAIL, Filled, person, prepare_tables, tenant
from benchmarks.floor import BareClient, Recorder
from benchmarks.measure import Count, Repetitions, Round, Timing, count, warm_up
from benchmarks.measured_pages import PAGES, MeasuredPage, SignedInVisitor, visit
from benchmarks.stack import progress, say
from portal.engines.engine_process import Engine
from proofs.portal_server import serving

SHARDS = 4


def measure(options: argparse.Namespace, engine: Engine) -> int:
    """Count, time, judge, and write it all down; the exit status."""
    about: dict[str, Any] = {
        "machine": stack.description(),
        "engine": engine.kind,
        "web": f"gunicorn, {stack.WORKERS} workers of {stack.THREADS} threads",
        "requests": options.requests,
        "load_before": stack.load(),
    }
    shapes = [(size, 1) for size in options.sizes]
    shapes.append((options.sizes[len(options.sizes) // 2], SHARDS))
    tenants, password = _ready(engine, shapes)
    say("Counting what was filled.")
    done = [caught_up] if (caught_up := stream_work.catch_up(tenants)) else []
    visitors, counts = _count(options, engine, tenants, password)
    timings, floors = _time(options, engine, visitors, about)
    for visitor in visitors:
        visitor.verify()
    say("Rebuilding the aggregates of the smallest.")
    rebuilt, worker = stream_work.rebuilt(tenants[0])
    done.append(rebuilt)
    say("Making its search index anew, and importing into it.")
    done += [stream_work.indexed(tenants[0]), stream_work.imported(tenants[0])]
    verdicts = summary.judge(tenants, counts, timings)
    resident = [*about["memory"], *worker]
    about |= {
        "tickets": tenants[0].label,
        "memory": [asdict(each) for each in resident],
        "stream_work": [stream_work.as_json(one) for one in done],
        "floors": floors,
    }
    report = summary.as_json(about, counts, timings, verdicts)
    texts = [
        _heading(about),
        release.as_text(release.figures(report), release.kept()),
        summary.as_text(tenants, counts, timings, verdicts),
        stream_work.as_text(done),
        memory.as_text(resident),
    ]
    sys.stdout.write("\n\n".join(texts) + "\n")
    sys.stdout.flush()
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.keep_as_release:
        release.keep(release.figures(report))
    different = [f"{v.page} ({v.differs})" for v in verdicts if v.differs]
    say(f"The counts differ between sizes: {', '.join(different)}." if different else "All sizes cost the same.")
    return 1 if different else 0


def profile(options: argparse.Namespace, engine: Engine) -> int:
    """Profile one page in the largest tenant; the exit status."""
    page = next((p for p in PAGES if p.name == options.profile), None)
    if page is None:
        raise stack.BenchmarkError(f"There is no page {options.profile!r}: {', '.join(p.name for p in PAGES)}.")
    (filled,), password = _ready(engine, [(options.sizes[-1], 1)])
    visitor = visit(in_process, filled, email=EMAIL, password=password, sequences=1)
    say(f"Load average {stack.load()}.")
    measuring.profile(in_process, visitor, page, options.requests, lambda text: sys.stdout.write(text + "\n"))
    return 0


def _ready(engine: Engine, shapes: list[tuple[int, int]]) -> tuple[list[Filled], str]:
    """Return tenants of these sizes and shards, filled where they are not, and the password of who is in all of
    them."""
    # Templates name static files by their hashes, as they do in production.
    call_command("collectstatic", interactive=False, verbosity=0)
    state_dir = engine.state_dir or engine.log_path.parent
    prepare_tables(state_dir / "shape")
    user, password = person()
    with progress("Filling", sum(size for size, _ in shapes)) as advance:
        return [tenant(user, size=size, shards=shards, advance=advance) for size, shards in shapes], password


def _count(
    options: argparse.Namespace, engine: Engine, tenants: list[Filled], password: str
) -> tuple[list[SignedInVisitor], dict[tuple[str, str], Count]]:
    """Return a visitor of each tenant, and what each page costs there."""
    counts = {}
    say("Counting.")
    log = engine.log_path.parent / "portal-debug.log"
    with serving(log, workers=1, environ={"DEBUG": "1"}) as server, closing(Connection(server.port)) as send:
        # One sequence more than bursts have: that of the floor.
        sequences = options.concurrency + 1
        visitors = [visit(send, t, email=EMAIL, password=password, sequences=sequences) for t in tenants]
        for visitor in visitors:
            for page in PAGES:
                counts[page.name, visitor.tenant.slug] = count(send, visitor, page)
    return visitors, counts


def _time(
    options: argparse.Namespace, engine: Engine, visitors: list[SignedInVisitor], about: dict[str, Any]
) -> tuple[list[Timing], dict[str, dict[str, Any]]]:
    """Return the times of all pages, and the floor of each in the first tenant."""
    plan = Repetitions(options.requests, tuple(sorted({1, options.concurrency})))
    bursts = len(PAGES) * len(visitors)
    recorder, bare, group = Recorder(), BareClient(), engine.pid or 0
    trips = {page.name: recorder.record(in_process, visitors[0], page) for page in PAGES}
    floors: defaultdict[str, list[Round]] = defaultdict(list)

    def replay(page: MeasuredPage, times: int) -> None:
        floors[page.name].append(bare.replay(trips[page.name], times, engine_group=group))

    with serving(engine.log_path.parent / "portal.log", workers=stack.WORKERS, environ={}) as server:
        say("Warming up.")
        with progress("Warming up", bursts) as advance:
            warm_up(server, visitors, plan, lambda: advance(1))
        about["load"] = [stack.load()]
        say(f"Measuring, {plan.rounds} rounds. Load average {stack.load()}.")
        with progress("Measuring", plan.rounds * len(plan.concurrencies) * bursts) as advance:
            timings = measuring.measure(
                server,
                visitors,
                plan,
                engine_group=group,
                replay=replay,
                after_round=lambda: about["load"].append(stack.load()),
                advance=lambda: advance(1),
            )
        about["memory"] = [*memory.resident(server.pid, "web"), *memory.resident(group, "engine")]
    about["rounds"] = len(timings[0].rounds)
    return timings, {
        page: {"trips": len(trips[page]), **asdict(summary.Figures.of(rounds))} for page, rounds in floors.items()
    }


def _heading(about: dict[str, Any]) -> str:
    return (
        f"{about['machine']}; {about['engine']}; {about['web']}; {about['requests']} requests of each kind in "
        f"{about['rounds']} rounds.\nLoad average {about['load_before']} before, {min(about['load'])} to "
        f"{max(about['load'])} meanwhile, our own work included."
    )
