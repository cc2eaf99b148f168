"""Tickets of a desk with targets: their clocks follow each step, and what is missed is told once, with a receipt."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from delivery.timers import due
from delivery.timers.due_worker import DueWorker
from portal import clock
from portal.dynamo import fencing, meter
from portal.dynamo.transaction import TRANSACTION_LIMIT
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import Role, TenantContext
from tests.support import outbox
from tests.support.targets import HOUR, set_targets
from tests.support.world import World
from tickets.desk import bulk, changing, commenting, creating, many, timelines, undoing
from tickets.desk.changing import TicketState, Wishes
from tickets.merging import ticket_merging
from tickets.replies import withdrawing
from tickets.requesters import requesters
from tickets.sla import tracking
from tickets.sla.policy import TargetRule
from tickets.spam import spam_marking
from tickets.ticket.due_marks import FIRST, NEXT, SOLUTION, DueMarks
from tickets.ticket.fields import Priority, Status

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
RULES = (TargetRule(priority="urgent", first=HOUR // 2), TargetRule(first=HOUR, next=2 * HOUR, solution=8 * HOUR))


class Time:
    def __init__(self) -> None:
        self.at(0)

    def at(self, hours: float) -> datetime:
        """Let it be so many hours after noon."""
        self.hours, self.now = hours, NOON + timedelta(hours=hours)
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(clock, "now", lambda: made.now)
    return made


@pytest.fixture
def desk(world: World, time: Time) -> TenantContext:
    """Bob's desk, with targets."""
    set_targets(world.context("alice", "acme"), *RULES)
    return world.context("bob", "acme")


@pytest.fixture
def ada(desk: TenantContext) -> Any:
    return requesters.ensure(desk, "ada@example.org", name="Ada")


def opened(desk: TenantContext, ada: Any) -> int:
    return creating.create(desk, title="The printer", requester=ada)


def marks(desk: TenantContext, number: int) -> DueMarks:
    return DueMarks.read(changing.read(desk, number).due)


def due_after(desk: TenantContext, number: int) -> tuple[str, float]:
    """Return what is due next, and how many hours after noon."""
    found = marks(desk, number)
    return found.target, (found.at - NOON.timestamp()) / 3600


def receipts(desk: TenantContext, number: int) -> list[dict[str, Any]]:
    entries = timelines.ticket(desk, number).activity
    return [json.loads(entry.receipt) for entry in entries if entry.receipt]


def asked(desk: TenantContext, number: int, ada: Any) -> None:
    """Ada comments."""
    guest = replace(desk, user_id=ada.id, user_name="Ada", role=Role.VIEWER)
    commenting.comment(guest, number, body="And now?", then=None)


def work() -> None:
    """Let the worker do what is due: a warning may be followed at once by what was missed meanwhile."""
    while DueWorker().turn():
        pass


def test_a_new_ticket_waits_for_its_first_answer(desk: TenantContext, ada: Any) -> None:
    assert due_after(desk, opened(desk, ada)) == (FIRST, 1)


def test_an_answer_leaves_the_solution(desk: TenantContext, ada: Any, time: Time) -> None:
    number = opened(desk, ada)
    time.at(0.5)
    commenting.comment(desk, number, body="We look at it.")
    assert due_after(desk, number) == (SOLUTION, 8)
    commenting.comment(desk, number, body="Nobody hears of this.", internal=True)
    assert due_after(desk, number) == (SOLUTION, 8)


def test_the_clocks_stand_still_while_a_ticket_is_pending(desk: TenantContext, ada: Any, time: Time) -> None:
    number = opened(desk, ada)
    time.at(0.5)
    commenting.comment(desk, number, body="Which printer?", then=Status.PENDING)
    assert (marks(desk, number).target, marks(desk, number).is_paused) == ("", True)
    time.at(20)
    changing.change(desk, number, Wishes(status=Status.OPEN))
    assert due_after(desk, number) == (SOLUTION, 27.5)


