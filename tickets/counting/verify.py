"""Recounts a tenant's tickets and holds the aggregates against the result.

The worker is always a moment behind and people go on writing, so a difference alone says nothing. What counts as
drift, for each aggregate item: it differs from the recount, it did not move from before the recount until now, and the
worker has by now folded all that was written until the recount's end. Then whatever had changed while we read would
have moved it, so the recount was exact, as far as this item goes, and the item is wrong.

Runs under the tenant's own role: it reads tickets by their numbers, which need no index, and one partition.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Literal

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.repository import BATCH_GET_LIMIT, TenantRepository
from portal.streams import watermark
from tickets.counting import aggregates
from tickets.counting import keys as aggregate_keys
from tickets.counting.aggregates import Contribution, Counts
from tickets.ticket import keys as ticket_keys
from tickets.ticket.items import CounterItem
from tickets.ticket.tables import TICKETS

ROUNDS: Final = 5
PAUSE: Final = 1.0  # seconds before the second round, doubled each time
SETTLE: Final = 10.0  # seconds
LANES: Final = 8  # groups of tickets that are read at the same time
# Between a write and its record in the stream, and between the clocks of two machines.
MARGIN: Final = timedelta(seconds=1)

OK: Final = "ok"
DRIFT: Final = "drift"
UNKNOWN: Final = "unknown"
Part = tuple[str, str]  # kind and date of an aggregate, all epochs taken together
Advance = Callable[[int], object]


@dataclass(frozen=True)
class Difference:
    """One count that is wrong. `item` is TOTALS, TAGS or a date; `count` is its name in aggregates.py."""

    item: str
    count: str
    stored: int
    recounted: int


@dataclass(frozen=True)
class Verdict:
    """What a verification found. `why` says for "unknown" what was in the way; `uncountable` lists tickets whose
    summaries hold what no rule of ours writes."""

    state: Literal["ok", "drift", "unknown"]
    tickets: int
    differences: list[Difference] = field(default_factory=list)
    why: str = ""
    uncountable: list[int] = field(default_factory=list)


@dataclass
class Recount:
    """The sum of what the stored tickets contribute, by sort key."""

    counts: Contribution = field(default_factory=lambda: defaultdict(Counter))
    tickets: int = 0
    uncountable: list[int] = field(default_factory=list)

    def add(self, image: dict[str, Any]) -> None:
        self.tickets += 1
        try:
            found = aggregates.contribution(image)
        except aggregates.UNCOUNTABLE:
            self.uncountable.append((ticket_keys.owner_of(image["pk"]["S"]) or ("", 0))[1])
            return
        for sort_key, counts in found.items():
            self.counts[sort_key].update(counts)


def last_number(repository: TenantRepository) -> int:
    """The highest ticket number that was given out, 0 before the first."""
    counter = repository.get(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, consistent=True)
    return int(counter.last) if counter else 0


def groups(last: int) -> Iterable[list[range]]:
    """The numbers from 1 to `last` in groups that one read takes, and as many groups as are read at the same time."""
    step = BATCH_GET_LIMIT * LANES
    for start in range(1, last + 1, step):
        end = min(start + step, last + 1)
        yield [range(n, min(n + BATCH_GET_LIMIT, end)) for n in range(start, end, BATCH_GET_LIMIT)]


def recount(repository: TenantRepository, *, advance: Advance = lambda numbers: None) -> Recount:
    """Add up all tickets: a consistent read for every 100 numbers. Memory depends on days and tags, not on tickets."""
    found = Recount()
    for lanes in groups(last_number(repository)):
        read = [
            partial(repository.get_raw, TICKETS, ticket_keys.ticket, lane, sort=ticket_keys.SUMMARY) for lane in lanes
        ]
        for images in fan_out(read):
            for image in images:
                found.add(image)
        advance(sum(map(len, lanes)))
    return found


def stored(repository: TenantRepository) -> list[dict[str, Any]]:
    """All aggregate items of the tenant, raw, read consistently, and only those."""
    everything = repository.query_all(TICKETS, aggregate_keys.aggregate, consistent=True)
    return [raw for raw in everything if aggregate_keys.aggregate_parts(raw["sk"]["S"])]


def verify(
    repository: TenantRepository,
    *,
    settle: float = SETTLE,
    give_up_after: float = 3600.0,
    advance: Advance = lambda numbers: None,
) -> Verdict:
    """Recount the tenant and say whether its aggregates are right.

    `settle`, in seconds: see `wait_for_worker`. No further attempt is begun `give_up_after` seconds from now.
    """
    right: set[Part] = set()  # was so once, which drift never is
    why, started = "", time.monotonic()
    for attempt in range(ROUNDS):
        if attempt:
            pause = PAUSE * 2 ** (attempt - 1)
            if time.monotonic() + pause - started > give_up_after:
                break
            time.sleep(pause)
        before = stored(repository)
        found = recount(repository, advance=advance)
        ended = clock.now()
        wanted, after = _by_part(found.counts), stored(repository)
        have = [_counts(before), _counts(after)]
        right |= {part for part in wanted.keys() | have[1].keys() if any(_same(h, wanted, part) for h in have)}
        suspects = {part for part in wanted.keys() | have[1].keys() if part not in right}
        if not suspects:
            return Verdict(OK, found.tickets, uncountable=found.uncountable)
        former, why = why, wait_for_worker(ended, settle=settle)
        if why and why == former:
            break  # it stands still
        if why:
            continue
        now = stored(repository)
        unmoved = {part for part in suspects if _items(before, part) == _items(now, part)}
        if unmoved:
            return Verdict(DRIFT, found.tickets, _differences(unmoved, have[1], wanted), uncountable=found.uncountable)
        why = f"the numbers kept changing in {attempt + 1} attempts"
    return Verdict(UNKNOWN, found.tickets, why=why)


def wait_for_worker(since: datetime, *, settle: float) -> str:
    """Return "" once the worker has folded all that was written until `since`, or else why that cannot be told.

    Waits at most `settle` seconds. Where no worker says how far it is, that time itself is taken to be enough.
    """
    deadline = time.monotonic() + settle
    while True:
        beat = watermark.read(TICKETS)
        if beat is not None and beat.as_of > since + MARGIN:
            return ""
        left = deadline - time.monotonic()
        if left <= 0:
            if beat is None:
                return ""
            return f"the stream worker has counted only what was written until {clock.stamp(beat.as_of)}"
        time.sleep(min(0.25, left))


def label(part: Part) -> str:
    """What an aggregate item is called: its date, or else its kind."""
    return part[1] or part[0]


def _by_part(counts: Contribution) -> dict[Part, Counts]:
    found: dict[Part, Counts] = defaultdict(Counter)
    for sort_key, one in counts.items():
        if parts := aggregate_keys.aggregate_parts(sort_key):
            found[parts[:2]].update(one)
    return dict(found)


def _counts(items: Iterable[dict[str, Any]]) -> dict[Part, Counts]:
    return {(kind, day): counts for kind, day, counts in aggregates.merged(items)}


def _same(have: dict[Part, Counts], wanted: dict[Part, Counts], part: Part) -> bool:
    # Counter's equality takes a missing count for a zero one.
    return have.get(part, Counter()) == wanted.get(part, Counter())


def _items(items: Iterable[dict[str, Any]], part: Part) -> list[dict[str, Any]]:
    """The stored items of one part with their marks, so that any update of them is a difference."""
    return [raw for raw in items if (aggregate_keys.aggregate_parts(raw["sk"]["S"]) or ("", ""))[:2] == part]


def _differences(parts: Iterable[Part], have: dict[Part, Counts], wanted: dict[Part, Counts]) -> list[Difference]:
    found = []
    for part in sorted(parts):
        mine, right = have.get(part, Counter()), wanted.get(part, Counter())
        for name in sorted(mine.keys() | right.keys()):
            if mine[name] != right[name]:
                found.append(Difference(label(part), name, mine[name], right[name]))
    return found
