"""Count what each page costs, then time it, round by round."""

from __future__ import annotations

import cProfile
import math
import pstats
import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final, NamedTuple

from benchmarks import stack
from benchmarks.exchange import BurstFailed, burst, in_process
from benchmarks.measured_pages import PAGES, MeasuredPage, SignedInVisitor
from benchmarks.stack import BenchmarkError
from proofs.portal_server import Server

ROUNDS: Final = 10
_PROFILE_TOP: Final = 40  # lines
_BILL: Final = re.compile(
    r"(?P<trips>\d+) trips, (?P<calls>\d+) calls, (?P<items>\d+) items, .*?"
    r"(?P<read_units>[\d.e+]+) RCU, (?P<write_units>[\d.e+]+) WCU"
)


class Round(NamedTuple):
    """One burst: seconds of each request, of all together, and processor seconds of portal and engine."""

    seconds: list[float]
    wall: float
    portal_cpu: float
    engine_cpu: float


def _look(visitor: SignedInVisitor, page: MeasuredPage) -> str:
    answer = in_process(visitor.request(page, 0))
    page.check(answer)
    return answer.bill


def count(visitor: SignedInVisitor, page: MeasuredPage) -> dict[str, float]:
    """Return trips, calls, items and units of a page in a process that has shown it before. Raises BenchmarkError."""
    _look(visitor, page)
    time.sleep(page.rest)
    said = _look(visitor, page)
    if (bill := _BILL.search(said)) is None:
        raise BenchmarkError(f"{page.title} does not say what it cost: {said!r}")
    return {name: float(text) for name, text in bill.groupdict().items()}


@dataclass(frozen=True)
class Stopwatch:
    """Times the pages of one server, `requests` for each page and concurrency, spread over the rounds. `replay` sends
    the requests of a page to the engine alone: its floor."""

    server: Server
    engine: int  # its process id
    visitor: SignedInVisitor
    requests: int
    concurrency: int
    replay: Callable[[MeasuredPage, int], Round]

    @property
    def rounds(self) -> int:
        return max(1, min(ROUNDS, self.requests // self.concurrency))

    @property
    def bursts(self) -> int:
        """Return how many bursts there are, with those that warm up."""
        return len(PAGES) * (1 + 2 * self.rounds)

    def run(self, advance: Callable[[int], object]) -> dict[str, dict[str, float]]:
        """Warm up, then measure: the figures of each page by its name. Raises BenchmarkError."""
        for page in PAGES:
            self._burst(page, self.concurrency, math.ceil(self.requests / 5))
            advance(1)
        alone, together, floor = (defaultdict[str, list[Round]](list) for _ in range(3))
        many = math.ceil(self.requests / self.rounds)
        for _ in range(self.rounds):
            for page in PAGES:
                alone[page.name].append(self._burst(page, 1, many))
                floor[page.name].append(self.replay(page, many))
                together[page.name].append(self._burst(page, self.concurrency, many))
                advance(2)
        return {name: figures(one, floor[name], together[name]) for name, one in alone.items()}

    def _burst(self, page: MeasuredPage, concurrency: int, requests: int) -> Round:
        sequences = [
            [self.visitor.request(page, sequence) for _ in range(sequence, requests, concurrency)]
            for sequence in range(min(concurrency, requests))
        ]
        before = [stack.cpu_seconds(pid) for pid in (self.server.pid, self.engine)]
        try:
            wall, samples = burst(self.server.port, sequences)
        except BurstFailed as failed:
            raise BenchmarkError(str(failed)) from failed
        portal, engine = (stack.cpu_seconds(pid) for pid in (self.server.pid, self.engine))
        if wrong := [status for _, status in samples if status != page.status]:
            raise BenchmarkError(f"{page.title}: {len(wrong)} answers with status {wrong[0]}.")
        return Round([seconds for seconds, _ in samples], wall, portal - before[0], engine - before[1])


def figures(alone: Sequence[Round], floor: Sequence[Round], together: Sequence[Round]) -> dict[str, float]:
    """Return times in milliseconds. `p50` is the median of the rounds' medians, `p95` is of all requests together.

    Both, and the processor time per request, are of one request at a time; requests a second are of several.
    """

    def of(rounds: Sequence[Round], cpu: str) -> float:
        spent = sum(float(getattr(one, cpu)) for one in rounds)
        return round(spent * 1000 / sum(len(one.seconds) for one in rounds), 2)

    seconds = [one for each in alone for one in each.seconds]
    return {
        "p50": round(median(median(each.seconds) for each in alone) * 1000, 2),
        "p95": round(quantiles(seconds * 2, n=20, method="inclusive")[-1] * 1000, 2),
        "portal_cpu": of(alone, "portal_cpu"),
        "engine_cpu": of(alone, "engine_cpu"),
        "per_second": round(median(len(each.seconds) / each.wall for each in together), 1),
        "floor_p50": round(median(median(each.seconds) for each in floor) * 1000, 2),
        "floor_portal_cpu": of(floor, "portal_cpu"),
    }


def profile(visitor: SignedInVisitor, name: str, requests: int) -> None:
    """Profile this many requests of a page and print where their time went, by cumulative and by own time."""
    page = next((page for page in PAGES if page.name == name), None)
    if page is None:
        raise BenchmarkError(f"There is no page {name!r}: {', '.join(page.name for page in PAGES)}.")
    for _ in range(requests):  # a warm process
        _look(visitor, page)
    with cProfile.Profile() as profiler:
        for _ in range(requests):
            _look(visitor, page)
    for order in ("cumulative", "tottime"):
        pstats.Stats(profiler).sort_stats(order).print_stats(_PROFILE_TOP)
