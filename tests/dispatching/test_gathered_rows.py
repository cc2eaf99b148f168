"""A row that gathers texts is sent when its minute is over, and a text is in one row however often it is added."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from delivery.outbox import gathering, outbox_rows
from delivery.outbox.gathering import RowGroup
from delivery.outbox.outbox_rows import Work
from delivery.outbox.publisher import EventType
from delivery.outbox.stored import OUTBOX, OutboxItem
from delivery.queues.dispatcher import Dispatcher, Sweeper
from delivery.queues.limits import DeliveryLimits
from delivery.queues.queue_transport import QueueTransport
from delivery.queues.sender import Sender
from portal import clock
from portal.streams.poller import Poller
from tenants.tenancy.context import TenantContext
from tests.dispatching.test_dispatching import AT_ONCE, received
from tests.support.outbox import rows
from tests.support.world import World

TOLD = EventType("test.gathered", 1, "Something is to be told.", ())
AT = datetime(2026, 11, 20, 9, 30, 30, tzinfo=UTC)


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    def be_at(since: timedelta) -> None:
        monkeypatch.setattr(clock, "now", lambda: AT + since)

    be_at(timedelta(0))
    return be_at


def add(tenant: TenantContext, text: str, *, name: str = "one", seconds: int = 0) -> bool:
    group = RowGroup(tenant.tenant_id, [1, 2], name, "digest", TOLD)
    return gathering.add(tenant.repository, group, text, at=clock.stamp(AT + timedelta(seconds=seconds)))


def seal(tenant: TenantContext, row: OutboxItem) -> set[str]:
    return gathering.seal(Work(tenant.repository, row, 0, "digest"))


def gathered() -> list[set[str]]:
    return [set(row.gathered) for row in rows()]


def test_the_row_is_sent_by_the_sweeper_when_its_minute_is_over_and_not_by_the_stream(
    alice: TenantContext, moment: Callable[[timedelta], None]
) -> None:
    transport = QueueTransport()
    transport.create_all()
    dispatcher = Dispatcher(Sender(transport, limits_of=lambda tenant_id: DeliveryLimits(1000, 1000, 1000)))
    poller = Poller(OUTBOX, dispatcher.handle)
    poller.step()
    add(alice, "a")
    add(alice, "b")
    poller.step()
    assert Sweeper(dispatcher).sweep(grace=AT_ONCE)["sent"] == 0
    moment(timedelta(seconds=31))
    assert Sweeper(dispatcher).sweep(grace=AT_ONCE)["sent"] == 1
    (message,) = received(transport)
    assert (message.destination, message.index) == ("digest", 0)
    poller.release()


def test_texts_of_one_minute_and_group_are_one_row_and_others_are_apart(alice: TenantContext) -> None:
    assert [add(alice, "a"), add(alice, "b", seconds=29), add(alice, "a")] == [True, True, False]
    add(alice, "c", seconds=30)
    add(alice, "d", name="two")
    assert sorted(map(sorted, gathered())) == [["a", "b"], ["c"], ["d"]]


def test_a_sealed_row_takes_no_more_and_knows_what_it_has(alice: TenantContext) -> None:
    add(alice, "a")
    (row,) = rows()
    assert seal(alice, row) == {"a"}
    assert [add(alice, "a"), add(alice, "b"), add(alice, "b")] == [False, True, False]
    assert sorted(map(sorted, gathered())) == [["a"], ["b"]]


def test_an_answered_row_takes_no_more_either(alice: TenantContext) -> None:
    add(alice, "a")
    (row,) = rows()
    outbox_rows.answered(Work(alice.repository, row, 0, "digest"))
    assert [add(alice, "a"), add(alice, "b")] == [False, True]
    assert [bool(row.pending) for row in rows()] == [False, True]


def test_whatever_adds_and_seals_at_the_same_time_each_text_is_in_one_row(alice: TenantContext) -> None:
    def adds(number: int) -> None:
        add(alice, str(number % 10))
        for row in rows():
            seal(alice, row)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(adds, range(40)))
    assert sorted(text for row in gathered() for text in row) == sorted(map(str, range(10)))


def test_a_row_of_another_desk_is_another_row(world: World, alice: TenantContext) -> None:
    add(alice, "a")
    add(world.context("charlie", "globex"), "a")
    assert gathered() == [{"a"}, {"a"}]
    assert len({row.event_id.split("|")[0] for row in rows()}) == 2
