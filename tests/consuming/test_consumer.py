"""One worker over queues in memory: who gets its slots, and what becomes of what it cannot do."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.queues import consumer as consumer_module
from delivery.queues import limits as limits_module
from delivery.queues import message_handling
from delivery.queues.consumer import Consumer
from delivery.queues.limits import DeliveryLimits
from delivery.queues.message_handling import Handled
from delivery.queues.queue_transport import Message, Received
from portal.errors import Throttled, Unavailable
from tests.support.queue_in_memory import QueuesInMemory
from tests.support.waiting import PATIENCE, wait_until

ACME, GLOBEX = "a" * 32, "b" * 32
SLOTS = 6
FAST = DeliveryLimits(in_flight=2, per_second=10_000, burst=10_000)
DONE = Handled("answered")


def message(number: int = 0, tenant_id: str = ACME) -> Message:
    return Message(tenant_id, f"{tenant_id}#{number:032x}", "2026-11-22T03:00:00.000000Z", 0, "mail")


class Handler:
    """Notes what it is given. What `blocks` says waits until `let_go`."""

    def __init__(self, blocks: Callable[[Message], bool] = lambda message: False) -> None:
        self.blocks, self._open, self._lock = blocks, threading.Event(), threading.Lock()
        self.seen: list[Message] = []
        self.done: list[Message] = []
        self._running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    def __call__(self, received: Received) -> Handled:
        message = received.message
        with self._lock:
            self.seen.append(message)
            self._running[message.tenant_id] += 1
            self.most[message.tenant_id] = max(self.most[message.tenant_id], self._running[message.tenant_id])
        if self.blocks(message):
            assert self._open.wait(120)
        with self._lock:
            self._running[message.tenant_id] -= 1
            self.done.append(message)
        return DONE

    def let_go(self) -> None:
        self._open.set()


def worker(
    queues: QueuesInMemory,
    handle: Callable[[Received], Handled],
    *,
    limits: DeliveryLimits = FAST,
    slots: int = SLOTS,
    of: int = 1,
    poll_seconds: int = 1,
) -> Consumer:
    return Consumer(
        queues, handle, range(of), slots=slots, limits_of=lambda tenant_id: limits, poll_seconds=poll_seconds
    )


@contextmanager
def consuming(
    queues: QueuesInMemory,
    handle: Callable[[Received], Handled],
    *,
    limits: DeliveryLimits = FAST,
    slots: int = SLOTS,
    of: int = 2,
) -> Iterator[Consumer]:
    consumer = worker(queues, handle, limits=limits, slots=slots, of=of)
    consumer.start()
    try:
        yield consumer
    finally:
        assert consumer.stop(seconds=PATIENCE)
        assert not consumer.failed.is_set()


def test_a_slow_tenant_never_has_more_than_its_cap_and_the_others_are_served_meanwhile() -> None:
    queues, handler = QueuesInMemory(), Handler(lambda message: message.tenant_id == ACME)
    queues.send(0, [message(number) for number in range(12)])
    queues.send(0, [message(number, GLOBEX) for number in range(12)])
    with consuming(queues, handler):
        wait_until(lambda: sum(one.tenant_id == GLOBEX for one in handler.done) == 12)
        assert not any(one.tenant_id == ACME for one in handler.done)
        wait_until(lambda: handler.most[ACME] == FAST.in_flight)
        handler.let_go()
        wait_until(lambda: len(handler.done) == 24)
    assert handler.most[ACME] == FAST.in_flight


def test_what_is_over_the_cap_begins_as_soon_as_a_unit_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_module, "ASIDE_SECONDS", 3600.0)
    queues, handler = QueuesInMemory(), Handler(lambda message: True)
    queues.send(0, [message(number) for number in range(5)])
    with consuming(queues, handler) as consumer:
        wait_until(lambda: consumer.report()["waiting"] == 3 and handler.most[ACME] == FAST.in_flight)
        handler.let_go()
        wait_until(lambda: not queues.left())
    assert [one.postponed for one in handler.seen] == [0] * 5, "nothing went back to the queue"
    assert handler.most[ACME] == FAST.in_flight


def test_what_was_set_aside_is_given_back_at_the_end() -> None:
    queues, handler = QueuesInMemory(), Handler(lambda message: True)
    queues.send(0, [message(number) for number in range(5)])
    consumer = worker(queues, handler)
    consumer.start()
    wait_until(lambda: consumer.report()["waiting"] == 3)
    stopping = threading.Thread(target=consumer.stop)
    stopping.start()
    wait_until(lambda: sum(one.postponed == 1 for one in queues.left()) == 3)
    handler.let_go()
    stopping.join(120)


def test_what_was_met_in_two_deaths_runs_alone_and_then_the_others_go_on() -> None:
    suspect = replace(message(99, GLOBEX), strikes=2)
    queues, handler = QueuesInMemory(), Handler(lambda message: message.strikes == 2)
    queues.send(0, [message(0), suspect, *(message(number) for number in range(1, 9))])
    with consuming(queues, handler):
        wait_until(lambda: suspect in handler.seen)
        begun = len(handler.seen)
        time.sleep(0.2)  # in which the others would begin
        assert (len(handler.seen), len(handler.done)) == (begun, begun - 1), "nothing runs beside it"
        handler.let_go()
        wait_until(lambda: len(handler.done) == 10)


def test_what_runs_alone_and_hangs_makes_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "ALONE_SECONDS", 0.1)
    suspect = replace(message(99, GLOBEX), strikes=2)
    queues, handler = QueuesInMemory(), Handler(lambda message: message.strikes == 2)
    queues.send(0, [suspect])
    with consuming(queues, handler):
        wait_until(lambda: suspect in handler.seen)
        queues.send(1, [message(number) for number in range(4)])
        wait_until(lambda: len(handler.done) == 4)
        handler.let_go()


def test_what_should_run_alone_is_put_off_where_something_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "ALONE_SECONDS", 0.1)
    suspect = replace(message(99, GLOBEX), strikes=2)
    queues, handler = QueuesInMemory(), Handler(lambda message: message.tenant_id == ACME)
    queues.send(0, [message()])
    with consuming(queues, handler):
        wait_until(lambda: handler.seen)
        queues.send(0, [suspect])
        wait_until(lambda: any(one.postponed for one in queues.left()))
        handler.let_go()


def test_what_is_over_the_cap_waits_and_that_is_no_strike() -> None:
    queues, handler = QueuesInMemory(), Handler(lambda message: True)
    queues.send(0, [message(number) for number in range(5)])
    with consuming(queues, handler):
        wait_until(lambda: sum(one.postponed for one in queues.left()) >= 3)
        handler.let_go()
        wait_until(lambda: len(handler.done) == 5)
        wait_until(lambda: not queues.left())
    assert {one.strikes for one in handler.seen} == {0}


def test_a_message_that_was_put_off_too_often_is_left_to_its_row() -> None:
    queues = QueuesInMemory()
    queues.send(0, [replace(message(), postponed=message_handling.MOST_POSTPONEMENTS), message(1)])
    handler = Handler(lambda message: True)
    with consuming(queues, handler, limits=replace(FAST, in_flight=1)) as consumer:
        queues.send(1, [replace(message(2), postponed=message_handling.MOST_POSTPONEMENTS)])
        wait_until(lambda: consumer.report().get("left"))
        handler.let_go()
        wait_until(lambda: not queues.left())
    assert 1 <= len(handler.done) <= 2


def test_a_flood_is_put_off_until_there_are_tokens() -> None:
    queues, handler = QueuesInMemory(), Handler()
    queues.send(0, [message(number) for number in range(10)])
    with consuming(queues, handler, limits=replace(FAST, in_flight=6, per_second=3, burst=2)) as consumer:
        wait_until(lambda: consumer.report().get("postponed"))
        wait_until(lambda: len(handler.done) == 10)


def test_suspects_run_one_at_a_time_and_all_others_beside_them() -> None:
    queues, handler = QueuesInMemory(), Handler(lambda message: message.strikes > 0)
    queues.send(0, [replace(message(number, f"{number:032x}"), strikes=1) for number in range(4)])
    queues.send(1, [message(number, f"{number:032x}") for number in range(4, 8)])
    with consuming(queues, handler):
        wait_until(lambda: len(handler.done) == 4 and any(one.strikes > 0 for one in handler.seen))
        assert sum(one.strikes > 0 for one in handler.seen) == 1
        handler.let_go()
        wait_until(lambda: len(handler.done) == 8)


def test_what_was_received_by_a_worker_that_died_is_a_suspect() -> None:
    queues, seen = QueuesInMemory(), []
    queues.send(0, [message()])
    queues.receive(0, most=1, wait=0, visibility=30)
    queues.time_out()

    def handle(received: Received) -> Handled:
        seen.append(received.strikes)
        return DONE

    with consuming(queues, handle):
        wait_until(lambda: not queues.left())
    assert seen == [1]


def test_stopping_finishes_what_runs_and_gives_back_what_has_not_begun() -> None:
    queues, handler = QueuesInMemory(), Handler(lambda message: True)
    consumer = worker(queues, handler, slots=1, of=3, poll_seconds=10_000)
    consumer.start()
    wait_until(lambda: queues.polls == 3)  # each queue has been asked while the slot was free
    sent = [message(number) for number in range(3)]
    for queue, one in enumerate(sent):
        queues.send(queue, [one])
    wait_until(lambda: consumer.report()["running"] == 1 and consumer.report()["waiting"] == 2)
    stopping = threading.Thread(target=consumer.stop)
    stopping.start()
    wait_until(lambda: not consumer.report()["waiting"])
    handler.let_go()
    stopping.join()
    assert len(handler.done) == 1
    left = [one.message for queue in range(3) for one in queues.receive(queue, most=10, wait=0, visibility=30)]
    assert Counter(replace(one, postponed=0) for one in left) == Counter(sent) - Counter(handler.done)


def test_a_delivery_that_hangs_does_not_keep_the_worker_from_stopping() -> None:
    queues, handler = QueuesInMemory(), Handler(lambda message: True)
    queues.send(0, [message()])
    consumer = worker(queues, handler, poll_seconds=0)
    consumer.start()
    wait_until(lambda: handler.seen)
    assert not consumer.stop(seconds=0.5)
    assert queues.left() == [message()]
    handler.let_go()


@pytest.mark.parametrize("error", [Unavailable("away"), Throttled("busy")])
def test_while_the_queues_are_away_it_waits_and_then_goes_on(error: Exception) -> None:
    queues, handler = QueuesInMemory(), Handler()
    queues.errors = [error] * 6
    queues.send(0, [message()])
    with consuming(queues, handler):
        wait_until(lambda: handler.done)
    assert not queues.errors


@pytest.mark.parametrize("body", ["", "not json", "[]", "{}", '{"tenant_id": 7}', '{"tenant_id": "..", "index": -1}'])
def test_what_is_no_message_is_thrown_away_and_logged(body: str, caplog: pytest.LogCaptureFixture) -> None:
    queues, handler = QueuesInMemory(), Handler()
    queues.put(0, body)
    queues.send(0, [message()])
    with consuming(queues, handler) as consumer:
        wait_until(lambda: consumer.report().get("answered") and consumer.report().get("refused"))
        wait_until(lambda: not queues._stored)
    assert handler.seen == [message()]
    assert "thrown away" in caplog.text


def test_what_cannot_be_deleted_comes_again() -> None:
    queues, handler = QueuesInMemory(), Handler()
    queues.refuses_deletes = True
    queues.send(0, [message()])
    with consuming(queues, handler):
        wait_until(lambda: handler.done)
        queues.refuses_deletes = False
        queues.time_out()
        wait_until(lambda: not queues.left())
    assert set(handler.seen) == {message()}


def test_a_busy_queue_is_asked_for_many_at_a_time() -> None:
    queues, handler = QueuesInMemory(), Handler()
    queues.send(0, [message(number, f"{number:032x}") for number in range(60)])
    with consuming(queues, handler, slots=16):
        wait_until(lambda: len(handler.done) == 60)
    assert 4 <= queues.longest_ask <= 10


@settings(deadline=None, max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()), max_size=25), st.integers(1, 3))
def test_whatever_comes_each_message_is_handled_and_no_tenant_passes_its_cap(
    sent: list[tuple[int, int, bool]], cap: int
) -> None:
    queues = QueuesInMemory()
    handler = Handler()
    every = [(queue, message(number, f"{tenant:032x}")) for number, (queue, tenant, _) in enumerate(sent)]
    for (queue, one), (_, _, again) in zip(every, sent, strict=True):
        queues.send(queue, [one])
        if again:  # it had been received by a worker that died, and so comes first
            queues.receive(queue, most=1, wait=0, visibility=30)
    queues.time_out()
    with consuming(queues, handler, limits=replace(FAST, in_flight=cap), slots=6, of=3):
        wait_until(lambda: not queues.left())
    assert {one.event_id for one in handler.done} == {one.event_id for _, one in every}
    assert len(handler.done) == len(every)
    assert all(most <= cap for most in handler.most.values())
