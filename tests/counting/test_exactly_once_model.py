"""Exactly once, whatever the interleaving: processes that stop between any two requests, sleep, wake late, or die.

Meanwhile requests are throttled, positions are saved, and shards that have been read to their end leave the stream.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from portal.errors import Throttled
from portal.quotas import BoundedCache
from portal.streams import stream_source
from portal.streams.batch import batch_of
from tests.support import folding, listing
from tests.support.aggregate_table import AggregateTable
from tests.support.folding import ARN, contribution, image, record
from tickets.counting import contributions, leaders, merge, stream_handler
from tickets.counting.stored import Recent
from tickets.counting.stream_handler import handle

ACME = "a" * 32
LENGTH = 8  # records of each shard
SHARDS = ("shardId-one", "two")
PROCESSES = 3
WRITES = ("UpdateItem", "TransactWriteItems", "PutItem", "DeleteItem")
_patch_lock = threading.Lock()


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


class Process(threading.Thread):
    """Applies one batch, and stops ahead of every request until it is told to go on."""

    def __init__(self, memory: BoundedCache, shard: str, records: list[dict[str, Any]]) -> None:
        super().__init__(daemon=True)
        self.memory, self.shard, self.records = memory, shard, records
        self.killed = self.throttled = self.ended = self.applied = False
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self.error: BaseException | None = None

    def run(self) -> None:
        self._go.acquire()
        try:
            result = handle(batch_of(ARN, self.shard, self.records))
            self.applied = not result.deferred
        except (Killed, Throttled):
            pass
        except BaseException as error:
            self.error = error
        self.ended = True
        self._stopped.release()

    def pause(self) -> None:
        self._stopped.release()
        self._go.acquire()
        if self.killed:
            raise Killed
        if self.throttled:
            self.throttled = False
            raise Throttled("The next request is refused.")

    def step(self) -> None:
        self._go.release()
        assert self._stopped.acquire(timeout=120)
        if self.error:
            raise self.error

    def kill(self) -> None:
        self.killed = True
        while not self.ended:
            self.step()


class MemoryOfEach:
    """What each process remembers is its own."""

    def __init__(self) -> None:
        self.outside = BoundedCache(10)

    def _mine(self) -> BoundedCache:
        thread = threading.current_thread()
        return thread.memory if isinstance(thread, Process) else self.outside

    def get(self, tenant_id: str) -> Recent | None:
        return self._mine().get(tenant_id)

    def put(self, tenant_id: str, state: Recent) -> None:
        self._mine().put(tenant_id, state)

    def forget(self, tenant_id: str) -> None:
        self._mine().forget(tenant_id)


def pause(operation: str) -> None:
    thread = threading.current_thread()
    if isinstance(thread, Process):
        thread.pause()


class Interleavings(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.table = AggregateTable()
        self.table.install(self.patch)
        self.table.before = pause
        self.patch.setattr(stream_handler, "_memory", MemoryOfEach())
        self.patch.setattr(leaders, "BUDGET", {"P": 100, "G": 60})
        self.patch.setattr(merge, "RUN_BYTES", 60)
        self.patch.setattr(merge, "is_full", lambda state: len(state.counts) > self.full)
        self.memories = [BoundedCache(10) for _ in range(PROCESSES)]
        self.running: dict[int, Process] = {}
        self.images = {
            shard: [self.image(n, f"t{n % 5}", f"{n % 2 + 1:032x}") for n in range(first, first + LENGTH)]
            for first, shard in ((1, SHARDS[0]), (101, SHARDS[1]))
        }
        self.records = {
            shard: [record(n + 1, None, one) for n, one in enumerate(images)] for shard, images in self.images.items()
        }
        self.done = dict.fromkeys(SHARDS, 0)  # records of which some process has said that they are applied

    @staticmethod
    def image(number: int, tag: str, resolver: str) -> dict[str, Any]:
        return image(
            ACME, number, tags=[tag], resolver=resolver, created_at=f"2026-11-{number % 5 + 1:02}T10:00:00.000000Z"
        )

    @initialize(full=st.sampled_from([0, 8, 14]), large=st.sampled_from([60, 150, 10_000]))
    def begin(self, full: int, large: int) -> None:
        self.full = full
        self.patch.setattr(merge, "_COUNTS_FULL", large)  # bytes from which on a batch is merged at once

    @rule(
        who=st.integers(0, PROCESSES - 1),
        shard=st.sampled_from(SHARDS),
        back=st.integers(0, 5),
        ahead=st.integers(1, LENGTH),
    )
    def read(self, who: int, shard: str, back: int, ahead: int) -> None:
        """A process begins with a batch that leaves nothing out: it was dead, slow, or robbed of its shard."""
        if who in self.running:
            return
        start = max(0, self.done[shard] - back)
        records = self.records[shard][start : self.done[shard] + ahead]
        if records:
            process = self.running[who] = Process(self.memories[who], shard, records)
            process.start()

    @precondition(lambda self: self.running)
    @rule(data=st.data(), requests=st.integers(1, 8), throttled=st.booleans())
    def go_on(self, data: st.DataObject, requests: int, throttled: bool) -> None:
        who = data.draw(st.sampled_from(sorted(self.running)))
        process = self.running[who]
        process.throttled = throttled
        for _ in range(requests):
            if not process.ended:
                process.step()
        if process.ended:
            del self.running[who]
            if process.applied:
                last = int(process.records[-1]["dynamodb"]["SequenceNumber"])
                self.done[process.shard] = max(self.done[process.shard], last)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        who = data.draw(st.sampled_from(sorted(self.running)))
        self.running.pop(who).kill()
        self.memories[who] = BoundedCache(10)

    @rule(shard=st.sampled_from(SHARDS))
    def save_position(self, shard: str) -> None:
        if shard not in self.table.left:
            self.table.positions[shard] = str(self.done[shard]).zfill(40) if self.done[shard] else ""

    @rule(shard=st.sampled_from(SHARDS), ahead=st.integers(1, 4))
    def overtake(self, shard: str, ahead: int) -> None:
        """Another poller takes the shard, applies more, saves its position and merges, while others sleep."""
        if shard in self.table.left:
            return
        records = self.records[shard][max(0, self.done[shard] - 1) : self.done[shard] + ahead]
        assert not handle(batch_of(ARN, shard, records)).deferred
        self.done[shard] = int(records[-1]["dynamodb"]["SequenceNumber"])
        self.save_position(shard)
        merge_now(self.table)

    @rule(shard=st.sampled_from(SHARDS))
    def leave(self, shard: str) -> None:
        """A shard that was read to its end leaves the stream, and its position goes with it; some may sleep still."""
        if self.done[shard] == LENGTH and self.table.positions.get(shard) == str(LENGTH).zfill(40):
            self.table.leave(shard)

    @invariant()
    def what_a_dashboard_lists_is_right_between_any_two_requests(self) -> None:
        listing.check(self.table, self.stored())

    def stored(self) -> contributions.Contribution:
        return self.table.counts(ACME)

    def teardown(self) -> None:
        try:
            for process in self.running.values():
                process.kill()
            for shard in sorted({*SHARDS} - self.table.left):
                rest = self.records[shard][int(self.table.positions.get(shard) or 0) :]
                if rest:
                    handle(batch_of(ARN, shard, rest))
            truth = contributions.total(contribution(one) for images in self.images.values() for one in images)
            assert self.stored() == truth
        finally:
            self.patch.undo()


# --- the cases that the design is about, one by one ---


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> AggregateTable:
    table = AggregateTable()
    table.install(monkeypatch)
    table.before = pause
    monkeypatch.setattr(stream_handler, "_memory", MemoryOfEach())
    return table


def asleep_before_its_update(table: AggregateTable, records: list[dict[str, Any]]) -> Process:
    """A process that has read RECENT and the position, and has not sent its update yet."""
    return asleep_before("UpdateItem", table, records)


def asleep_before(
    request: str, table: AggregateTable, records: list[dict[str, Any]], memory: BoundedCache | None = None
) -> Process:
    process = Process(memory or BoundedCache(10), SHARDS[0], records)
    process.start()
    operations: list[str] = []
    before, table.before = table.before, lambda operation: (operations.append(operation), pause(operation))
    while request not in operations:
        process.step()
    table.before = before
    return process


def wake(process: Process) -> None:
    while not process.ended:
        process.step()


def some(numbers: range) -> list[dict[str, Any]]:
    return [record(n, None, image(ACME, n)) for n in numbers]


def forget(tenant_id: str) -> None:
    """Let this process know nothing of a tenant in the pool any more."""
    stream_handler._memory.forget((stream_source.POOLED, tenant_id))


def opened(table: AggregateTable) -> int:
    return table.counts(ACME)[contributions.Part("TOTALS", "", 0)]["open.normal"]


def merge_now(table: AggregateTable) -> None:
    assert merge.merge(folding.store_of(ACME), table.recent(ACME), position=stream_handler.Positions(ARN))


def test_of_two_who_are_about_to_write_the_same_batch_one_counts(table: AggregateTable) -> None:
    first, second = (asleep_before_its_update(table, some(range(1, 4))) for _ in range(2))
    wake(first)
    wake(second)
    assert opened(table) == 3


def test_a_mark_that_was_pruned_while_somebody_slept_still_protects(table: AggregateTable) -> None:
    sleeper = asleep_before_its_update(table, some(range(1, 4)))
    handle(batch_of(ARN, SHARDS[0], some(range(1, 6))))
    table.positions[SHARDS[0]] = "5".zfill(40)
    merge_now(table)
    assert not table.recent(ACME).marks
    wake(sleeper)
    assert opened(table) == 5


@pytest.mark.parametrize("merges", [0, 1])
def test_a_mark_that_was_pruned_while_somebody_slept_who_knew_recent_still_protects(
    table: AggregateTable, merges: int
) -> None:
    knows = Process(BoundedCache(10), SHARDS[0], some(range(1, 3)))
    knows.start()
    wake(knows)
    for _ in range(merges):
        merge_now(table)
    sleeper = asleep_before("UpdateItem", table, some(range(3, 6)), knows.memory)
    if merges:  # what it knew was of before the merge, so it has read RECENT anew; let it know that too
        wake(sleeper)
        sleeper = asleep_before("UpdateItem", table, some(range(6, 8)), knows.memory)
    last = 8 if merges else 6
    handle(batch_of(ARN, SHARDS[0], some(range(3, last + 1))))
    table.positions[SHARDS[0]] = str(last).zfill(40)
    merge_now(table)
    assert not table.recent(ACME).marks
    wake(sleeper)
    assert opened(table) == last


def test_who_finds_no_mark_reads_the_position_of_the_shard(table: AggregateTable) -> None:
    handle(batch_of(ARN, SHARDS[0], some(range(1, 6))))
    table.positions[SHARDS[0]] = "5".zfill(40)
    merge_now(table)
    forget(ACME)
    handle(batch_of(ARN, SHARDS[0], some(range(4, 8))))
    assert opened(table) == 7


def test_a_floor_of_before_a_merge_is_not_believed_after_it(table: AggregateTable) -> None:
    sleeper = asleep_before_its_update(table, some(range(1, 4)))
    handle(batch_of(ARN, SHARDS[0], some(range(1, 6))))
    table.positions[SHARDS[0]] = "5".zfill(40)
    merge_now(table)
    handle(batch_of(ARN, SHARDS[1], some(range(101, 103))))
    wake(sleeper)
    assert opened(table) == 7


def left(table: AggregateTable, shard: str, last: int) -> None:
    """The shard is applied to its end, its mark is pruned, it leaves the stream, and its position is forgotten."""
    table.positions[shard] = str(last).zfill(40)
    merge_now(table)
    table.leave(shard)


def test_who_slept_until_its_shard_had_left_the_stream_counts_nothing(table: AggregateTable) -> None:
    sleeper = asleep_before_its_update(table, some(range(1, 4)))
    handle(batch_of(ARN, SHARDS[0], some(range(1, 6))))
    left(table, SHARDS[0], 5)
    wake(sleeper)
    assert opened(table) == 5


def test_who_looks_at_a_batch_only_when_its_shard_has_left_the_stream_counts_nothing(table: AggregateTable) -> None:
    handle(batch_of(ARN, SHARDS[0], some(range(1, 6))))
    left(table, SHARDS[0], 5)
    forget(ACME)
    result = handle(batch_of(ARN, SHARDS[0], some(range(4, 8))))
    assert (opened(table), result.deferred) == (5, ())


def test_a_mark_whose_shard_left_the_stream_before_a_merge_is_pruned_by_it(table: AggregateTable) -> None:
    handle(batch_of(ARN, SHARDS[0], some(range(1, 6))))
    table.leave(SHARDS[0])
    merge_now(table)
    assert not table.recent(ACME).marks
    forget(ACME)
    handle(batch_of(ARN, SHARDS[0], some(range(1, 6))))
    assert opened(table) == 5


def test_a_merge_that_was_overtaken_by_an_update_loses_nothing(
    table: AggregateTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "is_full", lambda state: isinstance(threading.current_thread(), Process))
    merging = asleep_before("TransactWriteItems", table, some(range(1, 4)))
    handle(batch_of(ARN, SHARDS[1], some(range(101, 103))))
    wake(merging)
    assert opened(table) == 5


def test_a_mark_that_no_position_covers_survives_a_merge(table: AggregateTable) -> None:
    handle(batch_of(ARN, SHARDS[0], some(range(1, 6))))
    merge_now(table)
    forget(ACME)
    handle(batch_of(ARN, SHARDS[0], some(range(1, 8))))
    assert opened(table) == 7


def test_a_large_batch_that_is_merged_at_once_counts_once(
    table: AggregateTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "_COUNTS_FULL", 1)
    sleeper = Process(BoundedCache(10), SHARDS[0], some(range(1, 4)))
    sleeper.start()
    operations: list[str] = []
    table.before = lambda operation: (operations.append(operation), pause(operation))
    while "TransactWriteItems" not in operations:
        sleeper.step()
    handle(batch_of(ARN, SHARDS[0], some(range(1, 6))))
    wake(sleeper)
    assert opened(table) == 5


def test_a_large_part_of_a_batch_takes_one_write(table: AggregateTable) -> None:
    operations: list[str] = []
    table.before = operations.append
    days = [
        image(ACME, n, created_at=f"2026-11-{n % 28 + 1:02}T10:00:00.000000Z", tags=[f"t{n}"]) for n in range(1, 61)
    ]
    handle(batch_of(ARN, SHARDS[0], [record(n, None, one) for n, one in enumerate(days, 1)]))
    assert [name for name in operations if name in WRITES] == ["TransactWriteItems"]
    assert opened(table) == 60


def test_a_tenant_whose_mark_is_there_or_who_is_new_costs_a_process_that_starts_one_request(
    table: AggregateTable,
) -> None:
    operations: list[str] = []
    table.before = operations.append
    handle(batch_of(ARN, SHARDS[0], some(range(1, 4))))
    merge_now(table)
    forget(ACME)
    operations.clear()
    new = record(5, None, image("b" * 32, 5))
    handle(batch_of(ARN, SHARDS[0], [*some(range(4, 5)), new]))
    assert operations == ["UpdateItem", "UpdateItem"]
    assert opened(table) == 4


def test_tenants_that_a_process_meets_together_read_the_position_once(table: AggregateTable) -> None:
    tenants = [f"{n:032x}" for n in range(1, 9)]
    handle(batch_of(ARN, SHARDS[0], [record(n, None, image(t, n)) for n, t in enumerate(tenants, 1)]))
    table.positions[SHARDS[0]] = "8".zfill(40)
    for tenant in tenants:
        assert merge.merge(folding.store_of(tenant), table.recent(tenant), position=stream_handler.Positions(ARN))
        forget(tenant)
    operations: list[str] = []
    table.before = operations.append
    handle(batch_of(ARN, SHARDS[0], [record(n, None, image(t, n)) for n, t in enumerate(tenants, 9)]))
    assert (operations.count("Position"), operations.count("GetItem")) == (1, 0)


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(
    max_examples=20, stateful_step_count=40, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
