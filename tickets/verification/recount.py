"""Add up what the stored tickets contribute: the truth that aggregates are held against.

A recount reads tickets in groups of numbers. Before the first, what has touched the aggregates so far is written, and
behind each group its sum, as an item of its own that is never changed. So a process may be killed between any two
calls, or write late beside the one that took its place, and the next recount goes on. The aggregates' touches show
whether a ticket has changed since; see verify.py. TTL clears away.

One group costs a write unit for each KB of its sum, some 3 beside the 800 read units of its tickets. A tenant with a
single group keeps nothing.
"""

from __future__ import annotations

import json
import time
import uuid
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.store import BATCH_GET_LIMIT, RawItems, Store
from portal.streams.batch import plain
from tickets.counting import coding, contributions
from tickets.counting.contributions import Contribution
from tickets.counting.stored_counts import Group, Stored
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKETS, CounterItem
from tickets.verification import stored
from tickets.verification.stored import RoundItem, SumItem

AT_ONCE: Final = 8  # reads of tickets that are sent at the same time
GROUP: Final = AT_ONCE * BATCH_GET_LIMIT  # ticket numbers that are read together
# Read units of one ticket: a summary has less than 4 KB and is read consistently, and a number without a ticket costs
# the same.
UNITS_PER_NUMBER: Final = 1.0

Advance = Callable[[int], object]  # is called with the numbers that were read since the last call


@dataclass
class Recount:
    """The sum of what the stored tickets contribute. `uncountable` are those that hold what no rule of ours writes."""

    counts: Contribution = field(default_factory=lambda: defaultdict(Counter))
    tickets: int = 0
    uncountable: list[int] = field(default_factory=list)

    def add(self, image: dict[str, Any]) -> None:
        self.tickets += 1
        try:
            contributed = contributions.contribution(plain(image) or {})
        except contributions.UNCOUNTABLE:
            self.uncountable.append((ticket_keys.owner_of(image["pk"]["S"]) or ("", 0))[1])
            return
        self.add_counts(contributed)

    def add_counts(self, counts: Contribution) -> None:
        for part, some in counts.items():
            self.counts[part].update(some)

    def merge(self, other: Recount) -> None:
        self.tickets += other.tickets
        self.uncountable += other.uncountable
        self.add_counts(other.counts)


def last_number(store: Store) -> int:
    """Return the highest ticket number that was given out, 0 before the first."""
    counter = store.get(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, consistent=True)
    return int(counter.last) if counter else 0


def groups(last: int, *, behind: int = 0) -> Iterator[list[range]]:
    """Yield the numbers after `behind` up to `last` in groups of GROUP, each of them as ranges that one read takes."""
    for start in range(behind + 1, last + 1, GROUP):
        end = min(start + GROUP, last + 1)
        yield [range(n, min(n + BATCH_GET_LIMIT, end)) for n in range(start, end, BATCH_GET_LIMIT)]


def recount(
    store: Store,
    *,
    total: Recount | None = None,
    behind: int = 0,
    keep: Callable[[int, Recount], object] = lambda number, part: None,
    advance: Advance = lambda numbers: None,
) -> Recount:
    """Add up all tickets: a consistent read for every 100 numbers. Memory depends on days and tags, not on tickets.

    With `behind` those up to this number are in `total` already. `keep` is called with the last number and the sum of
    each whole group.
    """
    total = total or Recount()
    for several in groups(last_number(store), behind=behind):
        part = Recount()
        for found in fan_out([partial(images, store, numbers) for numbers in several]):
            for image in found:
                part.add(image)
        total.merge(part)
        numbers = sum(map(len, several))
        if numbers == GROUP:
            keep(several[-1][-1], part)
        advance(numbers)
    return total


def images(store: Store, numbers: range) -> list[dict[str, Any]]:
    """Read summaries as the stream shows them: one with what no rule of ours writes is found, and ends nothing."""
    wanted = [(ticket_keys.ticket, (number,), ticket_keys.SUMMARY) for number in numbers]
    return [image for image in store.get_many(RawItems(TICKETS), wanted) if image]


# --- progress ---


_KEPT_SECONDS: Final = 86400
_LIMIT: Final = 350_000  # bytes; a longer sum, of tags as nobody has them, is not kept

Touches = Mapping[Group, frozenset[tuple[int, int, int]]]


@dataclass
class RecountRound:
    """One recount. `touches` and `correction` are those of its beginning, `reached` is the number behind which it goes
    on, `total` the sum up to it. `id` is "" for one that is not kept."""

    id: str
    touches: Touches
    correction: str
    reached: int = 0
    total: Recount = field(default_factory=Recount)

    @property
    def is_resumed(self) -> bool:
        return self.reached > 0


def begin(store: Store, before: Stored, *, last: int) -> RecountRound:
    """Begin a recount of the tickets up to the number `last`: one write where there is more than one group of them."""
    begun = RecountRound(uuid.uuid4().hex if last > GROUP else "", before.touches, before.recent.correction)
    if begun.id:
        touches = [[*group, sorted(stands)] for group, stands in before.touches.items()]
        data = _packed({"touches": touches, "correction": begun.correction})
        _write_round(store, begun.id, data if len(data) < _LIMIT else b"")
    return begun


def resume(store: Store) -> RecountRound | None:
    """Return the recount that was broken off with at least one sum, None where there is none: a read of each sum."""
    item = store.get(RoundItem, stored.recounting, sort=stored.ROUND, consistent=True)
    if item is None or not item.round or not item.data:
        return None
    begun = _unpacked(item.data)
    touches = {(k, date): frozenset((e, m, n) for e, m, n in stands) for k, date, stands in begun["touches"]}
    found = RecountRound(item.round, touches, begun["correction"])
    for one in store.query_all(SumItem, stored.recounting, begins_with=stored.sums(item.round), consistent=True):
        if stored.end_of(one.sk) != found.reached + GROUP:
            break  # one before it has expired
        found.reached += GROUP
        found.total.merge(_sum(one.data))
    return found if found.is_resumed else None


def keep(store: Store, of: RecountRound, number: int, part: Recount) -> None:
    """Write the sum of the group that ends with this number."""
    data = _packed({"c": coding.coded(part.counts), "t": part.tickets, "u": part.uncountable})
    if not of.id or len(data) >= _LIMIT:
        return
    item = SumItem(store.key(stored.recounting), stored.sum_behind(of.id, number))
    store.update(item, [SumItem.data.set(data), SumItem.expires_at.set(_expiry())])


def end(store: Store, of: RecountRound) -> None:
    """Say that there is nothing to go on with."""
    if of.id:
        _write_round(store, "", b"")


def _write_round(store: Store, round_id: str, data: bytes) -> None:
    item = RoundItem(store.key(stored.recounting), stored.ROUND)
    store.update(item, [RoundItem.round.set(round_id), RoundItem.data.set(data), RoundItem.expires_at.set(_expiry())])


def _expiry() -> int:
    return int(time.time()) + _KEPT_SECONDS


def _sum(data: bytes) -> Recount:
    read = _unpacked(data)
    part = Recount(tickets=read["t"], uncountable=read["u"])
    part.add_counts(coding.decoded(read["c"]))
    return part


def _packed(value: Any) -> bytes:
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode())


def _unpacked(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))
