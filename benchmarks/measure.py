"""Count what each page costs, then time it: all sizes in turns, so that the machine's noise hits all alike."""

from __future__ import annotations

import cProfile
import io
import pstats
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks import stack
from benchmarks.exchange import BurstFailed, Send, burst
from benchmarks.measured_pages import PAGES, MeasuredPage, SignedInVisitor
from benchmarks.stack import WORKERS, BenchmarkError
from proofs.portal_server import Server

ROUNDS = 10
LOOKS = WORKERS + 1  # at each page, to count what it costs
SECONDS = 1200  # no round begins later than this
PROFILE_WARM_UP = 50  # requests
PROFILE_TOP = 40  # lines
_BILL = re.compile(
    r"dur=(?P<ms>[\d.]+).*?(?P<trips>\d+) trips, (?P<calls>\d+) calls, (?P<items>\d+) items, (?P<size>\d+) B, "
    r"(?P<read>[\d.e+]+) RCU, (?P<write>[\d.e+]+) WCU"
)


@dataclass(frozen=True)
class Count:
    """The cost of one page in DynamoDB, as the portal says with DEBUG: the dearest look, of a search the cheapest."""

    trips: int
    calls: int
    items: int
    size: int  # bytes
    read_units: float
    write_units: float


@dataclass(frozen=True)
class Round:
    """One burst: seconds of each request, of all together, and processor seconds of portal and engine."""

    seconds: tuple[float, ...]
    wall: float
    portal_cpu: float
    engine_cpu: float


@dataclass
class Timing:
    """All rounds of one page in one tenant with so many requests at the same time."""

    page: MeasuredPage
    visitor: SignedInVisitor
    concurrency: int
    rounds: list[Round] = field(default_factory=list)


@dataclass(frozen=True)
class Repetitions:
    """`requests` is for each page, tenant and concurrency, spread over the rounds."""

    requests: int
    concurrencies: tuple[int, ...]

    @property
    def rounds(self) -> int:
        return max(1, min(ROUNDS, self.requests // max(self.concurrencies)))

    @property
    def burst(self) -> int:
        return -(-self.requests // self.rounds)

    @property
    def warm_up(self) -> int:
        return -(-self.requests // 5)


def count(send: Send, visitor: SignedInVisitor, page: MeasuredPage) -> Count:
    """Raise BenchmarkError where the page is not what it should be, or does not say what it cost."""
    found = []
    time.sleep(page.rest)
    for _ in range(LOOKS):
        answer = send(visitor.request(page, 0))
        page.check(answer, visitor.tenant)
        bill = _BILL.search(answer.header("Server-Timing"))
        if bill is None:
            raise BenchmarkError(f"{page.title} does not say what it cost: {answer.header('Server-Timing')!r}")
        trips, calls, items, size = (int(bill[name]) for name in ("trips", "calls", "items", "size"))
        found.append(Count(trips, calls, items, size, float(bill["read"]), float(bill["write"])))
    # A search takes a trip more in a process that has not seen the index's headers. Of more looks than there are
    # processes one meets a process that has.
    choose = min if page.grows else max
    return choose(found, key=lambda c: (c.trips, c.calls, c.read_units, c.write_units))


def warm_up(
    server: Server, visitors: Sequence[SignedInVisitor], plan: Repetitions, advance: Callable[[], object]
) -> None:
    """Let both workers fill their caches and the engine's virtual machine compile what it will need."""
    for page in PAGES:
        for visitor in visitors:
            _burst(server, page, visitor, max(plan.concurrencies), plan.warm_up)
            advance()


def measure(
    server: Server,
    visitors: Sequence[SignedInVisitor],
    plan: Repetitions,
    *,
    engine_group: int,
    replay: Callable[[MeasuredPage, int], object],
    after_round: Callable[[], object],
    advance: Callable[[], object],
) -> list[Timing]:
    """Measure in rounds until there are enough of them or the time is up. `after_round` is called after each, and
    `replay` with a page and a number of requests after those that the first visitor has sent one by one."""
    timings = {
        (c, p.name, i): Timing(p, v, c) for c in plan.concurrencies for p in PAGES for i, v in enumerate(visitors)
    }
    deadline = time.monotonic() + SECONDS
    for number in range(plan.rounds):
        if number and time.monotonic() > deadline:
            break
        for concurrency in plan.concurrencies:
            for page in PAGES:
                for index in _in_turn(len(visitors), number):
                    cpu = stack.cpu_seconds(server.pid), stack.cpu_seconds(engine_group)
                    wall, seconds = _burst(server, page, visitors[index], concurrency, plan.burst)
                    timings[concurrency, page.name, index].rounds.append(
                        Round(
                            tuple(seconds),
                            wall,
                            stack.cpu_seconds(server.pid) - cpu[0],
                            stack.cpu_seconds(engine_group) - cpu[1],
                        )
                    )
                    if concurrency == 1 and index == 0:
                        replay(page, plan.burst)
                    advance()
        after_round()
    return list(timings.values())


def _in_turn(count: int, number: int) -> list[int]:
    """Return the order of a round: each begins with another one, and every other one runs backwards."""
    order = [(i + number) % count for i in range(count)]
    return order[::-1] if number % 2 else order


def _burst(
    server: Server, page: MeasuredPage, visitor: SignedInVisitor, concurrency: int, requests: int
) -> tuple[float, list[float]]:
    sequences = [
        [visitor.request(page, sequence) for _ in range(sequence, requests, concurrency)]
        for sequence in range(min(concurrency, requests))
    ]
    try:
        wall, samples = burst(server.port, sequences)
    except BurstFailed as failed:
        raise BenchmarkError(str(failed)) from failed
    wrong = [status for _, status in samples if status != page.status]
    if wrong:
        raise BenchmarkError(f"{page.title} in {visitor.tenant.slug}: {len(wrong)} answers with status {wrong[0]}.")
    return wall, [seconds for seconds, _ in samples]


def profile(
    send: Send, visitor: SignedInVisitor, page: MeasuredPage, requests: int, write: Callable[[str], object]
) -> None:
    """Profile this many requests and write what they took: by cumulative and by own time.

    A profiler makes calls dearer than what they do, so the time without it is written as well.
    """

    def ask() -> None:
        page.check(send(visitor.request(page, 0)), visitor.tenant)

    for _ in range(PROFILE_WARM_UP):
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
        f"median {statistics.median(walls) * 1000:.2f} ms, processor {cpu / requests * 1000:.2f} ms\n"
    )
    for order in ("cumulative", "tottime"):
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).sort_stats(order).print_stats(PROFILE_TOP)
        write(text.getvalue().strip() + "\n")
