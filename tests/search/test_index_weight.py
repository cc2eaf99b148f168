"""What an index weighs: items, headers, and what comes to one partition in one second."""

from __future__ import annotations

import random

import pytest

from portal.dynamo.meter import item_size
from tests.search.memory_store import MemoryStore
from tickets.search import stored
from tickets.search.index import index_store
from tickets.search.index.index_store import WritePace, block_overhead
from tickets.search.index.segments import SegmentWriter

ITEM_LIMIT, HEADER_LIMIT = 16 * 1024, 64 * 1024  # bytes
PARTITION_LIMIT = 1000  # write units a second; AWS, "Designing partition keys to distribute your workload"
MILLION = 110_000_000  # bytes of the index of a million tickets, see docs/search.md
# 16 blocks of 16 KB are sent side by side.
GROUP = 256


@pytest.mark.parametrize("expected", [1_000_000, MILLION])
def test_every_item_and_header_is_within_its_limit(expected: int) -> None:
    """Write the beginning of a segment that is expected to become so large: blocks are as large as its own."""
    rng, store, written = random.Random(1), MemoryStore(), 1_000_000  # noqa: S311  # it has to be repeatable
    writer = SegmentWriter(store, stored.segment_id(1), expected=expected)
    for rank in range(written // 580):
        writer.add(f"{rank:08x}".encode(), [rng.randbytes(int(4 * 1000 ** rng.random()))])
    header = writer.finish([1])
    assert header.blocks > 50
    assert max(map(len, store.stored_blocks.values())) + block_overhead() <= ITEM_LIMIT
    assert item_size(header.serialize()) * expected / header.size <= HEADER_LIMIT


@pytest.mark.parametrize("units", [1, 16, GROUP])
def test_no_second_gets_more_than_a_partition_takes(units: int) -> None:
    now = 0.0
    sent: dict[int, int] = {}

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    pace = WritePace(now=lambda: now, sleep=sleep)
    for _ in range(10_000 // units):
        pace.wait()
        sent[int(now)] = sent.get(int(now), 0) + units
        pace.spend(units)
    assert max(sent.values()) <= PARTITION_LIMIT
    assert now == pytest.approx(10_000 / index_store.UNITS_A_SECOND, abs=1)


def test_a_small_merge_waits_for_nothing() -> None:
    pace = WritePace(now=lambda: 0.0, sleep=lambda seconds: pytest.fail("it waited"))
    pace.spend(index_store.BURST)
    pace.wait()
