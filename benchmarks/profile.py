"""Say where the time of one page goes: cProfile on requests made in this process, against the same engine and data.

A profiler makes calls dearer than what they do, so shares mislead where functions are small. The time without it
stands above for comparison.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import time
from collections.abc import Callable
from statistics import median
from typing import Final

from benchmarks.exchange import Send
from benchmarks.measured_pages import MeasuredPage, SignedInVisitor

WARM_UP: Final = 50
TOP: Final = 40


def run(
    send: Send, visitor: SignedInVisitor, page: MeasuredPage, requests: int, write: Callable[[str], object]
) -> None:
    """Profile this many requests and write what they took: by cumulative and by own time."""

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
    with cProfile.Profile() as profiler:
        for _ in range(requests):
            ask()
    write(
        f"{page.title}, {visitor.tenant.label} tickets, {requests} requests in process: "
        f"median {median(walls) * 1000:.2f} ms, processor {cpu / requests * 1000:.2f} ms\n"
    )
    for order in ("cumulative", "tottime"):
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).sort_stats(order).print_stats(TOP)
        write(text.getvalue().strip() + "\n")
