"""Count what each page costs, then time it: all sizes in turns, so that the machine's noise hits all alike."""

from __future__ import annotations

import cProfile
import io
import math
import pstats
import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any, Final, NamedTuple

from benchmarks import stack
from benchmarks.exchange import BurstFailed, burst, in_process
from benchmarks.measured_pages import PAGES, MeasuredPage, SignedInVisitor
from benchmarks.stack import BenchmarkError
from proofs.portal_server import Server

ROUNDS: Final = 10
SECONDS: Final = 1200  # no round begins later than this
FLOOR: Final = 0  # requests of a page at the same time: its requests to the engine alone
FLAT: Final = 1.25  # the largest tenant's median over the smallest's
# Numbers of tickets have more digits in a larger tenant: one read may begin one more block of 4 KB.
READ_ROUNDING: Final = 0.5
_PROFILE_WARM_UP: Final = 50  # requests
_PROFILE_TOP: Final = 40  # lines
_BILL: Final = re.compile(
    r"(?P<trips>\d+) trips, (?P<calls>\d+) calls, (?P<items>\d+) items, .*?"
    r"(?P<read_units>[\d.e+]+) RCU, (?P<write_units>[\d.e+]+) WCU"
)
Cost = dict[str, float]  # trips, calls, items, and units that were read and written


class Round(NamedTuple):
    """One burst: seconds of each request, of all together, and processor seconds of portal and engine."""

    seconds: list[float]
    wall: float
    portal_cpu: float
    engine_cpu: float


Rounds = dict[tuple[str, str, int], list[Round]]  # by page, tenant, and requests at the same time


def _look(visitor: SignedInVisitor, page: MeasuredPage) -> str:
    answer = in_process(visitor.request(page, 0))
    page.check(answer, visitor.tenant)
    return answer.bill


def count(visitor: SignedInVisitor, page: MeasuredPage) -> Cost:
    """Return what a page costs in a process that has shown it before. Raises BenchmarkError where it is another one."""
    _look(visitor, page)
    time.sleep(page.rest)
    said = _look(visitor, page)
    if (bill := _BILL.search(said)) is None:
        raise BenchmarkError(f"{page.title} does not say what it cost: {said!r}")
    return {name: float(text) for name, text in bill.groupdict().items()}


def differences(page: MeasuredPage, of_sizes: Sequence[Cost], of_shards: Sequence[Cost]) -> list[str]:
    """Return which figures are not the same in all sizes; of the trips, nor in a tenant with shards."""
    allowed = {"calls": 0.0, "items": 0.0, "read_units": READ_ROUNDING, "write_units": 0.0}
    found = [
        name
        for name, rounding in allowed.items()
        if not page.grows and max(c[name] for c in of_sizes) - min(c[name] for c in of_sizes) > rounding
    ]
    return found + ["trips"] * (len({c["trips"] for c in (*of_sizes, *of_shards)}) > 1)


