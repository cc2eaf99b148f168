"""Once a minute a worker looks how full the queues are: the sender and operators learn it, nobody depends on it."""

from __future__ import annotations

import random
from collections import Counter

from delivery.queues import depths
from delivery.queues.limits import DeliveryLimits
from delivery.queues.periodic_work import Refresher
from delivery.queues.queue_transport import Depth, Message, QueueTransport
from delivery.queues.sender import Sender
from portal.dynamo import meter
from tests.dispatching.test_sender import HandClock, Recorder, offer

PLENTY = DeliveryLimits(in_flight=10_000, per_second=1e6, burst=10_000)


def test_a_minute_passes_between_two_looks_and_operators_read_the_last(engine: None) -> None:
    transport, clock = QueueTransport(), HandClock()
    transport.create_all()
    transport.send(3, [Message("a" * 32, "a#1", "2026", 0, "mail")])
    refresher = Refresher(Sender(transport), transport, clock=clock)
    assert depths.read() is None
    assert [refresher.turn(), refresher.turn()] == [True, False]
    seen = depths.read()
    assert seen is not None
    assert seen.queues[3] == Depth(1, 0, 0)
    assert len(seen.queues) == 8
    assert not seen.is_late
    clock.now += 60
    assert refresher.turn()


def test_reading_it_is_one_read(engine: None, bill: meter.Meter) -> None:
    depths.read()
    assert [call.operation for call in bill.calls] == ["GetItem"]


def test_the_sender_avoids_a_queue_that_others_have_filled(engine: None) -> None:
    transport = QueueTransport()
    transport.create_all()
    transport.send(0, [Message("a" * 32, f"a#{n}", "2026", 0, "mail") for n in range(40)])
    recorder = Recorder()
    chance = random.Random(1)  # noqa: S311  # the test repeats itself
    sender = Sender(recorder, limits_of=lambda _: PLENTY, chance=chance)
    Refresher(sender, transport).turn()
    sender.offer(offer(n, queues=(0, 1)) for n in range(40))
    assert Counter(queue for queue, _ in recorder.sent) == {0: 10, 1: 30}


def test_queues_that_are_missing_stop_nobody(engine: None) -> None:
    refresher = Refresher(Sender(Recorder()), QueueTransport())
    assert refresher.turn()
    assert depths.read() is None
