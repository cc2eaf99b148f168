"""Where the time of one page goes: cProfile on requests made in this process, against the same engine and data.

A profiler makes calls dearer than what they do, so shares mislead where functions are small. The time without it
stands above for comparison.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.exchange import Send
from benchmarks.measured_pages import MeasuredPage, SignedInVisitor

WARM_UP: Final = 50
TOP: Final = 40

_ROOT: Final = str(Path(__file__).resolve().parents[1])
_PORTAL: Final = tuple(f"{_ROOT}/{name}/" for name in ("portal", "tenants", "delivery", "tickets", "api"))
_Function = tuple[str, int, str]


def run(
    send: Send, visitor: SignedInVisitor, page: MeasuredPage, requests: int, write: Callable[[str], object]
) -> None:
    """Profile this many requests and write what they took: by part, by cumulative and by own time."""

    def ask() -> None:
        page.check(send(visitor.request(page, 0)), visitor.tenant)

    for _ in range(WARM_UP):
        ask()
    walls, cpu = [], time.process_time()
    for _ in range(requests):
        begun = time.perf_counter()
        ask()
        walls.append(time.perf_counter() - begun)
    cpu = time.process_time() - cpu
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(requests):
        ask()
    profiler.disable()
    stats = pstats.Stats(profiler, stream=io.StringIO())
    write(
        f"{page.title}, {visitor.tenant.label} tickets, {requests} requests in process: "
        f"median {median(walls) * 1000:.2f} ms, processor {cpu / requests * 1000:.2f} ms, "
        f"under the profiler {_total(stats) / requests * 1000:.2f} ms\n"
    )
    for part, seconds in by_part(stats).most_common():
        write(f"{seconds / requests * 1000:8.2f} ms  {part}")
    for order in ("cumulative", "tottime"):
        write("\n" + _top(profiler, order))


def _top(profiler: cProfile.Profile, order: str) -> str:
    stream = io.StringIO()
    pstats.Stats(profiler, stream=stream).sort_stats(order).print_stats(TOP)
    return stream.getvalue().replace(_ROOT + "/", "").replace(sys.prefix, "").strip()


def _total(stats: pstats.Stats) -> float:
    return float(sum(entry[2] for entry in _entries(stats).values()))


def _entries(stats: pstats.Stats) -> dict[_Function, Any]:
    """Return each function's calls, own and cumulative seconds, and the same by its callers; see pstats."""
    entries: dict[_Function, Any] = stats.stats  # type: ignore[attr-defined]  # documented, but missing in the stubs
    return entries


def by_part(stats: pstats.Stats) -> Counter[str]:
    """Return own seconds by library. A builtin counts for its caller, but waiting on a socket is waiting for the
    engine."""
    parts: Counter[str] = Counter()
    for function, (_, _, own, _, callers) in _entries(stats).items():
        if function[0] != "~":
            parts[_part(function[0])] += own
        elif "_socket.socket" in function[2] or "select" in function[2]:
            parts["waiting for the engine"] += own
        else:
            for caller, (_, _, seconds, _) in callers.items():
                parts[_part(caller[0])] += seconds
    return parts


def _part(path: str) -> str:
    if path.startswith(_PORTAL):
        return path.removeprefix(_ROOT + "/").partition("/")[0]
    if path.startswith(_ROOT + "/benchmarks/") or path == "~":
        return "benchmarks and the rest"
    library = path.partition("/site-packages/")[2].split("/")
    if library[0] == "django":
        return "django.template" if library[1] == "template" else "django"
    return library[0] or "standard library"
