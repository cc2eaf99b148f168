"""What happens to tickets, on every engine: the rules lean on conditions, transactions and index order."""

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
from portal.errors import Invalid, NotFound
from tenants.tenancy.context import TenantContext, enter
from tests.support.fakes import answering, refusal
from tests.support.world import World
from tickets.desk import bulk, lifecycle, queries
from tickets.desk.bulk import BulkRefused, Seen
from tickets.desk.lifecycle import EditConflict
from tickets.desk.queries import TicketPage
from tickets.ticket import keys
from tickets.ticket.fields import Priority, Status
from tickets.ticket.items import SummaryItem
from tickets.ticket.tables import TICKETS

if TYPE_CHECKING:
    from tests.support.engines import AnyEngine

pytest_plugins = ["tests.support.engines"]


@pytest.fixture
def alice(any_world: World) -> TenantContext:
    return any_world.context("alice", "acme")


@pytest.fixture
def bob(any_world: World) -> TenantContext:
    return any_world.context("bob", "acme")


def history(tenant: TenantContext, number: int) -> list[tuple[str, str]]:
    """Kind and text of each entry, oldest first; an event's text is its changes."""
    return [
        (a.kind, a.body or ", ".join(f"{c.field}: {c.before} > {c.after}" for c in a.changes) or a.verb)
        for a in queries.ticket(tenant, number).activity
    ]


def listed(tenant: TenantContext, **which: Any) -> list[int]:
    return [int(row.number) for row in queries.page(tenant, **{"status": Status.OPEN, **which}).rows]


def all_at_once(*calls: Callable[[], Any]) -> list[Any]:
    """The outcomes of calls made at the same time: what they return, or the error they raise."""
    together = threading.Barrier(len(calls), timeout=30)

    def run(call: Callable[[], Any]) -> Any:
        together.wait()
        try:
            return call()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


# --- one ticket ---


def test_a_new_ticket_is_open_listed_and_has_its_history(alice: TenantContext) -> None:
    number = lifecycle.create(
        alice, title=" The  printer ", description="It *broke*.", priority=Priority.HIGH, tags=["vip"]
    )
    ticket = queries.ticket(alice, number)
    summary = ticket.summary
    assert (summary.title, summary.priority, summary.tags, summary.status) == ("The printer", "high", ["vip"], "open")
    assert (summary.requester, summary.requester_name, summary.resolver) == (alice.user_id, "Alice Example", "")
    assert ticket.description == "It *broke*."
    assert history(alice, number) == [("event", "opened the ticket")]
    assert listed(alice) == [number]
    assert listed(alice, resolver="") == [number]


def test_a_ticket_is_created_once_per_request(alice: TenantContext) -> None:
    request_id = lifecycle.new_request_id()
    numbers = {lifecycle.create(alice, title=f"Try {n}", request_id=request_id) for n in range(3)}
    assert len(numbers) == 1
    assert len(listed(alice)) == 1
    assert queries.ticket(alice, numbers.pop()).summary.title == "Try 0"


def test_a_form_sent_twice_at_the_same_time_opens_one_ticket(chosen: AnyEngine, alice: TenantContext) -> None:
    if chosen.kind == "moto":
        pytest.skip("moto does not isolate transactions that run at the same time")
    request_id = lifecycle.new_request_id()
    numbers = all_at_once(*[lambda: lifecycle.create(alice, title="Printer", request_id=request_id)] * 3)
    assert len(set(numbers)) == 1, numbers
    assert listed(alice) == [numbers[0]]


def test_the_same_request_id_in_another_tenant_is_another_request(any_world: World, alice: TenantContext) -> None:
    globex = any_world.context("alice", "globex")
    request_id = lifecycle.new_request_id()
    for tenant in (alice, globex):
        lifecycle.create(tenant, title=tenant.name, request_id=request_id)
    assert [queries.page(t, status=Status.OPEN).rows[0].title for t in (alice, globex)] == ["Acme", "Globex"]


def test_a_comment_counts_and_brings_the_ticket_to_the_top(alice: TenantContext, bob: TenantContext) -> None:
    first, second = (lifecycle.create(alice, title=t) for t in ("First", "Second"))
    lifecycle.comment(bob, first, body=" Looking into it. ")
    lifecycle.comment(bob, first, body="Between us.", internal=True)
    assert listed(alice) == [first, second]
    assert lifecycle.read(alice, first).comment_count == 2
    assert history(alice, first)[1:] == [("comment", "Looking into it."), ("note", "Between us.")]


def test_a_comment_is_added_once_per_request(alice: TenantContext) -> None:
    number = lifecycle.create(alice, title="Printer")
    request_id = lifecycle.new_request_id()
    for _ in range(3):
        lifecycle.comment(alice, number, body="Once.", request_id=request_id)
    assert history(alice, number)[1:] == [("comment", "Once.")]
    assert lifecycle.read(alice, number).comment_count == 1