def test_a_higher_priority_counts_the_time_that_is_gone(desk: TenantContext, ada: Any, time: Time) -> None:
    number = opened(desk, ada)
    time.at(0.25)
    made = changing.change(desk, number, Wishes(priority=Priority.URGENT))
    assert due_after(desk, number) == (FIRST, 0.5)
    assert made.summary.due == changing.read(desk, number).due


def test_what_is_missed_is_told_once_with_a_receipt(desk: TenantContext, ada: Any, time: Time) -> None:
    number = opened(desk, ada)
    time.at(0.8)
    work()
    assert (marks(desk, number).is_warned, receipts(desk, number)) == (True, [])
    time.at(3)
    work()
    work()
    tracking.tell(desk, f"ticket/{number}", "", NOON + timedelta(hours=1))
    (receipt,) = receipts(desk, number)
    begin, end = int(NOON.timestamp()), int(NOON.timestamp()) + HOUR
    assert receipt == {
        "target": FIRST,
        "due": end,
        "allowed": HOUR,
        "policy": begin,
        "zone": "UTC",
        "ticket": ["normal", "", ""],
        "counted": HOUR,
        "pieces": [{"from": begin, "until": end, "policy": begin, "open": [[begin, end]]}],
    }
    assert (marks(desk, number).is_overdue, marks(desk, number).missed) == (True, end)


def test_a_receipt_names_pauses_and_the_versions_that_held(
    world: World, desk: TenantContext, ada: Any, time: Time
) -> None:
    number = opened(desk, ada)
    time.at(0.5)
    changing.change(desk, number, Wishes(status=Status.PENDING))
    set_targets(world.context("alice", "acme"), TargetRule(first=2 * HOUR))
    desk = world.context("bob", "acme")
    time.at(10)
    changing.change(desk, number, Wishes(status=Status.OPEN))
    time.at(12)
    work()
    (receipt,) = receipts(desk, number)
    hours = [(piece["from"] / 3600, piece["until"] / 3600, piece["policy"]) for piece in receipt["pieces"]]
    noon = NOON.timestamp() / 3600
    assert [(a - noon, b - noon) for a, b, _ in hours] == [(0, 0.5), (10, 11.5)]
    assert [version / 3600 - noon for _, _, version in hours] == [0, 0.5]


def test_a_late_answer_before_the_worker_came_is_missed_all_the_same(desk: TenantContext, ada: Any, time: Time) -> None:
    number = opened(desk, ada)
    time.at(1.5)
    commenting.comment(desk, number, body="Sorry.")
    assert receipts(desk, number) == []
    work()
    assert [receipt["target"] for receipt in receipts(desk, number)] == [FIRST]
    assert due_after(desk, number) == (SOLUTION, 8)


def test_a_worker_whose_clock_is_a_day_fast_leaves_nothing_false(desk: TenantContext, ada: Any, time: Time) -> None:
    number = opened(desk, ada)
    time.at(24)
    work()
    assert len(receipts(desk, number)) == 2
    time.at(0.5)
    commenting.comment(desk, number, body="In time.")
    assert marks(desk, number).missed == 0
    work()
    assert receipts(desk, number) == []
    assert due_after(desk, number) == (SOLUTION, 8)
    time.at(8)
    work()
    assert [receipt["target"] for receipt in receipts(desk, number)] == [SOLUTION]


def test_events_tell_of_a_warning_and_of_a_missed_target_once(
    world: World, desk: TenantContext, ada: Any, time: Time
) -> None:
    number = opened(desk, ada)
    time.at(1)
    for _ in range(3):
        work()
    told = [event["type"] for event in outbox.told() if event["data"].get("due_at")]
    assert told == ["ticket.due_soon", "ticket.breached"]
    assert [event["data"]["number"] for event in outbox.told() if event["data"].get("due_at")] == [number, number]


