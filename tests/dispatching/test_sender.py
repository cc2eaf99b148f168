"""A sender holds each tenant to its limits, loses nothing it was offered, and sends to the tenant's own queues only."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from delivery.outbox.outbox_rows import CERTAINLY_ANSWERED
from delivery.queues import queue_sets
from delivery.queues import sender as sending
from delivery.queues.limits import DeliveryLimits, queues_of
from delivery.queues.queue_transport import Depth, Message
from delivery.queues.sender import Offer, Sender
from portal.errors import Unavailable

TENANTS = ["a" * 32, "b" * 32, "c" * 32]
HOLD = CERTAINLY_ANSWERED.total_seconds()
LIMITS = DeliveryLimits(in_flight=3, per_second=2.0, burst=4)


class HandClock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Recorder:
    """Takes what is sent, or refuses all or some of it."""

    queues = 8

    def __init__(self) -> None:
        self.sent: list[tuple[int, Message]] = []
        self.is_down = False
        self.refuses: set[str] = set()

    def send(self, queue: int, messages: Sequence[Message]) -> list[Message]:
        if self.is_down:
            raise Unavailable("The queues cannot be reached.")
        refused = [message for message in messages if message.event_id in self.refuses]
        self.sent += [(queue, message) for message in messages if message not in refused]
        return refused


def offer(number: int, tenant_id: str = TENANTS[0], queues: Sequence[int] | None = None, attempt: int = 1) -> Offer:
    message = Message(tenant_id, f"{tenant_id}#{number}", "2026-11-22", 0, "mail")
    return Offer(message, sorted(queue_sets.nth(0, 8)) if queues is None else queues, attempt)


def a_sender(
    limits: DeliveryLimits = LIMITS, seed: int = 1, workers: int = 1, **more: int
) -> tuple[Sender, Recorder, HandClock]:
    recorder, clock = Recorder(), HandClock()
    chance = random.Random(seed)  # noqa: S311  # the test repeats itself
    sender = Sender(recorder, workers=workers, limits_of=lambda _: limits, clock=clock, chance=chance, **more)
    return sender, recorder, clock


PLENTY = DeliveryLimits(in_flight=10_000, per_second=1e6, burst=10_000)


def test_a_tenant_has_no_more_in_flight_than_its_cap_and_the_next_goes_when_one_is_over() -> None:
    sender, recorder, _ = a_sender()
    taken = sender.offer(offer(n) for n in range(5))
    assert (len(taken.sent), len(taken.waiting), len(taken.left)) == (3, 2, 0)
    assert sender.pump().sent == []
    assert sender.over(taken.sent[0].message.event_id, 0, "mail")
    assert [one.message.event_id for one in sender.pump().sent] == [offer(3).message.event_id]
    assert len(recorder.sent) == 4


def test_the_bucket_holds_back_what_the_cap_would_let_through() -> None:
    sender, recorder, clock = a_sender(DeliveryLimits(in_flight=100, per_second=2.0, burst=4))
    sender.offer(offer(n) for n in range(10))
    assert len(recorder.sent) == 4
    assert sender.seconds_to_pump() == pytest.approx(0.5)
    clock.now += 1.0
    assert len(sender.pump().sent) == 2
    clock.now += 60.0
    assert len(sender.pump().sent) == 4


def waits_and_is_answered(seconds: float, *, slots: int = 24) -> tuple[Sender, Recorder, HandClock]:
    """A sender with a tenant that has more than its cap of 6, after 20 answers that each took so long."""
    sender, recorder, clock = a_sender(replace(PLENTY, in_flight=6), slots=slots)
    sender.offer(offer(n) for n in range(60))
    for n in range(20):
        clock.now += seconds
        sender.over(recorder.sent[n][1].event_id, 0, "mail")
        sender.pump()
    return sender, recorder, clock


@pytest.mark.parametrize(("seconds", "slots", "lent"), [(0.1, 24, 2), (2.1, 24, 0), (0.1, 6, 0)])
def test_who_waits_and_is_answered_quickly_borrows_a_third_of_its_cap_of_idle_slots(
    seconds: float, slots: int, lent: int
) -> None:
    sender, _, _ = waits_and_is_answered(seconds, slots=slots)
    assert sender.counts()["in_flight"] == 6 + lent


def test_one_slow_answer_ends_the_lending() -> None:
    sender, recorder, clock = waits_and_is_answered(0.1)
    clock.now += 5.0
    for _, message in recorder.sent[20:23]:
        sender.over(message.event_id, 0, "mail")
        sender.pump()
    assert sender.counts()["in_flight"] == 6


def hung(sender: Sender, recorder: Recorder, clock: HandClock, deliveries: Iterable[int]) -> None:
    for n in deliveries:
        clock.now += 6.0
        sender.over(recorder.sent[n][1].event_id, 0, "mail", failed=True)
        sender.pump()


@pytest.mark.parametrize(("seconds", "failed"), [(6.0, False), (0.1, True)])
def test_who_hangs_as_often_as_its_cap_has_one_at_a_time_until_one_succeeds_or_fails_at_once(
    seconds: float, failed: bool
) -> None:
    sender, recorder, clock = a_sender(replace(PLENTY, in_flight=6), slots=24)
    sender.offer(offer(n) for n in range(60))
    hung(sender, recorder, clock, range(5))
    assert sender.counts()["in_flight"] == 6
    hung(sender, recorder, clock, range(5, 11))
    assert sender.counts()["in_flight"] == 1
    clock.now += seconds
    sender.over(recorder.sent[11][1].event_id, 0, "mail", failed=failed)
    sender.pump()
    assert sender.counts()["in_flight"] == 6


@pytest.mark.parametrize(("seconds", "failed"), [(29.0, False), (4.0, True)])
def test_receivers_that_are_slow_but_answer_or_refuse_at_once_keep_the_cap(seconds: float, failed: bool) -> None:
    sender, recorder, clock = a_sender(replace(PLENTY, in_flight=6), slots=24)
    sender.offer(offer(n) for n in range(60))
    for n in range(20):
        clock.now += seconds / 6
        sender.over(recorder.sent[n][1].event_id, 0, "mail", failed=failed)
        sender.pump()
    assert sender.counts()["in_flight"] == 6


def test_one_tenant_at_its_limit_keeps_no_other_waiting() -> None:
    sender, recorder, _ = a_sender()
    sender.offer(offer(n, TENANTS[0]) for n in range(100))
    taken = sender.offer(offer(n, TENANTS[1]) for n in range(3))
    assert len(taken.sent) == 3
    assert Counter(message.tenant_id for _, message in recorder.sent) == {TENANTS[0]: 3, TENANTS[1]: 3}


def test_a_unit_stays_taken_until_its_message_is_certainly_answered_or_dead() -> None:
    sender, _, clock = a_sender(DeliveryLimits(in_flight=1, per_second=1e6, burst=1))
    sender.offer([offer(1), offer(2)])
    clock.now += HOLD - 1
    assert sender.pump().sent == []
    clock.now += 1
    assert [one.message.event_id for one in sender.pump().sent] == [offer(2).message.event_id]


def test_what_is_on_its_way_counts_as_sent_and_goes_once_until_a_later_attempt() -> None:
    sender, recorder, _ = a_sender()
    assert sender.offer([offer(1), offer(1)]).sent == [offer(1), offer(1)]
    assert sender.offer([offer(1)]).sent == [offer(1)]
    assert len(recorder.sent) == 1
    assert sender.offer([offer(1, attempt=2)]).sent == [offer(1, attempt=2)]
    assert len(recorder.sent) == 2
    assert sender.counts() == {"in_flight": 1, "waiting": 0}


def test_with_the_queues_down_everything_is_left_to_the_sweeper_and_goes_when_they_are_back() -> None:
    sender, recorder, _ = a_sender()
    recorder.is_down = True
    taken = sender.offer([offer(1), offer(1), offer(2)])
    assert (taken.sent, len(taken.left)) == ([], 2)
    assert sender.counts() == {"in_flight": 0, "waiting": 0}
    recorder.is_down = False
    assert len(sender.offer([offer(1), offer(2)]).sent) == 2


def test_an_entry_that_failed_in_its_batch_is_left_and_its_unit_and_token_are_free() -> None:
    sender, recorder, _ = a_sender(DeliveryLimits(in_flight=2, per_second=0.001, burst=2))
    recorder.refuses = {offer(1).message.event_id}
    taken = sender.offer([offer(1), offer(2)])
    assert (taken.sent, taken.left) == ([offer(2)], [offer(1)])
    recorder.refuses = set()
    assert sender.offer([offer(1)]).sent == [offer(1)]


def test_where_each_queue_is_served_apart_no_queue_makes_another_one_busy() -> None:
    def with_queue_0_full(workers: int) -> set[int]:
        sender, recorder, _ = a_sender(PLENTY, workers=workers)
        depths = [Depth(0, 0, 0) for _ in range(recorder.queues)]
        depths[0] = Depth(waiting=1000, in_flight=0, delayed=0)
        sender.correct(depths)
        sender.offer(offer(n) for n in range(200))
        return {queue for queue, _ in recorder.sent}

    mine = set(offer(0).queues)
    beside_queue_0 = next(set(queues) for queues in (queues_of(n, of=2, queues=8) for n in (1, 2)) if 0 in queues)
    assert len(mine & beside_queue_0) > 1
    assert with_queue_0_full(workers=2) == mine - beside_queue_0
    assert with_queue_0_full(workers=0) == mine - {0}


def test_what_finds_no_place_in_the_list_is_left_to_the_sweeper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "MOST_WAITING_OF_ONE", 2)
    sender, _, _ = a_sender(DeliveryLimits(in_flight=1, per_second=1.0, burst=1), most_waiting=3)
    taken = sender.offer(offer(n, TENANTS[0]) for n in range(5))
    assert (len(taken.sent), len(taken.waiting), len(taken.left)) == (1, 2, 2)
    taken = sender.offer(offer(n, TENANTS[1]) for n in range(5))
    assert (len(taken.sent), len(taken.waiting), len(taken.left)) == (1, 1, 3)


def test_of_its_queues_the_one_with_least_of_our_own_is_chosen() -> None:
    sender, recorder, _ = a_sender(PLENTY)
    sender.offer(offer(n, queues=(0, 1)) for n in range(100))
    assert Counter(queue for queue, _ in recorder.sent) == {0: 50, 1: 50}


def test_a_queue_whose_worker_another_queue_keeps_busy_is_avoided() -> None:
    first, same_worker = queues_of(1, of=4, queues=8)
    elsewhere = queues_of(2, of=4, queues=8)[0]
    sender, recorder, _ = a_sender(PLENTY, workers=4)
    sender.offer(offer(n, queues=(first,)) for n in range(20))
    recorder.sent.clear()
    sender.offer(offer(n, TENANTS[1], (same_worker, elsewhere)) for n in range(20))
    assert {queue for queue, _ in recorder.sent} == {elsewhere}


def test_a_queue_that_others_have_filled_is_avoided_after_a_correction() -> None:
    sender, recorder, _ = a_sender(PLENTY)
    depths = [Depth(0, 0, 0)] * 8
    depths[0] = Depth(waiting=150, in_flight=50, delayed=0)
    sender.correct(depths)
    sender.offer(offer(n, queues=(0, 1)) for n in range(150))
    assert Counter(queue for queue, _ in recorder.sent) == {0: 25, 1: 125}


def test_what_this_sender_sent_itself_corrects_nothing() -> None:
    sender, recorder, _ = a_sender(PLENTY)
    sender.offer(offer(n, queues=(0,)) for n in range(40))
    sender.correct([Depth(40, 0, 0), *[Depth(0, 0, 0)] * 7])
    recorder.sent.clear()
    sender.offer(offer(n, queues=(0, 1)) for n in range(100, 180))
    assert Counter(queue for queue, _ in recorder.sent) == {0: 20, 1: 60}


@pytest.mark.parametrize("queues", [(), (8, 9, 40, 63)])
def test_a_tenant_without_queues_that_exist_has_four_by_its_id(queues: tuple[int, ...]) -> None:
    sender, recorder, _ = a_sender(PLENTY)
    sender.offer(offer(n, queues=queues) for n in range(200))
    used = frozenset(queue for queue, _ in recorder.sent)
    assert used == queue_sets.without_allocation(TENANTS[0], 8)


class AnySequence(RuleBasedStateMachine):
    """Whatever is offered, answered, forgotten and refused, in whatever order: the limits hold and nothing is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.sender, self.recorder, self.clock = a_sender(seed=3)
        self.queues = {tenant: sorted(queue_sets.nth(place, 8)) for place, tenant in enumerate(TENANTS)}
        self.number = 0
        self.open: dict[str, tuple[str, float]] = {}  # what is in flight, as an outsider sees it: tenant and until
        self.waiting: dict[str, list[str]] = defaultdict(list)
        self.begun: dict[str, list[float]] = defaultdict(list)
        self.seen = 0

    def note(self) -> None:
        for queue, message in self.recorder.sent[self.seen :]:
            assert queue in self.queues[message.tenant_id]
            assert message.event_id not in self.open
            self.open[message.event_id] = message.tenant_id, self.clock.now + HOLD
            self.begun[message.tenant_id].append(self.clock.now)
        self.seen = len(self.recorder.sent)

    @rule(tenant=st.sampled_from(TENANTS), count=st.integers(1, 6), down=st.booleans())
    def offer_some(self, tenant: str, count: int, down: bool) -> None:
        self.let_the_old_go()
        self.recorder.is_down = down
        offers = [offer(self.number + n, tenant, self.queues[tenant]) for n in range(count)]
        self.number += count
        taken = self.sender.offer(offers)
        assert sorted([*taken.sent, *taken.waiting, *taken.left], key=lambda o: offers.index(o)) == offers
        self.waiting[tenant] += [one.message.event_id for one in taken.waiting]
        assert not (down and taken.sent)
        self.note()

    @rule(down=st.booleans())
    def pump(self, down: bool) -> None:
        self.let_the_old_go()
        self.recorder.is_down = down
        taken = self.sender.pump()
        for one in [*taken.sent, *taken.left]:
            self.waiting[one.message.tenant_id].remove(one.message.event_id)
        order: dict[str, list[str]] = defaultdict(list)
        for one in taken.sent:
            order[one.message.tenant_id].append(one.message.event_id)
        for ids in order.values():
            assert ids == sorted(ids, key=lambda name: int(name.split("#")[1]))
        self.note()

    @rule(data=st.data())
    def answer_one(self, data: Any) -> None:
        if self.open:
            event_id = data.draw(st.sampled_from(sorted(self.open)))
            del self.open[event_id]
            self.sender.over(event_id, 0, "mail")

    @rule(seconds=st.sampled_from([0.1, 0.5, 3.0, HOLD / 2, HOLD]))
    def let_time_pass(self, seconds: float) -> None:
        self.clock.now += seconds

    def let_the_old_go(self) -> None:
        self.open = {name: unit for name, unit in self.open.items() if unit[1] > self.clock.now}

    @invariant()
    def no_tenant_is_over_its_cap_and_what_may_be_lent(self) -> None:
        self.let_the_old_go()
        in_flight = Counter(tenant for tenant, _ in self.open.values())
        assert all(number <= LIMITS.in_flight * 4 // 3 for number in in_flight.values())

    @invariant()
    def no_tenant_is_over_its_rate(self) -> None:
        for moments in self.begun.values():
            for place, since in enumerate(moments):
                seconds = self.clock.now - since
                assert len(moments) - place <= LIMITS.burst + seconds * LIMITS.per_second + 1e-6

    @invariant()
    def it_counts_what_it_holds(self) -> None:
        assert self.sender.counts()["waiting"] == sum(map(len, self.waiting.values()))


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = profile(max_examples=30, stateful_step_count=30, deadline=None)