def test_a_comment_sent_twice_at_the_same_time_is_added_once(chosen: AnyEngine, alice: TenantContext) -> None:
    if chosen.kind == "moto":
        pytest.skip("moto does not isolate transactions that run at the same time")
    number = lifecycle.create(alice, title="Printer")
    request_id = lifecycle.new_request_id()
    outcomes = all_at_once(*[lambda: lifecycle.comment(alice, number, body="Once.", request_id=request_id)] * 3)
    assert outcomes == [None] * 3
    assert history(alice, number)[1:] == [("comment", "Once.")]
    assert lifecycle.read(alice, number).comment_count == 1


def test_a_comment_can_close_the_ticket_in_the_same_write(alice: TenantContext) -> None:
    number = lifecycle.create(alice, title="Printer")
    lifecycle.comment(alice, number, body="Done.", then=Status.CLOSED)
    assert history(alice, number)[1:] == [("comment", "Done."), ("event", "status: open > closed")]
    assert (listed(alice), listed(alice, status=Status.CLOSED)) == ([], [number])


def test_an_edit_changes_what_differs_and_says_so(alice: TenantContext) -> None:
    number = lifecycle.create(alice, title="Printer", description="old")
    form = {"title": "Printer", "description": "older", "priority": Priority.URGENT, "tags": ["a", "b"]}
    lifecycle.edit(alice, number, version=1, **form)
    ticket = queries.ticket(alice, number)
    assert (ticket.description, ticket.summary.priority, ticket.summary.version) == ("older", "urgent", 2)
    assert history(alice, number)[1:] == [
        ("event", "priority: normal > urgent, tags:  > a, b, description: 3 characters > 5 characters")
    ]
    lifecycle.edit(alice, number, version=2, **form)
    assert lifecycle.read(alice, number).version == 2


def test_an_edit_of_an_older_version_changes_nothing(alice: TenantContext, bob: TenantContext) -> None:
    number = lifecycle.create(alice, title="Printer")
    lifecycle.change_priority(bob, number, to=Priority.HIGH, version=1)
    with pytest.raises(EditConflict) as caught:
        lifecycle.edit(alice, number, version=1, title="X", description="", priority=Priority.LOW, tags=[])
    assert (caught.value.stored.title, caught.value.stored.priority) == ("Printer", "high")
    assert lifecycle.read(alice, number).title == "Printer"


