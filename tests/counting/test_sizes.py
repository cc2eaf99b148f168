"""No aggregate grows with the stream's shards, the days that pass, former members or tags; what things cost."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from portal.dynamo.meter import item_size
from portal.streams import batch
from tests.support import folding
from tests.support.aggregate_table import AggregateTable
from tests.support.folding import contribution, image, record
from tickets.counting import contributions, merge, stored
from tickets.counting.record_changes import Change
from tickets.ticket.fields import Priority, Status

ACME = "a" * 32
SHARDS, DAYS, FORMER, TAGS, TICKETS = 400, 90, 2_000, 5_000, 1_000
FIRST = date(2026, 8, 24)
LIMIT = 4096


class Desk:
    """A tenant's life in memory: tickets are opened over ninety days, and some are resolved a little later."""

    def __init__(self, table: AggregateTable, *, shards: int, seed: int = 1) -> None:
        self.table, self.rng = table, random.Random(seed)  # noqa: S311  # repeatable
        self.shards = [f"shardId-{n:020}-{n * 7919 % 2**32:08x}" for n in range(shards)]
        self.people = [f"{n * 104729:032x}" for n in range(FORMER)]
        self.last: dict[int, dict[str, Any]] = {}
        self.sequence, self.batches = 0, 0

    def live(self, tickets: int) -> None:
        pending: list[dict[str, Any]] = []
        for n in range(1, tickets + 1):
            day = FIRST + timedelta(days=n * DAYS // (tickets + 1))
            pending.append(self.write(n, **self.opened(day)))
            if n % 3 == 0:
                pending.append(self.write(n - 2, **self.resolved(n - 2, day)))
            if len(pending) >= self.rng.randint(1, 3):
                self.deliver(pending)
                pending = []
        self.deliver(pending)

    def opened(self, day: date) -> dict[str, Any]:
        priority = self.rng.choice(list(Priority)).value
        tags = [f"tag-{self.rng.randrange(TAGS)}"]
        return {"created_at": f"{day}T10:00:00.000000Z", "priority": priority, "tags": tags}

    def resolved(self, number: int, day: date) -> dict[str, Any]:
        at = f"{day}T{self.rng.randrange(11, 24)}:00:00.000000Z"
        former = {name: next(iter(self.last[number][name].values())) for name in ("created_at", "priority")}
        former["tags"] = [tag["S"] for tag in self.last[number]["tags"]["L"]]
        who = self.rng.choice(self.people)
        status = {"status": Status.RESOLVED.value, "resolver": who, "responded_at": at, "resolved_at": at}
        return {**former, **status, "days": {f"{day}r": 1, f"{day}c": 2}}

    def write(self, number: int, **changed: Any) -> dict[str, Any]:
        self.sequence += 1
        old, new = self.last.get(number), image(ACME, number, **{"count_form": 1} | changed)
        self.last[number] = new
        return record(self.sequence, old, new)

    def deliver(self, records: list[dict[str, Any]]) -> None:
        if records:
            shard = self.rng.choice(self.shards)
            folding.apply(records, shard)
            self.table.positions[shard] = str(self.sequence).zfill(40)
            self.batches += 1

    def truth(self) -> contributions.Contribution:
        return contributions.total(map(contribution, self.last.values()))


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[AggregateTable]:
    made = AggregateTable()
    made.install(monkeypatch)
    folding.remember_nothing()
    yield made
    folding.remember_nothing()


def dashboard_units(table: AggregateTable, days: int) -> float:
    """Read units of the dashboard's one Query."""
    first = stored.first_day(str(FIRST + timedelta(days=DAYS - days)))
    size = sum(item_size(raw) for (_, sk), raw in table.items.items() if first <= sk <= stored.VERIFIED)
    return math.ceil(size / 4096) * 0.5


def test_the_largest_tenant_has_small_items_and_a_cheap_dashboard(table: AggregateTable) -> None:
    desk = Desk(table, shards=SHARDS)
    desk.live(TICKETS)
    largest = max(table.items.values(), key=item_size)
    assert item_size(largest) <= LIMIT, largest["sk"]
    assert table.write_units / desk.batches <= 11
    assert dashboard_units(table, 30) + 1 <= 2.5  # with the watermark and the names of the members
    assert dashboard_units(table, 90) + 1 <= 5
    assert table.counts(ACME) == desk.truth()


def test_a_quiet_tenant_keeps_no_marks_of_shards_that_have_left_the_stream(table: AggregateTable) -> None:
    """Each shard brings one change and leaves long before the next merge."""
    desk = Desk(table, shards=SHARDS)
    largest = 0
    for number, shard in enumerate(desk.shards, 1):
        folding.apply([desk.write(number, created_at=f"{FIRST}T10:00:00.000000Z")], shard)
        table.leave(shard)
        largest = max(largest, *map(item_size, table.items.values()))
    assert largest <= LIMIT
    assert table.counts(ACME) == desk.truth()


def test_one_merge_takes_the_counts_of_95_days() -> None:
    some = batch.parse(record(1, None, image("1" * 32, 1)))
    days = [(date(2026, 1, 1) + timedelta(days=n)).isoformat() for n in range(97)]
    changes = [Change(some.sequence, some, contributions.Counts({f"D1:{day}:c": 1})) for day in days]
    group, fills = merge.first_group(None, changes)
    assert (len(group), fills) == (95, True)
    assert len(group) + len(["RECENT", "LEADERS", "a run"]) <= 98, "two are left for a move that is under way"
