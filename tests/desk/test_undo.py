"""Taking back what was done: single changes and bulk changes, with the numbers that they had changed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.errors import Invalid
from tenants.tenancy.context import TenantContext
from tests.support.world import Browser, World
from tickets.counting.contributions import contribution
from tickets.desk import bulk, changing, creating, many, undoing
from tickets.desk.changing import EntryOfChange, TicketState, Wishes
from tickets.desk.many import TicketEdit
from tickets.ticket.fields import FIELDS, Priority, Status
from tickets.ticket.stored import SummaryItem


def numbers(tenant: TenantContext, number: int) -> Any:
    """What a ticket adds to the aggregates; the counts of days are among it."""
    return contribution(plain(changing.read(tenant, number)))


def plain(summary: SummaryItem) -> dict[str, Any]:
    return {name: value for name, value in summary.to_simple_dict(force=True).items() if value is not None}


def undone(tenant: TenantContext, *entries: EntryOfChange | None) -> undoing.Undone:
    return undoing.take_back(tenant, many.receipt(tenant, entries))


def receipt_in(page: str) -> str:
    found = re.search(r'name="receipt" value="([^"]+)"', page)
    assert found, "no receipt"
    return found[1]


def text(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined]


# --- single changes ---

SINGLE: dict[str, Callable[[Browser], object]] = {
    "status": lambda b: b.send("/tickets/1/change/", {"version": 1, "status": "closed"}, follow=True),
    "priority": lambda b: b.send("/tickets/1/change/", {"version": 1, "priority": "urgent"}, follow=True),
    "assignee": lambda b: b.send("/tickets/1/assign/", {"version": 1, "resolver": "me"}, follow=True),
    "form": lambda b: b.send(
        "/tickets/1/edit/",
        {
            "version": 1,
            "request_id": "0" * 32,
            "title": "Another",
            "description": "New.",
            "priority": "low",
            "tags": "new",
        },
        follow=True,
    ),
    "requester": lambda b: b.send(
        "/tickets/1/requester/", {"version": 1, "requester": "Ada <ada@example.com>"}, follow=True
    ),
}


@pytest.mark.parametrize("what", SINGLE)
def test_each_change_of_a_ticket_can_be_undone_from_its_message(world: World, alice: TenantContext, what: str) -> None:
    creating.create(alice, title="Printer", description="It is *broken*.", tags=["printer", "third-floor"])
    before, counted = changing.read(alice, 1), numbers(alice, 1)
    browser = world.browser("bob")
    changed = text(SINGLE[what](browser))
    assert changing.read(alice, 1).version == 2
    back = text(
        browser.send("/tickets/bulk/undo/", {"receipt": receipt_in(changed), "back": "/tickets/1/"}, follow=True)
    )
    assert "#1 is as it was before." in back, re.findall(r"data-text>([^<]+)", back)
    after = changing.read(alice, 1)
    kept = (*(field.name for field in FIELDS if field.is_listed), "resolver_name", "requester", "requester_name")
    assert {name: getattr(after, name) for name in kept} == {name: getattr(before, name) for name in kept}
    assert changing.read_description(alice, 1) == "It is *broken*."
    assert numbers(alice, 1) == counted


def test_what_was_changed_again_is_refused_by_a_sentence_and_stays(world: World, bob: TenantContext) -> None:
    world.tickets("acme", 1)
    browser = world.browser("bob")
    receipt = receipt_in(text(SINGLE["status"](browser)))
    for to in (Status.OPEN, Status.PENDING):
        changing.change(world.context("alice", "acme"), 1, Wishes(status=to))
    page = text(browser.send("/tickets/bulk/undo/", {"receipt": receipt}, follow=True))
    assert "#1 Ticket 1 has been changed again since and stays as it is." in page
    assert changing.read(bob, 1).status == "pending"


def test_what_others_made_of_other_fields_stays_when_a_change_is_undone(world: World, bob: TenantContext) -> None:
    world.tickets("acme", 1)
    browser = world.browser("bob")
    receipt = receipt_in(text(SINGLE["status"](browser)))
    changing.change(world.context("alice", "acme"), 1, Wishes(priority=Priority.HIGH))
    assert "#1 is as it was before." in text(browser.send("/tickets/bulk/undo/", {"receipt": receipt}, follow=True))
    assert (changing.read(bob, 1).status, changing.read(bob, 1).priority) == ("open", "high")


def test_a_receipt_is_good_once_and_only_for_whom_it_was_made(world: World, alice: TenantContext) -> None:
    creating.create(alice, title="Printer")
    receipt = many.receipt(alice, [changing.change(alice, 1, Wishes(status=Status.CLOSED)).changed])
    for tenant in (world.context("bob", "acme"), world.context("alice", "globex")):
        with pytest.raises(Invalid):
            undoing.take_back(tenant, receipt)
    assert undoing.take_back(alice, receipt).said
    assert undoing.take_back(alice, receipt).left == ("#1 Printer has been changed again since and stays as it is.",)


def test_a_receipt_is_too_old_after_a_quarter_of_an_hour(alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    creating.create(alice, title="Printer")
    receipt = many.receipt(alice, [changing.change(alice, 1, Wishes(status=Status.CLOSED)).changed])
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + undoing.TAKEN_SECONDS + 1)
    with pytest.raises(Invalid, match="too much time"):
        undoing.take_back(alice, receipt)


def test_an_assignee_who_left_the_desk_does_not_get_the_ticket_back(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    creating.create(alice, title="Printer")
    changing.assign(alice, 1, to=world.context("bob", "acme").user_id, version=1)
    taken = changing.change(alice, 1, Wishes(resolver="")).changed
    monkeypatch.setattr("tickets.desk.changing.members.member", lambda repository, who: None)
    assert "its former assignee can have no tickets any more" in undone(alice, taken).left[0]
    assert not changing.read(alice, 1).resolver


# --- reopening, which forgets when the ticket had been resolved ---


def test_a_reopening_is_undone_with_the_moments_it_had_replaced(alice: TenantContext) -> None:
    creating.create(alice, title="Printer")
    for status in (Status.RESOLVED, Status.OPEN, Status.CLOSED):
        changing.change(alice, 1, Wishes(status=status))
    before, counted = plain(changing.read(alice, 1)), numbers(alice, 1)
    for reopen in (
        lambda: many.receipt(alice, [changing.change(alice, 1, Wishes(status=Status.OPEN)).changed]),
        lambda: bulk.change_status(alice, [TicketState.of(changing.read(alice, 1))], to=Status.OPEN).receipt,
    ):
        receipt = reopen()
        assert changing.read(alice, 1).resolved_at is None
        assert undoing.take_back(alice, receipt).said
        after = plain(changing.read(alice, 1))
        assert [after[name] for name in ("resolved_at", "reopened_at")] == [
            before[name] for name in ("resolved_at", "reopened_at")
        ]
        assert numbers(alice, 1) == counted


# --- many ---


def test_of_a_bulk_change_what_was_changed_again_stays_and_the_rest_is_taken_back(
    world: World, alice: TenantContext, bob: TenantContext
) -> None:
    world.tickets("acme", 3)
    receipt = bulk.change_status(
        alice, [TicketState.of(changing.read(alice, n)) for n in (1, 2, 3)], to=Status.CLOSED
    ).receipt
    for to in (Status.OPEN, Status.PENDING):
        changing.change(bob, 2, Wishes(status=to))
    done = undoing.take_back(alice, receipt)
    assert done.said == "2 tickets are as before."
    assert done.left == ("#2 Ticket 2 has been changed again since and stays as it is.",)
    assert [changing.read(alice, n).status for n in (1, 2, 3)] == ["open", "pending", "open"]


def test_tags_are_added_and_removed_on_each_ticket_by_itself(alice: TenantContext) -> None:
    for tags in (["a", "b"], ["b"], [str(n) for n in range(12)]):
        creating.create(alice, title="Printer", tags=tags)
    outcomes = many.edit(alice, dict.fromkeys([1, 2, 3, 4]), TicketEdit.of({}, add_tags=["new"], remove_tags=["a"]))
    assert [one.did for one in outcomes] == ["changed", "changed", "refused", "refused"]
    assert [changing.read(alice, n).tags for n in (1, 2)] == [["b", "new"], ["b", "new"]]
    assert "at most 12 tags" in outcomes[2].sentence
    assert outcomes[3].sentence == "#4 does not exist."
    again = many.edit(alice, dict.fromkeys([1, 2]), TicketEdit.of({}, add_tags=["new"]))
    assert [one.did for one in again] == ["unchanged", "unchanged"]
    undone(alice, *(one.entry for one in outcomes))
    assert [changing.read(alice, n).tags for n in (1, 2)] == [["a", "b"], ["b"]]


def test_a_field_that_somebody_else_changed_since_it_was_seen_is_not_overwritten(
    alice: TenantContext, bob: TenantContext
) -> None:
    for title in "ab":
        creating.create(alice, title=title)
    changing.change(bob, 1, Wishes(priority=Priority.HIGH))
    changing.change(bob, 2, Wishes(status=Status.PENDING))
    outcomes = many.edit(alice, {1: 1, 2: 1}, TicketEdit.of({"priority": "low"}))
    assert [one.did for one in outcomes] == ["refused", "changed"]
    assert outcomes[0].sentence == "#1 a was changed meanwhile: priority."


# --- any of them, in any order ---

EDITS = [TicketEdit.of({"status": status}) for status in Status] + [
    TicketEdit.of({"priority": "urgent"}),
    TicketEdit.of({}, add_tags=["x"]),
    TicketEdit.of({"status": "resolved"}, remove_tags=["x"], add_tags=["y"]),
]


@given(steps=st.lists(st.tuples(st.integers(0, len(EDITS) - 1), st.booleans()), max_size=8))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_done_and_undone_the_numbers_are_those_of_what_remains(
    alice: TenantContext, steps: list[tuple[int, bool]]
) -> None:
    number = creating.create(alice, title="Printer")
    for which, is_undone in steps:
        before = numbers(alice, number)
        (outcome,) = many.edit(alice, {number: None}, EDITS[which])
        if is_undone and outcome.entry:
            assert undone(alice, outcome.entry).said
        if is_undone:
            assert numbers(alice, number) == before
