"""Targets are on the list, the ticket, the dashboard and in the API; a command computes each receipt anew."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tenants.tenancy.context import TenantContext
from tests.sla.test_tickets_with_targets import Time, desk, marks, receipts, time, work  # noqa: F401
from tests.support.api_client import api_client
from tests.support.commands import run
from tests.support.folding import Follower
from tests.support.stored import put_all
from tests.support.world import World
from tickets.desk import commenting, creating
from tickets.ticket import stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import ActivityItem


@pytest.fixture
def follower(desk: TenantContext) -> Follower:  # noqa: F811
    return Follower()


@pytest.fixture
def tickets(desk: TenantContext, follower: Follower, time: Time) -> dict[str, int]:  # noqa: F811
    """One that is overdue, one that is due soon, one that waits and one that nobody hurries for."""
    time.at(-1.5)
    overdue = creating.create(desk, title="Overdue one")
    time.at(-0.8)
    soon = creating.create(desk, title="Soon one")
    time.at(-0.4)
    waiting = creating.create(desk, title="Paused one")
    commenting.comment(desk, waiting, body="Which?", then=Status.PENDING)
    urgent = creating.create(desk, title="Urgent one", priority=Priority.URGENT)
    time.at(0)
    work()
    return {"overdue": overdue, "soon": soon, "paused": waiting, "urgent": urgent}


def titles(page: str) -> list[str]:
    order = {title: page.find(f">{title}<") for title in ("Overdue one", "Soon one", "Paused one", "Urgent one")}
    return sorted((title for title, at in order.items() if at >= 0), key=lambda title: order[title])


def text_of(page: str) -> str:
    return re.sub(r"<[^>]*>", "", page)


def test_the_queue_counts_down_and_sorts_by_what_is_due_first(world: World, tickets: dict[str, int]) -> None:
    page = world.browser("bob", "acme").get("/acme/tickets/?status=unresolved&sort=due").content.decode()
    assert titles(page) == ["Overdue one", "Urgent one", "Soon one", "Paused one"]
    for words in ("First answer 30 min late", "First answer in 12 min", "First answer in 6 min"):
        assert words in text_of(page)


@pytest.mark.parametrize(
    ("state", "found"),
    [("overdue", ["Overdue one"]), ("due_soon", ["Urgent one", "Soon one"]), ("missed", ["Overdue one"])],
)
def test_lists_are_filtered_by_what_was_missed_and_what_will_be(
    world: World, tickets: dict[str, int], state: str, found: list[str]
) -> None:
    page = world.browser("bob", "acme").get(f"/acme/tickets/?status=unresolved&sort=due&sla={state}").content.decode()
    assert titles(page) == found
    told = api_client(world).ask(f"/tickets?sla={state}").json()
    assert sorted(one["title"] for one in told["data"]) == sorted(found)


def test_the_page_of_a_ticket_shows_its_target_and_its_receipt(world: World, tickets: dict[str, int]) -> None:
    page = world.browser("bob", "acme").get(f"/acme/tickets/{tickets['overdue']}/").content.decode()
    for words in (
        "First answer 30 min late",
        "noted that this was not in time:",
        "How it was counted",
        "1 h of business",
    ):
        assert words in text_of(page)


def test_the_api_tells_the_next_target(world: World, tickets: dict[str, int]) -> None:
    told = api_client(world).ask(f"/tickets/{tickets['soon']}").json()
    assert (told["target"], told["due_at"], told["missed_at"]) == ("first", "2026-11-26T12:12:00.000000Z", None)


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_the_dashboard_counts_what_its_lists_show(
    world: World, follower: Follower, tickets: dict[str, int], who: str
) -> None:
    follower.fold()
    page = world.browser(who, "acme").get("/acme/tickets/dashboard/").content.decode()
    found = re.findall(r'sla=(\w+)"><span class="tile-number">(\d+)</span>', page)
    assert dict(found) == {"overdue": "1", "due_soon": "2", "missed": "1"}


def test_the_command_computes_each_receipt_anew(world: World, desk: TenantContext, tickets: dict[str, int]) -> None:  # noqa: F811
    assert "4 tickets, 1 receipt." in run("verify_targets", "--tenant", "acme").out
    number = tickets["overdue"]
    assert '"allowed":3600' in run("verify_targets", "--tenant", "acme", "--ticket", number).out
    ended = run("verify_targets", "--tenant", "acme", "--ticket", "9999")
    assert (ended.status, "There is no ticket 9999." in ended.err) == (1, True)
    (entry,) = [e for e in _entries(desk, number) if e.receipt]
    entry.receipt = entry.receipt.replace('"counted":3600', '"counted":3599')
    put_all([entry])
    ended = run("verify_targets", "--tenant", "acme")
    assert (ended.status, "is not as its history says" in ended.out) == (1, True)


def _entries(tenant: TenantContext, number: int) -> list[Any]:
    found = tenant.repository.query(stored.TICKET_ITEMS, stored.ticket, number)
    return [item for item in found.items if isinstance(item, ActivityItem)]
