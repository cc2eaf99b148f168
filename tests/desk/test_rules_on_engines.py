"""The rules of tickets that lean on conditions, transactions, index order or simultaneity, on every engine."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from portal import clock
from portal.dynamo import client
from tenants.tenancy.context import TenantContext
from tests.desk.test_ticket_rules import MOMENTS, START, fill, history, listed, overtaken, seen, sharded, summary
from tests.support import folding
from tests.support.world import World
from tickets.desk import bulk, changing, commenting, creating, lists, timelines, undoing
from tickets.desk.bulk import BulkRefused
from tickets.desk.changing import EditConflict, TicketState
from tickets.desk.filters import TicketFilter
from tickets.desk.lists import TicketPage
from tickets.ticket import stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import TICKETS

if TYPE_CHECKING:
    from tests.support.engines import AnyEngine

pytest_plugins = ["tests.support.engines"]


@pytest.fixture
def alice(any_world: World) -> TenantContext:
    return any_world.context("alice", "acme")


@pytest.fixture
def bob(any_world: World) -> TenantContext:
    return any_world.context("bob", "acme")


def all_at_once(*calls: Callable[[], Any]) -> list[Any]:
    """The outcomes of calls made at the same time: what they return, or the error they raise."""
    together = threading.Barrier(len(calls), timeout=120)

    def run(call: Callable[[], Any]) -> Any:
        together.wait()
        try:
            return call()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def walk(tenant: TenantContext, direction: str, start: TicketPage, **which: Any) -> list[TicketPage]:
    pages = [start]
    while (after := getattr(pages[-1], direction)) is not None:
        pages.append(lists.page(tenant, after=after, **which))
        assert len(pages) < 100, "the links lead in a circle"
    return pages


def numbers_of(pages: list[TicketPage]) -> list[int]:
    return [int(row.number) for page in pages for row in page.rows]


def test_a_new_ticket_is_open_listed_and_has_its_history(alice: TenantContext) -> None:
    number = creating.create(
        alice, title=" The  printer ", description="It *broke*.", priority=Priority.HIGH, tags=["vip"]
    )
    ticket = timelines.ticket(alice, number)
    summary = ticket.summary
    assert (summary.title, summary.priority, summary.tags, summary.status) == ("The printer", "high", ["vip"], "open")
    assert (summary.requester, summary.requester_name, summary.resolver) == (alice.user_id, "Alice Example", "")
    assert ticket.description == "It *broke*."
    assert history(alice, number) == [("event", "opened the ticket")]
    assert listed(alice) == [number]
    assert listed(alice, resolver="") == [number]


def test_a_form_sent_twice_at_the_same_time_opens_one_ticket(alice: TenantContext) -> None:
    request_id = changing.new_request_id()
    numbers = all_at_once(*[lambda: creating.create(alice, title="Printer", request_id=request_id)] * 3)
    assert len(set(numbers)) == 1, numbers
    assert listed(alice) == [numbers[0]]


def test_a_comment_sent_twice_at_the_same_time_is_added_once(alice: TenantContext) -> None:
    number = creating.create(alice, title="Printer")
    request_id = changing.new_request_id()
    outcomes = all_at_once(*[lambda: commenting.comment(alice, number, body="Once.", request_id=request_id)] * 3)
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert history(alice, number)[1:] == [("comment", "Once.")]
    assert changing.read(alice, number).comment_count == 1


def test_an_edit_changes_what_differs_and_says_so(alice: TenantContext) -> None:
    number = creating.create(alice, title="Printer", description="old")
    form = {"title": "Printer", "description": "older", "priority": Priority.URGENT, "tags": ["a", "b"]}
    changing.edit(alice, number, version=1, **form)
    ticket = timelines.ticket(alice, number)
    assert (ticket.description, ticket.summary.priority, ticket.summary.version) == ("older", "urgent", 2)
    assert history(alice, number)[1:] == [
        ("event", "priority: normal > urgent, tags:  > a, b, description: 3 characters > 5 characters")
    ]
    changing.edit(alice, number, version=2, **form)
    assert changing.read(alice, number).version == 2


def test_an_edit_of_an_older_version_changes_nothing(alice: TenantContext, bob: TenantContext) -> None:
    number = creating.create(alice, title="Printer")
    changing.edit(bob, number, priority=Priority.HIGH, version=1)
    with pytest.raises(EditConflict) as caught:
        changing.edit(alice, number, version=1, title="X", description="", priority=Priority.LOW, tags=[])
    assert (caught.value.stored.title, caught.value.stored.priority) == ("Printer", "high")
    assert changing.read(alice, number).title == "Printer"


def test_a_change_that_loses_the_race_for_its_field_carries_the_winners_ticket(
    alice: TenantContext, bob: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = creating.create(alice, title="Printer")
    overtaken(monkeypatch, lambda: changing.edit(bob, number, priority=Priority.URGENT, version=1))
    with pytest.raises(EditConflict) as caught:
        changing.edit(alice, number, priority=Priority.HIGH, version=1)
    assert (caught.value.stored.priority, caught.value.stored.version) == ("urgent", 2)
    assert [entry.author_name for entry in caught.value.since.entries] == ["Bob Example"]
    assert history(alice, number)[1:] == [("event", "priority: normal > urgent")]


def test_of_many_editors_at_the_same_time_one_wins_and_nothing_is_mixed(alice: TenantContext) -> None:
    number = creating.create(alice, title="Printer")
    form = {"description": "", "priority": Priority.LOW, "version": 1}
    outcomes = all_at_once(
        *[lambda n=n: changing.edit(alice, number, title=f"T{n}", tags=[f"t{n}"], **form) for n in range(6)]
    )
    (winner,) = (n for n, outcome in enumerate(outcomes) if not isinstance(outcome, Exception))
    assert all(isinstance(o, EditConflict) for n, o in enumerate(outcomes) if n != winner)
    stored = changing.read(alice, number)
    assert (stored.title, stored.tags, stored.version) == (f"T{winner}", [f"t{winner}"], 2)


def test_an_assigned_ticket_moves_between_the_lists_of_people(alice: TenantContext, bob: TenantContext) -> None:
    number = creating.create(alice, title="Printer")
    changing.assign(alice, number, to=bob.user_id, version=1)
    assert (listed(alice, resolver=bob.user_id), listed(alice, resolver="")) == ([number], [])
    assert lists.page(alice, status=Status.OPEN).rows[0].resolver_name == "Bob Example"
    changing.assign(alice, number, to="", version=2)
    assert (listed(alice, resolver=bob.user_id), listed(alice, resolver="")) == ([], [number])
    assert history(alice, number)[1:] == [("event", "resolver:  > Bob Example"), ("event", "resolver: Bob Example > ")]


def test_a_long_history_is_read_in_pages(alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "ACTIVITY_PAGE", 4)
    number = creating.create(alice, title="Printer", description="text")
    for n in range(1, 10):
        commenting.comment(alice, number, body=f"{n}")
    pages = [timelines.ticket(alice, number)]
    while (before := pages[-1].earlier) is not None:
        pages.append(timelines.ticket(alice, number, before=before))
    assert [[a.body or a.verb for a in p.activity] for p in pages] == [
        ["6", "7", "8", "9"],
        ["2", "3", "4", "5"],
        ["opened the ticket", "1"],
    ]
    assert {(p.summary.title, p.description) for p in pages} == {("Printer", "text")}


def test_fifty_tickets_are_closed_together_in_the_order_chosen(chosen: AnyEngine, alice: TenantContext) -> None:
    # moto copies its tables for a transaction.
    count = 5 if chosen.kind == "moto" else bulk.limit(alice)
    fill(alice, [clock.stamp(START, offset=n) for n in range(count)])
    numbers = list(range(1, count + 1))
    selected = seen(alice)
    assert bulk.change_status(alice, selected, to=Status.CLOSED).count == count
    assert listed(alice) == []
    assert sorted(listed(alice, status=Status.CLOSED)) == numbers
    assert listed(alice, status=Status.CLOSED) == [s.number for s in selected][::-1]
    assert history(alice, 3)[-1] == ("event", "status: open > closed")


def test_one_ticket_that_changed_stops_them_all_and_is_named(
    any_world: World, alice: TenantContext, bob: TenantContext
) -> None:
    numbers = any_world.tickets("acme", 5)
    selected = seen(alice)
    changing.edit(bob, numbers[0], priority=Priority.HIGH, version=1)
    changing.change_status(bob, numbers[1], to=Status.PENDING, version=1)
    changing.assign(alice, numbers[2], to=bob.user_id, version=1)
    missing = TicketState(999, 1, Status.OPEN, "")
    with pytest.raises(BulkRefused) as caught:
        bulk.change_status(alice, [*selected, missing], to=Status.CLOSED)
    assert {r.number: r.reason for r in caught.value.refusals} == {
        numbers[0]: "was changed meanwhile",
        numbers[1]: "is pending now, not open",
        numbers[2]: "was assigned to Bob Example meanwhile",
        999: "no longer exists",
    }
    assert {r.title for r in caught.value.refusals} == {"Ticket 1", "Ticket 2", "Ticket 3", ""}
    assert sorted(s.number for s in caught.value.kept) == numbers[3:]
    assert listed(alice, status=Status.CLOSED) == []
    assert bulk.change_status(alice, caught.value.kept, to=Status.CLOSED).count == 2


def test_a_bulk_change_is_taken_back_where_nobody_changed_the_same_field_since(
    any_world: World, alice: TenantContext, bob: TenantContext
) -> None:
    any_world.tickets("acme", 4)
    changing.change_status(alice, 2, to=Status.PENDING, version=1)
    before = {n: changing.read(alice, n) for n in range(1, 5)}
    selected = [*seen(alice), *seen(alice, status=Status.PENDING)]
    receipt = bulk.change_status(alice, selected, to=Status.CLOSED).receipt
    changing.change_status(bob, 3, to=Status.OPEN, version=2)
    changing.assign(bob, 4, to=bob.user_id, version=2)
    assert undoing.take_back(alice, receipt).said == "3 tickets are as before."
    after = {n: changing.read(alice, n) for n in range(1, 5)}
    assert [s.status for s in after.values()] == ["open", "pending", "open", "open"]
    assert after[4].resolver == bob.user_id
    for n in (1, 2):
        assert folding.contribution(after[n].serialize()) == folding.contribution(before[n].serialize())
    assert history(alice, 1)[1:] == [("event", "status: open > closed"), ("event", "status: closed > open")]
    assert len(undoing.take_back(alice, receipt).left) == 4


def test_what_changed_in_a_list_since_it_was_read_is_counted(any_world: World, alice: TenantContext) -> None:
    any_world.tickets("acme", 3)
    rows = lists.page(alice, status=Status.OPEN).rows
    which = {"status": (Status.OPEN,), "seen": rows[0].updated_at}
    assert lists.changed_since(alice, **which) == 0
    commenting.comment(alice, 1, body="Again.")
    changing.edit(alice, 2, priority=Priority.HIGH, version=1)
    assert lists.changed_since(alice, **which) == 2
    assert lists.changed_since(alice, **which, only=TicketFilter(priority=Priority.HIGH)) == 1
    assert lists.changed_since(alice, **which, resolver="") == 2


@pytest.mark.parametrize("shards", [1, 4])
def test_paging_forwards_and_backwards_shows_each_ticket_exactly_once(any_world: World, shards: int) -> None:
    for resolver, stamps in zip((None, "", any_world.users["bob"].id), MOMENTS.values(), strict=True):
        tenant = sharded(any_world, shards)
        fill(tenant, stamps, resolver=resolver or "")
        how: dict[str, Any] = {"status": Status.OPEN, "resolver": resolver, "size": 4}
        forward = walk(tenant, "next", lists.page(tenant, **how), **how)
        assert sorted(numbers_of(forward)) == list(range(1, 19))
        assert [row.updated_at for page in forward for row in page.rows] == sorted(stamps, reverse=True)
        back = walk(tenant, "previous", forward[-1], **how)[::-1]
        assert numbers_of(back) == numbers_of(forward)
        if shards == 1:
            assert [numbers_of([p]) for p in back] == [numbers_of([p]) for p in forward]


def test_a_page_goes_on_behind_a_ticket_that_has_moved(any_world: World) -> None:
    for shards in (1, 4):
        tenant = sharded(any_world, shards)
        fill(tenant, MOMENTS["groups of seven"])
        how: dict[str, Any] = {"status": Status.OPEN, "size": 4}
        first = lists.page(tenant, **how)
        last = int(first.rows[-1].number)
        changing.change_status(tenant, last, to=Status.CLOSED, version=1)
        pages = walk(tenant, "next", first, **how)
        assert sorted(numbers_of(pages)) == list(range(1, 19))


def test_a_list_goes_on_where_it_was_once_the_shards_have_changed(any_world: World) -> None:
    for moments in MOMENTS.values():
        tenant = sharded(any_world, 1)
        fill(tenant, moments)
        first = lists.page(tenant, status=Status.OPEN, size=4)
        changed = replace(tenant, shards=4, shard_epoch=1)
        pages = walk(changed, "next", first, status=Status.OPEN, size=4)
        assert sorted(numbers_of(pages)) == list(range(1, 19))


def test_a_row_planted_in_the_index_by_another_tenant_is_dropped_and_logged(
    any_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    for shards in (1, 4):
        tenant = sharded(any_world, shards)
        globex = any_world.context("charlie", "globex")
        fill(tenant, MOMENTS["groups of seven"])
        for number in range(1, 13):
            # Globex's own item as far as its key goes, with the index keys of the other tenant.
            planted = summary(tenant, number, clock.stamp(START, offset=9), pk=stored.ticket(globex.tenant_id, number))
            client.connection("platform").dispatch(
                "PutItem", {"TableName": TICKETS.full_name, "Item": planted.serialize()}
            )
        how: dict[str, Any] = {"status": Status.OPEN, "size": 4}
        with caplog.at_level(logging.ERROR, "pooldesk.isolation"):
            caplog.clear()
            pages = walk(tenant, "next", lists.page(tenant, **how), **how)
        assert sorted(numbers_of(pages)) == list(range(1, 19))
        assert {row.pk.split("|")[0] for p in pages for row in p.rows} == {f"TENANT#{tenant.tenant_id}"}
        assert any(tenant.tenant_id in record.getMessage() for record in caplog.records)
        assert numbers_of(walk(tenant, "previous", pages[-1], **how)[::-1]) == numbers_of(pages)
