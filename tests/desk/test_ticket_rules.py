"""What happens to tickets. What leans on the engine most is tried on each of them: test_rules_on_engines.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from portal import clock
from portal.dynamo import retry
from tenants.tenancy.context import TenantContext, enter
from tests.support.fakes import answering, refusal
from tests.support.world import World
from tickets.desk import changing, commenting, creating, lists, timelines
from tickets.desk.changing import EditConflict, TicketState
from tickets.desk.commenting import CommentNotAdded
from tickets.ticket import stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import SummaryItem


def history(tenant: TenantContext, number: int) -> list[tuple[str, str]]:
    """Kind and text of each entry, oldest first; an event's text is its changes."""
    return [
        (a.kind, a.body or ", ".join(f"{c.field}: {c.before} > {c.after}" for c in a.changes) or a.verb)
        for a in timelines.ticket(tenant, number).activity
    ]


def listed(tenant: TenantContext, **which: Any) -> list[int]:
    return [int(row.number) for row in lists.page(tenant, **{"status": Status.OPEN, **which}).rows]


# --- one ticket ---


def test_the_same_request_id_in_another_tenant_is_another_request(world: World, alice: TenantContext) -> None:
    globex = world.context("alice", "globex")
    request_id = changing.new_request_id()
    for tenant in (alice, globex):
        creating.create(tenant, title=tenant.name, request_id=request_id)
    assert [lists.page(t, status=Status.OPEN).rows[0].title for t in (alice, globex)] == ["Acme", "Globex"]


def test_a_comment_sent_again_after_others_came_between_is_not_added_twice(
    alice: TenantContext, bob: TenantContext
) -> None:
    number = creating.create(alice, title="Printer")
    request_id = changing.new_request_id()
    once = {"body": "Done.", "then": Status.RESOLVED, "request_id": request_id}
    commenting.comment(alice, number, **once)
    commenting.comment(bob, number, body="Thanks.")
    changing.change_status(bob, number, to=Status.CLOSED, version=2)
    commenting.comment(alice, number, **once)
    assert [text for kind, text in history(alice, number) if kind == "comment"] == ["Done.", "Thanks."]
    assert changing.read(alice, number).status == "closed"


def test_a_comment_that_is_overtaken_every_time_is_refused_and_not_half_written(
    alice: TenantContext, bob: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = creating.create(alice, title="Printer")
    monkeypatch.setattr(retry, "sleep", lambda seconds: None)
    read = changing.read

    def busy(*args: Any, **kwargs: Any) -> SummaryItem:
        summary = read(*args, **kwargs)
        to = Status.PENDING if summary.status == "open" else Status.OPEN
        with monkeypatch.context() as undisturbed:
            undisturbed.setattr(changing, "read", read)
            changing.change_status(bob, number, to=to, version=int(summary.version))
        return summary

    monkeypatch.setattr(changing, "read", busy)
    with pytest.raises(CommentNotAdded):
        commenting.comment(alice, number, body="Typed with care.")
    assert "comment" not in [kind for kind, _ in history(alice, number)]
    assert not read(alice, number).comment_count


def test_the_same_comment_that_asks_for_another_status_is_another_request(alice: TenantContext) -> None:
    number = creating.create(alice, title="Printer")
    once = {"body": "Done.", "request_id": changing.new_request_id()}
    commenting.comment(alice, number, **once)
    commenting.comment(alice, number, **once, then=Status.RESOLVED)
    assert changing.read(alice, number).status == "resolved"
    commenting.comment(alice, number, **once, then=Status.RESOLVED)
    assert history(alice, number).count(("comment", "Done.")) == 2


def overtaken(monkeypatch: pytest.MonkeyPatch, by: Callable[[], None]) -> None:
    """From here on, once: somebody writes between the next change's read and its write."""
    read = changing.read

    def late(*args: Any, **kwargs: Any) -> SummaryItem:
        monkeypatch.setattr(changing, "read", read)
        summary = read(*args, **kwargs)
        by()
        return summary

    monkeypatch.setattr(changing, "read", late)


def test_changes_of_different_fields_are_merged_even_in_a_race(
    alice: TenantContext, bob: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = creating.create(alice, title="Printer")
    overtaken(monkeypatch, lambda: changing.change_status(bob, number, to=Status.PENDING, version=1))
    changing.edit(alice, number, priority=Priority.HIGH, version=1)
    changing.assign(bob, number, to=bob.user_id, version=1)
    stored = changing.read(alice, number)
    assert (stored.status, stored.priority, stored.resolver, stored.version) == ("pending", "high", bob.user_id, 4)
    assert listed(alice, status=Status.PENDING, resolver=bob.user_id) == [number]


def test_a_version_that_never_was_or_is_too_old_is_a_conflict(
    alice: TenantContext, bob: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "CHANGES_READ", 5)
    number = creating.create(alice, title="Printer")
    for version in range(1, 6):
        changing.change_status(bob, number, to=(Status.PENDING, Status.OPEN)[version % 2 == 0], version=version)
    for version in (1, 7):
        with pytest.raises(EditConflict):
            changing.edit(alice, number, priority=Priority.HIGH, version=version)
    assert changing.read(alice, number).priority == "normal"


def test_a_write_that_meets_another_transaction_is_tried_again(alice: TenantContext) -> None:
    number = creating.create(alice, title="Printer")
    busy = refusal(
        "TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}, {"Code": "None"}]
    )
    with answering("tenant", "TransactWriteItems", busy):
        commenting.comment(alice, number, body="Still here.")
    assert history(alice, number)[1:] == [("comment", "Still here.")]


def test_creating_a_ticket_meets_its_own_double(alice: TenantContext) -> None:
    """The second of two clicks arrives while the first one's transaction runs."""
    request_id = changing.new_request_id()
    busy = refusal("TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}] * 4)
    with answering("tenant", "TransactWriteItems", busy):
        first = creating.create(alice, title="Printer", request_id=request_id)
    assert creating.create(alice, title="Printer", request_id=request_id) == first
    assert listed(alice) == [first]


# --- lists ---


def seen(tenant: TenantContext, **which: Any) -> list[TicketState]:
    return [TicketState.of(row) for row in lists.page(tenant, **{"status": Status.OPEN, **which}).rows]


def fill(tenant: TenantContext, stamps: list[str], **values: Any) -> None:
    """Open tickets numbered from 1 with these times of their last change."""
    tenant.repository.put_all([summary(tenant, n, at, **values) for n, at in enumerate(stamps, start=1)])


def summary(tenant: TenantContext, number: int, at: str, *, resolver: str = "", pk: str | None = None) -> SummaryItem:
    return SummaryItem(
        pk or stored.ticket(tenant.tenant_id, number),
        stored.SUMMARY,
        number=number,
        title=f"Ticket {number}",
        priority="normal",
        requester_name="Somebody",
        created_at=at,
        **changing.derived(tenant, number, status="open", resolver=resolver, updated_at=at),
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