@dataclass(frozen=True)
class Stopwatch:
    """Times the pages of one server, `requests` for each page, tenant and concurrency, spread over the rounds."""

    server: Server
    engine: int  # its process id
    visitors: Sequence[SignedInVisitor]
    requests: int
    concurrency: int
    replay: Callable[[MeasuredPage, int], Round] | None = None  # the floor of a page, for the first visitor

    @property
    def rounds(self) -> int:
        return max(1, min(ROUNDS, self.requests // self.concurrency))

    @property
    def bursts(self) -> int:
        """Return how many bursts there are at most, with those that warm up."""
        return len(PAGES) * len(self.visitors) * (1 + self.rounds * len({1, self.concurrency}))

    def run(self, advance: Callable[[int], object]) -> Rounds:
        """Warm up, then measure until there are enough rounds or the time is up. Raises BenchmarkError."""
        for page in PAGES:
            for visitor in self.visitors:
                self._burst(page, visitor, self.concurrency, math.ceil(self.requests / 5))
                advance(1)
        found: Rounds = defaultdict(list)
        deadline = time.monotonic() + SECONDS
        for number in range(self.rounds):
            if number and time.monotonic() > deadline:
                break
            # Each round begins with another tenant, and every other one runs backwards.
            start = number % len(self.visitors)
            order = [*self.visitors[start:], *self.visitors[:start]][:: -1 if number % 2 else 1]
            for concurrency in sorted({1, self.concurrency}):
                for page in PAGES:
                    for visitor in order:
                        one = self._burst(page, visitor, concurrency, math.ceil(self.requests / self.rounds))
                        found[page.name, visitor.tenant.slug, concurrency].append(one)
                        if self.replay and (visitor, concurrency) == (self.visitors[0], 1):
                            found[page.name, visitor.tenant.slug, FLOOR].append(self.replay(page, len(one.seconds)))
                        advance(1)
        return found

    def _burst(self, page: MeasuredPage, visitor: SignedInVisitor, concurrency: int, requests: int) -> Round:
        sequences = [
            [visitor.request(page, sequence) for _ in range(sequence, requests, concurrency)]
            for sequence in range(min(concurrency, requests))
        ]
        before = [stack.cpu_seconds(pid) for pid in (self.server.pid, self.engine)]
        try:
            wall, samples = burst(self.server.port, sequences)
        except BurstFailed as failed:
            raise BenchmarkError(str(failed)) from failed
        portal, engine = (stack.cpu_seconds(pid) for pid in (self.server.pid, self.engine))
        wrong = [status for _, status in samples if status != page.status]
        if wrong:
            raise BenchmarkError(f"{page.title} in {visitor.tenant.slug}: {len(wrong)} answers with status {wrong[0]}.")
        return Round([seconds for seconds, _ in samples], wall, portal - before[0], engine - before[1])


def figures(alone: Sequence[Round], together: Sequence[Round]) -> dict[str, float]:
    """Return times in milliseconds. `p50` is the median of the rounds' medians, `p95` is of all requests together.

    Both, and the processor time per request, are of one request at a time; requests a second are of several.
    """
    seconds = [one for each in alone for one in each.seconds]
    return {
        "p50": round(median(median(each.seconds) for each in alone) * 1000, 2),
        "p95": round(quantiles(seconds * 2, n=20, method="inclusive")[-1] * 1000, 2),
        "portal_cpu": round(sum(each.portal_cpu for each in alone) * 1000 / len(seconds), 2),
        "engine_cpu": round(sum(each.engine_cpu for each in alone) * 1000 / len(seconds), 2),
        "per_second": round(median(len(each.seconds) / each.wall for each in together), 1),
    }


def growth(small: Sequence[Round], large: Sequence[Round]) -> tuple[float, str]:
    """Compare the largest tenant with the smallest, round by round: the median ratio, and "flat", "grows" or "noisy",
    where the limit lies within the middle half of the rounds."""
    ratios = [median(b.seconds) / median(a.seconds) for a, b in zip(small, large, strict=True)]
    ratio, low = median(ratios), quantiles(ratios * 2, n=4, method="inclusive")[0]
    return round(ratio, 2), "flat" if ratio <= FLAT else "noisy" if low <= FLAT else "grows"


def profile(visitor: SignedInVisitor, page: MeasuredPage, requests: int, write: Callable[[str], Any]) -> None:
    """Profile this many requests and write what they took: by cumulative and by own time.

    A profiler makes calls dearer than what they do, so the time without it is written as well.
    """
    for _ in range(_PROFILE_WARM_UP):
        _look(visitor, page)
    walls, cpu = [], time.process_time()
    for _ in range(requests):
        begun = time.perf_counter()
        _look(visitor, page)
        walls.append(time.perf_counter() - begun)
    each = (time.process_time() - cpu) / requests
    with cProfile.Profile() as profiler:
        for _ in range(requests):
            _look(visitor, page)
    write(
        f"{page.title}, {visitor.tenant.label} tickets, {requests} requests in process: "
        f"median {median(walls) * 1000:.2f} ms, processor {each * 1000:.2f} ms\n"
    )
    for order in ("cumulative", "tottime"):
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).sort_stats(order).print_stats(_PROFILE_TOP)
        write(text.getvalue().strip() + "\n")