def test_an_edit_that_loses_the_race_carries_the_winners_ticket(
    alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = lifecycle.create(alice, title="Printer")
    fresh = lifecycle._fresh

    def overtaken(tenant: TenantContext, number: int, version: int) -> SummaryItem:
        """Somebody writes between this edit's read and its write."""
        summary = fresh(tenant, number, version)
        monkeypatch.setattr(lifecycle, "_fresh", fresh)
        lifecycle.change_status(tenant, number, to=Status.PENDING, version=version)
        return summary

    monkeypatch.setattr(lifecycle, "_fresh", overtaken)
    with pytest.raises(EditConflict) as caught:
        lifecycle.change_priority(alice, number, to=Priority.HIGH, version=1)
    assert (caught.value.stored.status, caught.value.stored.version) == ("pending", 2)
    stored = lifecycle.read(alice, number)
    assert (stored.status, stored.priority, stored.version) == ("pending", "normal", 2)
    assert history(alice, number)[1:] == [("event", "status: open > pending")]


def test_of_many_editors_at_the_same_time_one_wins_and_nothing_is_mixed(
    chosen: AnyEngine, alice: TenantContext
) -> None:
    if chosen.kind == "moto":
        pytest.skip("moto does not isolate transactions that run at the same time")
    number = lifecycle.create(alice, title="Printer")
    form = {"description": "", "priority": Priority.LOW, "version": 1}
    outcomes = all_at_once(
        *[lambda n=n: lifecycle.edit(alice, number, title=f"T{n}", tags=[f"t{n}"], **form) for n in range(6)]
    )
    (winner,) = (n for n, outcome in enumerate(outcomes) if outcome is None)
    assert all(isinstance(o, EditConflict) for n, o in enumerate(outcomes) if n != winner)
    stored = lifecycle.read(alice, number)
    assert (stored.title, stored.tags, stored.version) == (f"T{winner}", [f"t{winner}"], 2)


def test_an_assigned_ticket_moves_between_the_lists_of_people(alice: TenantContext, bob: TenantContext) -> None:
    number = lifecycle.create(alice, title="Printer")
    lifecycle.assign(alice, number, to=bob.user_id, version=1)
    assert (listed(alice, resolver=bob.user_id), listed(alice, resolver="")) == ([number], [])
    assert queries.page(alice, status=Status.OPEN).rows[0].resolver_name == "Bob Example"
    lifecycle.assign(alice, number, to="", version=2)
    assert (listed(alice, resolver=bob.user_id), listed(alice, resolver="")) == ([], [number])
    assert history(alice, number)[1:] == [("event", "resolver:  > Bob Example"), ("event", "resolver: Bob Example > ")]


def test_nobody_outside_and_no_viewer_can_be_assigned(any_world: World, alice: TenantContext) -> None:
    number = lifecycle.create(alice, title="Printer")
    for who in ("charlie", "vera"):
        with pytest.raises(Invalid):
            lifecycle.assign(alice, number, to=any_world.users[who].id, version=1)
    with pytest.raises(Invalid):
        lifecycle.assign(alice, number, to="x" * 32, version=1)
    assert lifecycle.read(alice, number).version == 1


def test_a_ticket_of_another_tenant_is_not_found(any_world: World, alice: TenantContext) -> None:
    number = lifecycle.create(alice, title="Acme's")
    globex = any_world.context("alice", "globex")
    for call in (
        lambda: queries.ticket(globex, number),
        lambda: lifecycle.read(globex, number),
        lambda: lifecycle.comment(globex, number, body="x"),
        lambda: lifecycle.change_status(globex, number, to=Status.CLOSED, version=1),
        lambda: lifecycle.assign(globex, number, to="", version=1),
    ):
        with pytest.raises(NotFound):
            call()
    assert listed(globex) == []


def test_a_write_that_meets_another_transaction_is_tried_again(alice: TenantContext) -> None:
    number = lifecycle.create(alice, title="Printer")
    busy = refusal(
        "TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}, {"Code": "None"}]
    )
    with answering("tenant", "TransactWriteItems", busy):
        lifecycle.comment(alice, number, body="Still here.")
    assert history(alice, number)[1:] == [("comment", "Still here.")]


def test_creating_a_ticket_meets_its_own_double(alice: TenantContext) -> None:
    """The second of two clicks arrives while the first one's transaction runs."""
    request_id = lifecycle.new_request_id()
    busy = refusal("TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}] * 4)
    with answering("tenant", "TransactWriteItems", busy):
        first = lifecycle.create(alice, title="Printer", request_id=request_id)
    assert lifecycle.create(alice, title="Printer", request_id=request_id) == first
    assert listed(alice) == [first]


def test_a_long_history_is_read_in_pages(alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "ACTIVITY_PAGE", 4)
    number = lifecycle.create(alice, title="Printer", description="text")
    for n in range(1, 10):
        lifecycle.comment(alice, number, body=f"{n}")
    pages = [queries.ticket(alice, number)]
    while (before := pages[-1].earlier) is not None:
        pages.append(queries.ticket(alice, number, before=before))
    assert [[a.body or a.verb for a in p.activity] for p in pages] == [
        ["6", "7", "8", "9"],
        ["2", "3", "4", "5"],
        ["opened the ticket", "1"],
    ]
    assert {(p.summary.title, p.description) for p in pages} == {("Printer", "text")}


def test_a_history_of_exactly_a_page_has_nothing_earlier(alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "ACTIVITY_PAGE", 3)
    number = lifecycle.create(alice, title="Printer")
    for n in range(2):
        lifecycle.comment(alice, number, body=f"{n}")
    assert queries.ticket(alice, number).earlier is None
    for n in range(3):
        lifecycle.comment(alice, number, body=f"{n}")
    last = queries.ticket(alice, number)
    assert last.earlier is not None
    assert queries.ticket(alice, number, before=last.earlier).earlier is None


# --- many tickets ---


def seen(tenant: TenantContext, **which: Any) -> list[Seen]:
    return [Seen.of(row) for row in queries.page(tenant, **{"status": Status.OPEN, **which}).rows]


def test_fifty_tickets_are_closed_together_in_the_order_chosen(chosen: AnyEngine, alice: TenantContext) -> None:
    # moto copies its tables for a transaction.
    count = 5 if chosen.kind == "moto" else bulk.LIMIT
    fill(alice, [clock.stamp(START, offset=n) for n in range(count)])
    numbers = list(range(1, count + 1))
    selected = seen(alice)
    assert bulk.change_status(alice, selected, to=Status.CLOSED) == count
    assert listed(alice) == []
    assert sorted(listed(alice, status=Status.CLOSED)) == numbers
    assert listed(alice, status=Status.CLOSED) == [s.number for s in selected][::-1]
    assert history(alice, 3)[-1] == ("event", "status: open > closed")


def test_one_ticket_that_changed_stops_them_all_and_is_named(
    any_world: World, alice: TenantContext, bob: TenantContext
) -> None:
    numbers = any_world.tickets("acme", 5)
    selected = seen(alice)
    lifecycle.change_priority(bob, numbers[0], to=Priority.HIGH, version=1)
    lifecycle.change_status(bob, numbers[1], to=Status.PENDING, version=1)
    lifecycle.assign(alice, numbers[2], to=bob.user_id, version=1)
    missing = Seen(999, 1, Status.OPEN, "")
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
    assert bulk.change_status(alice, caught.value.kept, to=Status.CLOSED) == 2


# --- lists ---


def walk(tenant: TenantContext, direction: str, start: TicketPage, **which: Any) -> list[TicketPage]:
    pages = [start]
    while (after := getattr(pages[-1], direction)) is not None:
        pages.append(queries.page(tenant, after=after, **which))
        assert len(pages) < 100, "the links lead in a circle"
    return pages


def numbers_of(pages: list[TicketPage]) -> list[int]:
    return [int(row.number) for page in pages for row in page.rows]


def fill(tenant: TenantContext, stamps: list[str], **values: Any) -> None:
    """Open tickets numbered from 1 with these times of their last change."""
    tenant.repository.put_all([summary(tenant, n, at, **values) for n, at in enumerate(stamps, start=1)])


def summary(tenant: TenantContext, number: int, at: str, *, resolver: str = "", pk: str | None = None) -> SummaryItem:
    return SummaryItem(
        pk or keys.ticket(tenant.tenant_id, number),
        keys.SUMMARY,
        number=number,
        title=f"Ticket {number}",
        priority="normal",
        requester_name="Somebody",
        created_at=at,
        **lifecycle.derived(tenant, number, status="open", resolver=resolver, updated_at=at),
    )


def sharded(world: World, shards: int) -> TenantContext:
    """A tenant of Alice's with that many shards."""
    from tests.support.engines import new_tenant

    tenant = enter(world.users["alice"], new_tenant(world, "Sharded", "alice", shards=shards).tenant_id)
    assert tenant is not None
    assert tenant.shards == shards
    return tenant


START = clock.parse("2026-01-31T12:00:00.000000Z")
MOMENTS = {
    "all the same": [clock.stamp(START)] * 18,
    "groups of seven": [clock.stamp(START, offset=n // 7) for n in range(18)],
    "each its own": [clock.stamp(START, offset=n) for n in range(18)],
}


@pytest.mark.parametrize("shards", [1, 4])
def test_paging_forwards_and_backwards_shows_each_ticket_exactly_once(any_world: World, shards: int) -> None:
    for resolver, stamps in zip((None, "", any_world.users["bob"].id), MOMENTS.values(), strict=True):
        tenant = sharded(any_world, shards)
        fill(tenant, stamps, resolver=resolver or "")
        how: dict[str, Any] = {"status": Status.OPEN, "resolver": resolver, "size": 4}
        forward = walk(tenant, "next", queries.page(tenant, **how), **how)
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
        first = queries.page(tenant, **how)
        last = int(first.rows[-1].number)
        lifecycle.change_status(tenant, last, to=Status.CLOSED, version=1)
        pages = walk(tenant, "next", first, **how)
        assert sorted(numbers_of(pages)) == list(range(1, 19))


def test_a_cursor_is_refused_once_the_shards_have_changed(any_world: World) -> None:
    tenant = sharded(any_world, 1)
    fill(tenant, MOMENTS["each its own"])
    cursor = queries.page(tenant, status=Status.OPEN, size=4).next
    assert cursor is not None
    for changed in (replace(tenant, shards=4), replace(tenant, shard_epoch=1)):
        with pytest.raises(Invalid):
            queries.page(changed, status=Status.OPEN, after=cursor)


def test_a_row_planted_in_the_index_by_another_tenant_is_dropped_and_logged(
    any_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    for shards in (1, 4):
        tenant = sharded(any_world, shards)
        globex = any_world.context("charlie", "globex")
        fill(tenant, MOMENTS["groups of seven"])
        for number in range(1, 13):
            # Globex's own item as far as its key goes, with the index keys of the other tenant.
            planted = summary(tenant, number, clock.stamp(START, offset=9), pk=keys.ticket(globex.tenant_id, number))
            client.connection("platform").dispatch(
                "PutItem", {"TableName": TICKETS.full_name, "Item": planted.serialize()}
            )
        how: dict[str, Any] = {"status": Status.OPEN, "size": 4}
        with caplog.at_level(logging.ERROR, "pooldesk.isolation"):
            caplog.clear()
            pages = walk(tenant, "next", queries.page(tenant, **how), **how)
        assert sorted(numbers_of(pages)) == list(range(1, 19))
        assert {row.pk.split("|")[0] for p in pages for row in p.rows} == {f"TENANT#{tenant.tenant_id}"}
        assert any(tenant.tenant_id in record.getMessage() for record in caplog.records)
        assert numbers_of(walk(tenant, "previous", pages[-1], **how)[::-1]) == numbers_of(pages)