def warnings() -> list[float]:
    """Return of which due moments people were warned, in hours after noon."""
    told = [event["data"]["due_at"] for event in outbox.told() if event["type"] == "ticket.due_soon"]
    return [(clock.parse(at) - NOON).total_seconds() / 3600 for at in told]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([Wishes(priority=Priority.LOW), Wishes(title="Another")], [1]),  # none moves the due moment
        ([Wishes(priority=Priority.HIGH)], [1, 0.9]),
        ([Wishes(status=Status.PENDING), Wishes(status=Status.OPEN)], [1, 1.05]),  # after three minutes
    ],
    ids=["unmoved", "earlier", "later"],
)
def test_people_are_warned_again_only_of_another_due_moment(
    world: World, desk: TenantContext, ada: Any, time: Time, changes: list[Wishes], told: list[float]
) -> None:
    set_targets(world.context("alice", "acme"), TargetRule(priority="high", first=HOUR * 9 // 10), *RULES)
    desk = world.context("bob", "acme")
    number = opened(desk, ada)
    time.at(0.75)
    work()
    for passed, wishes in enumerate(changes):
        time.at(0.8 + passed * 0.05)
        changing.change(desk, number, wishes)
        work()
        assert marks(desk, number).is_warned == (wishes.values.get("status") != Status.PENDING)
    work()
    assert warnings() == told


def test_a_change_before_the_worker_came_leaves_its_warning(desk: TenantContext, ada: Any, time: Time) -> None:
    number = opened(desk, ada)
    time.at(0.8)
    changing.change(desk, number, Wishes(priority=Priority.LOW))
    work()
    assert warnings() == [1]


def test_what_was_missed_in_a_long_outage_is_told_in_parts(
    desk: TenantContext, ada: Any, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "MOST_RECEIPTS", 2)
    with monkeypatch.context() as outage:
        outage.setattr(due, "put", lambda *_: None)
        number = opened(desk, ada)
        for day in range(1, 6):
            time.at(24 * day)
            commenting.comment(desk, number, body="Sorry.")
            asked(desk, number, ada)
    tracking.tell(desk, f"ticket/{number}", "", time.now)
    assert len(receipts(desk, number)) == 2
    work()
    assert [receipt["target"] for receipt in receipts(desk, number)] == [FIRST, SOLUTION, NEXT, NEXT, NEXT, NEXT]
    assert [event["type"] for event in outbox.told()].count("ticket.breached") == 6
    assert tracking.check(desk, number).faults == []


def test_receipts_of_one_call_fit_into_a_transaction() -> None:
    others = 3  # the ticket, the row of the due index and that of the outbox
    assert 2 * tracking.MOST_RECEIPTS + others + fencing.MEMBERS <= TRANSACTION_LIMIT


def test_a_step_with_clocks_costs_a_row_of_the_due_index(world: World, desk: TenantContext, time: Time) -> None:
    """It takes no read, and nothing more where no other moment comes next."""
    steps: list[Callable[[TenantContext, int], object]] = [
        lambda tenant, number: commenting.comment(tenant, number, body="Yes"),
        lambda tenant, number: changing.change(tenant, number, Wishes(status=Status.PENDING)),
        lambda tenant, number: changing.change(tenant, number, Wishes(status=Status.OPEN)),
        lambda tenant, number: changing.change(tenant, number, Wishes(title="Another")),
    ]
    bills: dict[str, list[tuple[int, float, float]]] = {}
    for tenant in (world.context("charlie", "globex"), desk):
        number = creating.create(world.context("alice", tenant.slug), title="Printer")
        for step in steps:
            time.at(time.hours + 0.1)
            with meter.measure() as used:
                step(tenant, number)
            bills.setdefault(tenant.slug, []).append((used.trips, used.read_units, used.write_units))
    more = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in zip(*bills.values(), strict=True)]
    assert more == [(0, 0, 3), (0, 0, 0), (0, 0, 3), (0, 0, 0)]


def test_what_is_told_costs_a_query_and_a_transaction(desk: TenantContext, ada: Any, time: Time) -> None:
    number = opened(desk, ada)
    with meter.measure() as used:
        tracking.tell(desk, f"ticket/{number}", "", time.at(1))
    assert [call.operation for call in used.calls] == ["Query", "TransactWriteItems"]
    assert len(receipts(desk, number)) == 1


CHANGES: list[Callable[[TenantContext, int], object]] = [
    lambda desk, number: bulk.change_status(desk, [TicketState.parse(state(desk, number))], to=Status.RESOLVED),
    lambda desk, number: many.edit(desk, {number: None}, many.TicketEdit.of({"status": Status.PENDING})),
    lambda desk, number: spam_marking.mark(desk, number, by=Actor(desk.user_id), block=False),
    lambda desk, number: ticket_merging.merge(desk, number, into=another(desk, number)),
]


def another(desk: TenantContext, number: int) -> int:
    return creating.create(desk, title="Another", requester=changing.read(desk, number).requester)


def state(desk: TenantContext, number: int) -> str:
    return str(TicketState.of(changing.read(desk, number)))


@pytest.mark.parametrize("change", CHANGES, ids=["bulk status", "bulk edit", "spam", "merge"])
def test_each_way_of_changing_a_ticket_stops_its_clocks(
    desk: TenantContext, ada: Any, time: Time, change: Callable[[TenantContext, int], object]
) -> None:
    number = opened(desk, ada)
    time.at(0.5)
    change(desk, number)
    time.at(5)
    work()
    assert (marks(desk, number).target, receipts(desk, number)) == ("", [])
    found = tracking.replayed(desk, number)
    assert found is not None
    assert found.passed[-1] == found.stored


def test_a_desk_without_targets_stores_and_waits_for_nothing(world: World) -> None:
    desk = world.context("charlie", "globex")
    number = creating.create(desk, title="No hurry")
    commenting.comment(desk, number, body="Later.", then=Status.PENDING)
    found = changing.read(desk, number)
    assert (found.sla, found.due) == (None, None)
    assert all(entry.sla is None for entry in timelines.ticket(desk, number).activity)


def test_a_question_after_an_answer_waits_for_the_next_one(desk: TenantContext, ada: Any, time: Time) -> None:
    number = opened(desk, ada)
    asked(desk, number, ada)
    assert due_after(desk, number) == (FIRST, 1)
    time.at(0.5)
    commenting.comment(desk, number, body="We look at it.")
    time.at(1)
    asked(desk, number, ada)
    assert due_after(desk, number) == (NEXT, 3)
    time.at(2)
    asked(desk, number, ada)
    assert due_after(desk, number) == (NEXT, 3)
    commenting.comment(desk, number, body="It is repaired.")
    assert due_after(desk, number) == (SOLUTION, 8)


def test_a_comment_that_is_taken_back_was_no_answer(world: World, desk: TenantContext, ada: Any, time: Time) -> None:
    number = opened(desk, ada)
    found: list[Any] = []
    commenting.comment(desk, number, body="Oh.", hold=10, tell=found.append)
    assert due_after(desk, number) == (SOLUTION, 8)
    undoing.take_back(desk, withdrawing.receipt(desk, found[0]))
    assert due_after(desk, number) == (FIRST, 1)
    time.at(1)
    work()
    assert [receipt["target"] for receipt in receipts(desk, number)] == [FIRST]


def test_what_a_history_says_is_what_is_stored(desk: TenantContext, ada: Any, time: Time) -> None:
    number = opened(desk, ada)
    steps: list[Callable[[], object]] = [
        lambda: commenting.comment(desk, number, body="Yes?", then=Status.PENDING),
        lambda: asked(desk, number, ada),
        lambda: changing.change(desk, number, Wishes(status=Status.OPEN, priority=Priority.URGENT)),
        lambda: changing.change(desk, number, Wishes(title="Another")),
        lambda: spam_marking.mark(desk, number, by=Actor(desk.user_id), block=False),
        lambda: spam_marking.unmark(desk, number, by=Actor(desk.user_id)),
        lambda: changing.change(desk, number, Wishes(requester=requesters.ensure(desk, "bea@example.org"))),
        lambda: commenting.comment(desk, number, body="Done.", then=Status.RESOLVED),
        lambda: changing.change(desk, number, Wishes(status=Status.OPEN, priority=Priority.LOW)),
    ]
    for passed, step in enumerate(steps):
        time.at(passed * 0.7)
        step()
        work()
        found = tracking.replayed(desk, number)
        assert found is not None
        assert found.passed[-1].known(found.stored.as_of) == found.stored
