"""Owners see on each page what it has cost, and nobody else does."""

from __future__ import annotations

import re
from typing import Any

import pytest

from portal.dynamo.meter import Call, Meter
from portal.web.price_presenters import lines_of
from tests.requester_pages.conftest import Guest
from tests.support.world import World, captured
from tickets.desk import changing, creating
from tickets.replies import mail_settings, ticket_links
from tickets.requesters import requesters

PAGES = ("/tickets/", "/tickets/1/", "/tickets/dashboard/", "/desk/members/", "/search/?q=printer")
_FIGURE = r"<summary>This page: ([^<]+)</summary>"


def _summed(page: Any, unit: str) -> float:
    """Return the sum of a number that each line of the page's bill has."""
    lines = captured(r"(?s)<footer class=\"price.*?<ul>(.*?)</ul>", page)
    return sum(map(float, re.findall(rf"([0-9.]+) {unit}", lines)))


@pytest.mark.parametrize("path", PAGES)
def test_the_price_of_a_page_is_the_bill_of_its_request(world: World, settings: Any, path: str) -> None:
    world.tickets("acme", 1)
    settings.DEBUG = True
    page = world.browser("alice", "acme").get(path)
    assert page.status_code == 200
    trips, reads = captured(_FIGURE, page).split(", ")[:2]
    bill = page["Server-Timing"]
    assert f'"{trips},' in bill.replace("desc=", "")
    assert f" {reads}, " in bill
    assert f"{_summed(page, 'RCU'):g} RCU" == reads
    assert f" {_summed(page, 'call'):g} calls," in bill


@pytest.mark.parametrize(
    ("reads", "writes", "dollars"),
    [
        (0.5, 0, "$0.0625"),
        (1, 0, "$0.125"),
        (3.5, 0, "$0.438"),
        (7.5, 0, "$0.938"),
        (2, 12, "$7.75"),
        (8000, 4, "$1,003"),
        (8000, 0.8, "$1,001"),
    ],
)
def test_the_price_of_a_million_pages_is_that_of_their_units(reads: float, writes: float, dollars: str) -> None:
    bill = Meter(calls=[Call("Query", "Pooldesk.Support.Tickets", None, 1, 1, reads, writes, 0.0)])
    assert [line.price for line in lines_of(bill)] == [dollars]
    assert float(dollars[1:].replace(",", "")) == pytest.approx(reads * 0.125 + writes * 0.625, rel=0.005)


@pytest.mark.parametrize("who", ["bob", "vera"])
def test_agents_and_viewers_see_no_price(world: World, who: str) -> None:
    assert "RCU" not in world.browser(who).get("/tickets/").content.decode()


@pytest.mark.parametrize("who", ["bob", "vera", "a requester"])
def test_with_debug_on_whoever_may_not_read_internal_notes_is_told_of_no_cost(
    world: World, settings: Any, who: str
) -> None:
    """What they may not read is read and paid for with what they may."""
    tenant, settings.DEBUG = world.context("bob", "acme"), True
    number = creating.create(tenant, title="Paper", requester=requesters.ensure(tenant, "ada@example.org"))
    if who == "a requester":
        summary = changing.read(tenant, number)
        ada = requesters.find(tenant, summary.requester)
        assert ada is not None
        page = Guest(ticket_links.ticket_link(tenant, summary, ada, mail_settings.read(tenant)).token).get()
    else:
        page = world.browser(who).get(f"/tickets/{number}/")
    is_told = who == "bob"
    text = page.content.decode()
    assert (page.status_code, "Server-Timing" in page.headers, "This page:" in text) == (200, is_told, is_told)


def test_the_length_of_a_page_counts_its_price(world: World) -> None:
    page = world.browser("alice", "acme").get("/tickets/")
    assert captured(_FIGURE, page)
    assert int(page["Content-Length"]) == len(page.content)
