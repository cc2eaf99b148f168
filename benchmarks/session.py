"""One run from the empty tables to the verdict. Imported when an engine is running and Django is set up."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management import call_command

from benchmarks import measure as measuring
from benchmarks import stack, stream_work, summary
from benchmarks.exchange import Connection, in_process
from benchmarks.fill import EMAIL, Filled, person, prepare_tables, tenant
from benchmarks.measure import Repetitions, Timing, count, warm_up
from benchmarks.measured_pages import PAGES, SignedInVisitor, visit
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
    logs = engine.log_path.parent
    counts = {}
    say("Counting.")
    with serving(logs / "portal-debug.log", workers=1, environ={"DEBUG": "1"}) as server:
        send = Connection(server.port)
        visitors = [visit(send, t, email=EMAIL, password=password, sequences=options.concurrency) for t in tenants]
        for visitor in visitors:
            for page in PAGES:
                counts[page.name, visitor.tenant.slug] = count(send, visitor, page)
        send.close()
    timings = _time(options, engine, visitors, about)
    for visitor in visitors:
        visitor.verify()
    say("Rebuilding the aggregates of the smallest.")
    done.append(stream_work.rebuilt(tenants[0]))
    say("Making its search index anew.")
    done.append(stream_work.indexed(tenants[0]))
    verdicts = summary.judge(tenants, counts, timings)
    sys.stdout.write(f"{_heading(about)}\n\n{summary.as_text(tenants, counts, timings, verdicts)}\n\n")
    sys.stdout.write(f"{stream_work.as_text(done)}\n")
    sys.stdout.flush()
    if options.json:
        about["stream_work"] = [{**asdict(one), "per_second": round(one.per_second, 1)} for one in done]
        options.json.write_text(json.dumps(summary.as_json(about, counts, timings, verdicts), indent=1) + "\n")
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


def _time(
    options: argparse.Namespace, engine: Engine, visitors: list[SignedInVisitor], about: dict[str, Any]
) -> list[Timing]:
    plan = Repetitions(options.requests, tuple(sorted({1, options.concurrency})))
    bursts = len(PAGES) * len(visitors)
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
                engine_group=engine.pid or 0,
                after_round=lambda: about["load"].append(stack.load()),
                advance=lambda: advance(1),
            )
    about["rounds"] = len(timings[0].rounds)
    return timings


def _heading(about: dict[str, Any]) -> str:
    return (
        f"{about['machine']}; {about['engine']}; {about['web']}; {about['requests']} requests of each kind in "
        f"{about['rounds']} rounds.\nLoad average {about['load_before']} before, {min(about['load'])} to "
        f"{max(about['load'])} meanwhile, our own work included."
    )
