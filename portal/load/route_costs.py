"""Count what the requests of each route cost, by day and release, and find routes that got dearer.

A row has, for each number of units that requests of a route used on a day, how many used it; so the rows of all
processes add up, and any percentile can be read from them. Numbers of more than 20 units have two digits, which makes
them right within 2.5%. A process adds what it has counted of a route a minute after its first request of a day, each
time its requests have grown GROWTH times, once WRITTEN are counted, when the day is over, and when it ends: at most six
writes a day more than one for WRITTEN requests.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from math import ceil, floor, log10
from typing import Final

from portal.dynamo.client import fan_out
from portal.dynamo.meter import Meter
from portal.dynamo.platform import PLATFORM
from portal.errors import ConditionFailed, PortalError
from portal.load import spending
from portal.load.spending import day_at, day_of
from portal.load.stored import RouteCostItem, routes_of
from portal.schema import keys
from portal.version_number import VERSION

log = logging.getLogger("pooldesk.costs")

WRITTEN: Final = 500  # requests of a route
GROWTH: Final = 4
KEPT: Final = timedelta(days=90)
READS, WRITES, TRIPS = "r", "w", "t"
KINDS: Final = {READS: "read units", WRITES: "write units", TRIPS: "round trips"}
_EXACT: Final = 20  # units, up to which numbers are kept as they are


def rounded(number: float) -> float:
    """Return a number of units with two digits, exactly where it is small; halves are the smallest part of a unit."""
    if number <= _EXACT:
        return round(number * 2) / 2
    step = 10 ** (floor(log10(number)) - 1)
    return float(round(number / step) * step)


@dataclass
class RouteDay:
    """Hold how many requests of one route used each number of units in one release, by kind."""

    route: str  # with the method: "GET /tickets/"
    release: str
    day: str = ""
    counts: dict[str, Counter[float]] = field(default_factory=lambda: defaultdict(Counter))

    @property
    def requests(self) -> int:
        return sum(self.counts[TRIPS].values())

    def percentile(self, kind: str, percent: int) -> float:
        """Return the number that so many percent of the requests do not exceed; 0 without requests."""
        counts = self.counts[kind]
        wanted, seen = ceil(sum(counts.values()) * percent / 100), 0
        for number in sorted(counts):
            seen += counts[number]
            if seen >= wanted:
                return number
        return 0.0

    def add(self, other: RouteDay) -> None:
        for kind, counts in other.counts.items():
            self.counts[kind].update(counts)

    @classmethod
    def read(cls, item: RouteCostItem) -> RouteDay:
        route, release = keys.split(item.name)
        day = cls(route, release, keys.split(item.kind)[1])
        for name, value in item.unknown.items():
            kind, _, number = name.partition(":")
            if kind in KINDS:
                day.counts[kind][float(number)] += int(float(value["N"]))
        return day


class RouteCosts:
    """Count for this process, from any number of threads. There are as many rows as routes that were asked for."""

    def __init__(self, *, clock: Callable[[], float] = time.time, release: str = VERSION) -> None:
        self._clock, self._release, self._lock = clock, release, threading.Lock()
        self._open: dict[tuple[str, str], Counter[str]] = {}
        self._written: Counter[tuple[str, str]] = Counter()  # requests of today
        self.dearer: list[Dearer] = []  # by the last comparison that this process made

    def note(self, route: str, bill: Meter) -> None:
        key = day_at(self._clock()), route
        numbers = {READS: bill.read_units, WRITES: bill.write_units, TRIPS: bill.trips}
        with self._lock:
            counts = self._open.setdefault(key, Counter())
            for kind, number in numbers.items():
                counts[f"{kind}:{rounded(number):g}"] += 1

    def write_due(self, *, last: bool = False) -> int:
        """Write what is due, and return how many rows were written. Rows that fail are given up."""
        today = day_at(self._clock())
        with self._lock:
            requests = {key: sum(counts.values()) // len(KINDS) for key, counts in self._open.items()}
            due = {
                key: self._open[key]
                for key, count in requests.items()
                if last or key[0] != today or count >= min(WRITTEN, (GROWTH - 1) * self._written[key])
            }
            for key in due:
                del self._open[key]
                self._written[key] += requests[key]
            for key in [key for key in self._written if key[0] != today]:
                del self._written[key]
        for written, ((day, route), counts) in enumerate(due.items()):
            try:
                self._write(day, route, counts)
            except PortalError as error:
                log.warning("What routes cost is not written, and given up: %s", error.message)
                return written
        return len(due)

    def _write(self, day: str, route: str, counts: Mapping[str, int]) -> None:
        item = RouteCostItem(routes_of(day), keys.joined(route, self._release))
        with spending.on_own_account(), suppress(ConditionFailed):  # it was added before, and the answer was lost
            spending.add(PLATFORM, item, counts, uuid.uuid4().hex[:12], kept=KEPT)


route_costs = RouteCosts()  # of this process


# --- what was written ---


def read(days: Iterable[datetime]) -> list[RouteDay]:
    """Return the rows of some days: one Query for each megabyte of a day, all days at the same time."""
    reads = [partial(_rows, day_of(day)) for day in days]
    return [row for rows in fan_out(reads) for row in rows]


def _rows(day: str) -> list[RouteDay]:
    return [RouteDay.read(item) for item in PLATFORM.query_all(RouteCostItem, routes_of(day))]


DEARER: Final = 1.2  # times as many as before, from which on it is told
LEAST_UNITS: Final = 1.0
LEAST_REQUESTS: Final = 100  # of both releases
COMPARED_DAYS: Final = 14


@dataclass(frozen=True)
class Dearer:
    """One number of a route that has grown with a release. `percent` is that of the percentile: 50 or 99."""

    route: str
    kind: str
    percent: int
    before: float
    now: float
    release: str
    former: str

    def __str__(self) -> str:
        name = "median" if self.percent == 50 else f"{self.percent}th percentile"
        return (
            f"{self.route}: {name} of {KINDS[self.kind]} {self.now:g} in {self.release}, "
            f"{self.before:g} in {self.former}"
        )


def by_release(rows: Iterable[RouteDay]) -> dict[str, list[RouteDay]]:
    """Return for each route its sums by release, the latest first: that with the latest day, and of two that served
    on it the one that began later."""
    found: dict[tuple[str, str], RouteDay] = {}
    days: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        key = row.route, row.release
        found.setdefault(key, RouteDay(*key)).add(row)
        days[key].append(row.day)
    routes: dict[str, list[RouteDay]] = defaultdict(list)
    for key in sorted(found, key=lambda key: (max(days[key]), min(days[key])), reverse=True):
        routes[key[0]].append(found[key])
    return routes


def dearer(rows: Iterable[RouteDay], *, release: str = VERSION) -> list[Dearer]:
    """Return what has grown by more than a fifth, and at least a unit, since the release before this one."""
    found = [one for now, before in comparable(rows, release=release) for one in _grown(now, before)]
    return sorted(found, key=lambda one: one.before - one.now)


def comparable(rows: Iterable[RouteDay], *, release: str = VERSION) -> Iterator[tuple[RouteDay, RouteDay]]:
    """Yield the sums of each route under this release and the one before it, where both had LEAST_REQUESTS."""
    for releases in by_release(rows).values():
        now = next((one for one in releases if one.release == release), None)
        before = next((one for one in releases if one.release != release), None)
        if now and before and min(now.requests, before.requests) >= LEAST_REQUESTS:
            yield now, before


def _grown(now: RouteDay, before: RouteDay) -> Sequence[Dearer]:
    grown = []
    for kind in (READS, WRITES):
        for percent in (50, 99):
            new, old = now.percentile(kind, percent), before.percentile(kind, percent)
            if new > old * DEARER and new - old >= LEAST_UNITS:
                grown.append(Dearer(now.route, kind, percent, old, new, now.release, before.release))
    return grown


def latest(now: datetime, days: int = COMPARED_DAYS) -> list[datetime]:
    """Return so many days up to this one, the latest first."""
    return [now - timedelta(days=back) for back in range(days)]
