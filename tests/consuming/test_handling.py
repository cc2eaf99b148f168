"""What becomes of one message: delivered once, tried again, a dead letter, or thrown away; as its own tenant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from delivery.outbox import destinations, outbox_rows, stored
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from delivery.queues import consumer, limits, message_handling
from delivery.queues.message_handling import MOST_POSTPONEMENTS, Handled, MessageHandler
from delivery.queues.queue_transport import LONGEST_DELAY, Message
from portal import clock
from portal.dynamo.meter import Meter
from portal.errors import Unavailable
from tests.support import deliveries, fakes
from tests.support.world import World

ENDPOINT = "test_receiver"


class Receiver:
    """Answers as a test wants, and keeps what it was given."""

    def __init__(self) -> None:
        self.outcome: Outcome | BaseException = Outcome("answered")
        self.work: list[Work] = []

    def __call__(self, work: Work) -> Outcome:
        self.work.append(work)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    with deliveries.destination(ENDPOINT, receiver):
        yield receiver


@pytest.fixture
def acme(world: World) -> str:
    return world.tenants["acme"].tenant_id


@pytest.fixture
def globex(world: World) -> str:
    return world.tenants["globex"].tenant_id


def handle(told: Message, *, receives: int = 1) -> Handled:
    return MessageHandler().handle(deliveries.received(told, receives=receives))


def reasons(tenant_id: str = "") -> list[str]:
    return [letter.reason for letter in deliveries.dead(tenant_id)]


def test_what_is_answered_leaves_the_outbox(acme: str, receiver: Receiver) -> None:
    row = deliveries.row(acme, ENDPOINT)
    assert handle(deliveries.message(row, ENDPOINT)) == Handled("answered")
    (work,) = receiver.work
    assert (work.tenant_id, work.destination, work.index, work.attempt) == (acme, ENDPOINT, 0, 1)
    assert (deliveries.stored(row).open, deliveries.stored(row).pending) == (None, None)


def test_the_same_message_twice_is_delivered_once(acme: str, receiver: Receiver) -> None:
    told = deliveries.message(deliveries.row(acme, ENDPOINT), ENDPOINT)
    assert [handle(told).did, handle(told, receives=2).did] == ["answered", "closed"]
    assert len(receiver.work) == 1


def test_each_event_and_destination_of_a_row_is_delivered_by_itself(acme: str, receiver: Receiver) -> None:
    row = deliveries.row(acme, ENDPOINT, f"{ENDPOINT}_2", events=2)
    handle(deliveries.message(row, f"{ENDPOINT}_2", index=1))
    assert deliveries.stored(row).open == {f"0/{ENDPOINT}", f"0/{ENDPOINT}_2", f"1/{ENDPOINT}"}
    assert deliveries.stored(row).pending


def test_what_failed_is_due_again_after_a_pause_and_knows_its_attempt(acme: str, receiver: Receiver) -> None:
    row = deliveries.row(acme, ENDPOINT)
    receiver.outcome = Outcome("failed", note="It answered 500.")
    before = clock.now()
    assert handle(deliveries.message(row, ENDPOINT)) == Handled("failed")
    due = clock.parse(str(deliveries.stored(row).due_at)) - before
    assert timedelta(seconds=destinations.PAUSES[0] * (1 - destinations.JITTER)) <= due
    handle(deliveries.message(row, ENDPOINT))
    assert [work.attempt for work in receiver.work] == [1, 2]


def test_a_receiver_may_say_when_to_come_again(acme: str, receiver: Receiver) -> None:
    row = deliveries.row(acme, ENDPOINT)
    receiver.outcome = Outcome("failed", retry_after=7200.0)
    before = clock.now()
    handle(deliveries.message(row, ENDPOINT))
    assert clock.parse(str(deliveries.stored(row).due_at)) - before >= timedelta(hours=2)


def test_after_the_last_attempt_it_is_a_dead_letter(acme: str, receiver: Receiver) -> None:
    row = deliveries.row(acme, ENDPOINT)
    receiver.outcome = Outcome("failed", note="It answered 500.")
    did = [handle(deliveries.message(row, ENDPOINT)).did for _ in range(destinations.ATTEMPTS)]
    assert did == ["failed"] * (destinations.ATTEMPTS - 1) + ["dead"]
    assert reasons(acme) == ["It answered 500."]
    assert deliveries.stored(row).pending is None


def test_what_a_receiver_does_not_want_any_more_is_a_dead_letter_at_once(acme: str, receiver: Receiver) -> None:
    row = deliveries.row(acme, ENDPOINT)
    receiver.outcome = Outcome("dead", note="It answered 410.")
    assert handle(deliveries.message(row, ENDPOINT)) == Handled("dead")
    (letter,) = deliveries.dead()
    assert (letter.tenant_id, letter.destination, letter.event_type) == (acme, ENDPOINT, "test.happened")
    assert (letter.subject, letter.reason, letter.expires_at) == ("ticket/7", "It answered 410.", row.expires_at)


def test_what_others_wait_for_stays_when_one_destination_is_dead(acme: str, receiver: Receiver) -> None:
    row = deliveries.row(acme, ENDPOINT, f"{ENDPOINT}_2")
    receiver.outcome = Outcome("dead")
    handle(deliveries.message(row, ENDPOINT))
    assert deliveries.stored(row).open == {f"0/{ENDPOINT}_2"}
    assert deliveries.stored(row).pending


class Death(BaseException):
    """Ends the worker, as nothing that a handler could catch."""


def test_what_its_worker_died_of_three_times_is_not_begun_again(acme: str, receiver: Receiver) -> None:
    told = deliveries.message(deliveries.row(acme, ENDPOINT), ENDPOINT)
    receiver.outcome = Death()
    for receives in (1, 2, 3):
        with pytest.raises(Death):
            handle(told, receives=receives)
    assert handle(told, receives=4) == Handled("dead")
    assert len(receiver.work) == 3
    assert reasons(acme) == ["It was being worked on 3 times when that ended badly."]


def test_what_was_only_beside_a_message_that_kills_is_delivered(acme: str, receiver: Receiver) -> None:
    told = deliveries.message(deliveries.row(acme, ENDPOINT), ENDPOINT, strikes=2)
    assert handle(told, receives=message_handling.MOST_STRIKES - 2) == Handled("answered")


def test_what_is_received_without_end_is_given_up(acme: str, receiver: Receiver) -> None:
    told = deliveries.message(deliveries.row(acme, ENDPOINT), ENDPOINT)
    assert handle(told, receives=message_handling.MOST_STRIKES + 1) == Handled("dead")


def die_twice(told: Message, receiver: Receiver) -> None:
    """Let two workers end while they deliver it."""
    receiver.outcome = Death()
    for receives in (1, 2):
        with pytest.raises(Death):
            handle(told, receives=receives)


def test_an_answer_ends_the_count(acme: str, receiver: Receiver) -> None:
    row = deliveries.row(acme, ENDPOINT)
    told = deliveries.message(row, ENDPOINT)
    die_twice(told, receiver)
    receiver.outcome = Outcome("failed")
    assert handle(told, receives=3) == Handled("failed")
    assert outbox_rows.tried(deliveries.stored(row), f"0/{ENDPOINT}").risked == 0


def test_a_beginning_that_met_an_absent_database_is_taken_back_and_no_other(acme: str, receiver: Receiver) -> None:
    row = deliveries.row(acme, ENDPOINT)
    told = deliveries.message(row, ENDPOINT)
    die_twice(told, receiver)
    receiver.outcome = Unavailable("away")
    assert handle(told, receives=3).did == "postponed"
    assert outbox_rows.tried(deliveries.stored(row), f"0/{ENDPOINT}").risked == 1


def test_an_error_that_nobody_expected_is_a_strike(acme: str, receiver: Receiver) -> None:
    told = deliveries.message(deliveries.row(acme, ENDPOINT), ENDPOINT)
    receiver.outcome = ZeroDivisionError("a bug")
    first = handle(told)
    assert (first.did, first.again) == ("struck", replace(told, strikes=1))
    assert first.again is not None
    second = handle(first.again)
    assert second.again is not None
    third = handle(second.again)
    assert third.again is not None
    assert handle(third.again) == Handled("dead")


def test_a_database_that_is_away_is_no_strike(acme: str, receiver: Receiver) -> None:
    told = deliveries.message(deliveries.row(acme, ENDPOINT), ENDPOINT)
    with fakes.answering("tenant", "GetItem", *[fakes.refusal("InternalServerError", status=500)] * 10):
        put_off = handle(told, receives=2)
    assert (put_off.did, put_off.again) == ("postponed", replace(told, postponed=1, strikes=1))
    assert put_off.delay > 0
    receiver.outcome = Unavailable("away")
    for _ in range(5):
        assert handle(told, receives=2).did == "postponed"
    assert handle(told).again == replace(told, postponed=1)


def test_a_destination_that_a_newer_version_knows_is_tried_again_until_its_attempts_are_used_up(
    acme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = deliveries.row(acme, "pigeon")
    assert handle(deliveries.message(row, "pigeon")) == Handled("failed")
    assert deliveries.stored(row).open == {"0/pigeon"}
    monkeypatch.setattr(destinations, "retry_pause", lambda attempt: None)
    assert handle(deliveries.message(row, "pigeon")) == Handled("dead")
    assert reasons(acme) == ["Nobody delivers to this destination."]


def test_work_of_a_kind_that_a_newer_version_knows_waits_for_its_workers(acme: str) -> None:
    told = Message(acme, "a letter", clock.stamp(), 0, "kind of tomorrow")
    assert handle(told) == Handled("postponed", replace(told, postponed=1), LONGEST_DELAY)
    assert handle(replace(told, postponed=MOST_POSTPONEMENTS)) == Handled("refused")


# --- messages that nobody of ours has sent ---


def test_one_tenants_id_with_anothers_row_finds_nothing(
    acme: str, globex: str, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    row = deliveries.row(globex, ENDPOINT)
    told = deliveries.message(row, ENDPOINT)
    _, row_id = stored.row_parts(row.event_id)
    assert handle(replace(told, tenant_id=acme)) == Handled("refused")
    assert "thrown away" in caplog.text
    assert handle(replace(told, tenant_id=acme, event_id=stored.outbox_row(acme, row_id))) == Handled("closed")
    assert receiver.work == []
    assert deliveries.stored(row).open == {f"0/{ENDPOINT}"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"event_id": "no key"},
        {"event_id": "../x"},
        {"timestamp": "yesterday"},
        {"timestamp": "2026-11-22T03:00:00.000000Z"},
        {"index": 7},
        {"destination": "test_other"},
        {"tenant_id": "f" * 32},
    ],
)
def test_ids_that_lead_nowhere_are_no_crash_and_leave_the_row(
    acme: str, receiver: Receiver, wrong: dict[str, str]
) -> None:
    row = deliveries.row(acme, ENDPOINT)
    handled = handle(replace(deliveries.message(row, ENDPOINT), **wrong))
    assert handled.did in ("refused", "closed")
    assert handled.again is None
    assert receiver.work == []
    assert deliveries.stored(row).open == {f"0/{ENDPOINT}"}


def put_off(told: Message, *, times: int) -> Handled:
    """Put a message off that was put off so many times before."""
    told = replace(told, postponed=times)
    return message_handling.postponed(deliveries.received(told), seconds=0.2)


def test_a_message_is_put_off_so_many_times_and_then_its_row_is_due_at_once(acme: str) -> None:
    row = deliveries.row(acme, ENDPOINT, f"{ENDPOINT}_2")
    outbox_rows.sent(row, row.open or ())
    told = deliveries.message(row, ENDPOINT)
    assert put_off(told, times=message_handling.MOST_POSTPONEMENTS - 1).delay == 1
    assert outbox_rows.due_members(deliveries.stored(row)) == set()
    assert put_off(told, times=message_handling.MOST_POSTPONEMENTS) == Handled("left")
    left = deliveries.stored(row)
    assert outbox_rows.due_members(left) == {f"0/{ENDPOINT}"}
    assert str(left.due_at) <= clock.stamp()


def test_a_message_that_was_put_off_too_often_counts_as_no_attempt(acme: str, receiver: Receiver) -> None:
    row = deliveries.row(acme, ENDPOINT)
    told = deliveries.message(row, ENDPOINT)
    receiver.outcome = Outcome("failed")
    for _ in range(2):
        put_off(told, times=message_handling.MOST_POSTPONEMENTS)
        handle(told)
    assert [work.attempt for work in receiver.work] == [1, 2]


def test_a_message_that_was_put_off_too_often_opens_nothing_that_is_answered(acme: str, receiver: Receiver) -> None:
    row = deliveries.row(acme, ENDPOINT)
    told = deliveries.message(row, ENDPOINT)
    handle(told)
    assert put_off(told, times=message_handling.MOST_POSTPONEMENTS) == Handled("left")
    assert (deliveries.stored(row).open, deliveries.stored(row).pending) == (None, None)


def test_a_message_that_cannot_be_given_back_is_left_to_its_row(acme: str, caplog: pytest.LogCaptureFixture) -> None:
    row = deliveries.row(acme, ENDPOINT)
    told = deliveries.message(row, ENDPOINT)
    with fakes.answering("tenant", "GetItem", *[fakes.refusal("InternalServerError", status=500)] * 10):
        assert put_off(told, times=message_handling.MOST_POSTPONEMENTS) == Handled("left")
    assert put_off(replace(told, event_id="no key"), times=message_handling.MOST_POSTPONEMENTS) == Handled("left")
    assert caplog.text.count("is left to its row") == 2
    assert deliveries.stored(row).open == {f"0/{ENDPOINT}"}


def test_all_that_a_message_may_take_is_over_before_its_row_comes_due_again() -> None:
    longest_pause = max(limits.OVER_CAP_SECONDS, limits.SUSPECT_SECONDS, message_handling.AWAY_SECONDS)
    put_off = message_handling.MOST_POSTPONEMENTS * longest_pause
    received = message_handling.MOST_STRIKES * (limits.HANGS_SECONDS + consumer.VISIBILITY_SECONDS)
    assert put_off + received < outbox_rows.CERTAINLY_ANSWERED.total_seconds()


def test_handling_one_message_costs_one_read_and_one_write(acme: str, receiver: Receiver, bill: Meter) -> None:
    row = deliveries.row(acme, ENDPOINT)
    handler = MessageHandler()
    handler._holds.verdict(acme, row.timestamp)  # read once every few seconds for all
    before = bill.trips
    told = deliveries.message(row, ENDPOINT)
    handler.handle(deliveries.received(told))
    assert bill.trips - before == 2
