"""A hit leads to the comment in which its words stand, however old that is, and the page of the ticket marks it."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from portal.dynamo import paging
from tenants.tenancy.context import TenantContext
from tests.desk.test_cost import spent
from tests.support.operators import text_of
from tests.support.searching import index_all
from tests.support.world import Browser, World
from tickets.desk import comment_changes, commenting, creating, timelines
from tickets.desk.ticket_presenters import entry_url
from tickets.merging import ticket_merging
from tickets.search import ticket_texts
from tickets.ticket import stored
from tickets.ticket.stored import ActivityItem

GONE = "The entry is no longer here, or you may not read it."


@pytest.fixture(autouse=True)
def pages_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three entries of a ticket are a page."""
    monkeypatch.setattr(timelines, "ACTIVITY_PAGE", 3)
    monkeypatch.setattr(timelines, "_MORE_THAN_A_PAGE", 4)


def ticket(world: World, *comments: str, title: str = "Paper", description: str = "") -> int:
    """Make a ticket with comments, those that begin with "note" as internal notes."""
    alice = world.context("alice", "acme")
    number = creating.create(alice, title=title, description=description)
    for body in comments:
        commenting.comment(alice, number, body=body, internal=body.startswith("note"))
    return number


def way(browser: Browser, words: str) -> str:
    """Return the address to which the only hit of these words leads."""
    page = browser.get(f"/search/?q={words}").content.decode()
    (address,) = re.findall(r'class="row-link" href="([^"]*)"', page)
    return unescape(address)


def marked(page: Any) -> list[str]:
    """Return the texts of the entries that a page marks."""
    found = re.findall(r'<article class="[^"]*" aria-current="true".*?</article>', page.content.decode(), re.S)
    return [text for one in found for text in re.findall(r'<div class="prose"[^>]*>\s*<p>(.*?)</p>', one, re.S)]


def shown(page: Any) -> list[str]:
    return [entry.body for entry in page.context["activity"] if entry.body]


MANY = ("one", "two", "a zebra", "four", "five", "six", "seven", "eight", "nine")


def test_a_hit_in_an_old_comment_leads_to_the_page_of_the_ticket_that_has_it_and_marks_it(world: World) -> None:
    ticket(world, *MANY)
    index_all()
    browser = world.browser("bob")
    assert "Comment by Alice" in text_of(browser.get("/search/?q=zebra"))
    address = way(browser, "zebra")
    page = browser.get(address.partition("#")[0])
    assert (marked(page), shown(page)) == (["a zebra"], ["one", "two", "a zebra", "four", "five", "six"])
    assert f'id="{address.partition("#")[2]}" tabindex="-1"' in page.content.decode()
    later = browser.get(page.context["later_url"].partition("#")[0])
    assert shown(later) == ["four", "five", "six", "seven", "eight", "nine"]
    assert (later.context["later_url"], later.context["latest_url"]) == (None, None)
    assert spent(browser, address.partition("#")[0]).trips == spent(browser, "/tickets/1/").trips


@pytest.mark.parametrize(
    ("words", "leads_to"),
    [
        ("paper", "/tickets/1/"),
        ("description", "/tickets/1/"),
        ("1", "/tickets/1/"),
        ("paper+zebra", "entry"),
        ("zebra", "entry"),
        ("secret", "entry"),
    ],
)
def test_a_hit_leads_to_the_top_where_title_number_or_description_have_the_words(
    world: World, words: str, leads_to: str
) -> None:
    ticket(world, "a zebra on paper, 1", "note secret", description="A description")
    index_all()
    address = way(world.browser("bob", "acme"), words)
    assert leads_to in address if leads_to == "entry" else address.endswith(leads_to)
    assert ("entry=" in address) == (leads_to == "entry")


def test_a_hit_in_a_merged_ticket_leads_to_its_entry_in_the_other_one(world: World) -> None:
    into = ticket(world, *MANY[3:])
    other = ticket(world, "yak", "ten", "eleven", "twelve", "thirteen", title="Cables", description="gnu")
    ticket_merging.merge(world.context("alice", "acme"), other, into=into)
    index_all()
    browser = world.browser("bob")
    for word in ("yak", "gnu"):
        answer = browser.get(way(browser, word).partition("#")[0])
        assert (answer.status_code, "#entry-" in answer["Location"]) == (302, True)
        assert marked(browser.get(answer["Location"].partition("#")[0])) == [word]


def test_an_answer_written_beside_an_old_entry_is_held_up_while_others_have_answered_meanwhile(world: World) -> None:
    number, bob, alice = ticket(world, *MANY), world.browser("bob"), world.context("alice", "acme")
    index_all()
    page = bob.get(way(bob, "zebra").partition("#")[0])
    form = {"body": "Mine.", "request_id": "a" * 32, "seen_at": page.context["seen_at"]}
    assert bob.get(page.context["updates_url"]).status_code == 204
    commenting.comment(alice, number, body="Hers.")
    assert "Hers." in text_of(bob.get(page.context["updates_url"]))
    refused = bob.send(f"/tickets/{number}/comment/", form)
    assert (refused.status_code, "Hers." in text_of(refused), "Mine." in text_of(refused)) == (409, True, True)
    assert shown(bob.get(f"/tickets/{number}/"))[-1] == "Hers."


def test_the_way_to_later_entries_names_one_that_is_shown_also_where_two_say_that_tickets_were_merged(
    world: World,
) -> None:
    alice, browser = world.context("alice", "acme"), world.browser("bob")
    into, other = ticket(world, "one", "two", "three"), ticket(world, title="Cables")
    ticket_merging.merge(alice, other, into=into)
    commenting.comment(alice, into, body="four")
    latest = timelines.ticket(alice, into)
    for entry in timelines.ticket(alice, into, before=latest.earlier).activity + latest.activity:
        page = browser.get(entry_url(into, entry.sk).partition("#")[0])
        is_hidden = timelines.is_other_side(entry, [other])
        assert (page.context["wanted"] is None, GONE in text_of(page)) == (is_hidden, is_hidden)
        if later := page.context["later_url"]:
            assert GONE not in text_of(browser.get(later.partition("#")[0]))


def test_a_page_that_ends_with_the_latest_entry_is_the_latest_whatever_else_its_address_asks_for(world: World) -> None:
    number, browser = ticket(world, *MANY), world.browser("bob")
    latest = browser.get(f"/tickets/{number}/").context
    address = entry_url(number, timelines.ticket(world.context("bob", "acme"), number).activity[-1].sk).partition("#")[
        0
    ]
    cursor = latest["earlier_url"].partition("?")[2]
    page = browser.get(f"{address}&{cursor}")
    assert (shown(page)[-1], page.context["later_url"], page.context["latest_url"]) == ("nine", None, None)


def test_who_may_not_read_a_note_learns_no_more_of_it_by_its_address_than_of_one_that_is_none(world: World) -> None:
    number = ticket(world, "one", "note secret", "three")
    index_all()
    address = way(world.browser("bob"), "secret").partition("#")[0]
    vera = world.browser("vera")
    assert "No tickets match" in text_of(vera.get("/search/?q=secret"))
    pages = [vera.get(one) for one in (address, address + "0")]
    assert [(marked(page), shown(page), GONE in text_of(page)) for page in pages] == [([], ["one", "three"], True)] * 2
    assert all(page.context["later_url"] is None for page in pages)
    for odd in ("x", "2026-11-27T10:00:00.000000Z~a|b", "2026-11-27T10:00:00.000000Z~" + 2000 * "x"):
        page = vera.get(f"/tickets/{number}/", {"entry": odd})
        assert (page.status_code, GONE in text_of(page)) == (200, True)


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_note_costs_who_may_not_read_it_what_nothing_costs_at_its_place(world: World, is_merged: bool) -> None:
    number, alice = ticket(world, "1", "2", "3", "note 4", "5", "note 6", "7", "8", "9"), world.context("alice", "acme")
    notes = [stored.entry_reference(one.sk) for one in history(alice, number) if one.kind == "note"]
    if is_merged:
        into = ticket(world, "one", "two", "three", "four", title="Cables")
        ticket_merging.merge(alice, number, into=into)
        number = into
    vera = world.browser("vera")
    assert len(notes) == 2
    for reference in notes:
        there, nothing = (f"/tickets/{number}/?entry={one}" for one in (reference, reference[:-1]))
        vera.get(there)  # a process learns which tickets were merged
        bills = [spent(vera, address) for address in (there, nothing)]
        counts = [(bill.trips, bill.read_units, sorted(call.operation for call in bill.calls)) for bill in bills]
        assert counts[0] == counts[1]
        assert [shown(page) for page in map(vera.get, (there, nothing))] == [shown(vera.get(f"/tickets/{number}/"))] * 2


def history(tenant: TenantContext, number: int) -> list[ActivityItem]:
    """Return all entries of a ticket, oldest first."""
    page = timelines.ticket(tenant, number)
    found = page.activity
    while page.earlier:
        page = timelines.ticket(tenant, number, before=page.earlier)
        found = [*page.activity, *found]
    return found


@pytest.mark.parametrize("is_merged", [False, True])
def test_who_may_not_read_notes_is_led_to_each_other_entry(world: World, is_merged: bool) -> None:
    number, alice = ticket(world, *MANY, "note 10", description="gnu"), world.context("alice", "acme")
    if is_merged:
        into = ticket(world, "first", "second", title="Cables")
        ticket_merging.merge(alice, number, into=into)
        number = into
    index_all()
    vera = world.browser("vera")
    for words in ("zebra", "one", "eight", *(["gnu"] if is_merged else [])):
        page = vera.get(way(vera, words).partition("#")[0], follow=True)
        assert [text.rpartition(" ")[2] for text in marked(page)] == [words]
        assert GONE not in text_of(page)


def test_the_address_of_a_comment_that_was_deleted_since_shows_that_it_was(world: World) -> None:
    number = ticket(world, "a zebra")
    index_all()
    address, alice = way(world.browser("bob"), "zebra").partition("#")[0], world.context("alice", "acme")
    (comment,) = [one for one in timelines.ticket(alice, number).activity if one.kind == "comment"]
    comment_changes.delete(alice, number, comment.sk)
    page = world.browser("bob").get(address)
    assert re.search(r'aria-current="true".*?Deleted by', page.content.decode(), re.S)
    assert "zebra" not in page.content.decode()


def test_words_of_older_comments_that_were_not_read_lead_to_where_these_begin(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticket_texts, "ENTRIES_READ", 1)
    monkeypatch.setattr(ticket_texts, "FURTHER_ENTRIES", 4)
    ticket(world, *MANY)
    index_all()
    browser = world.browser("bob")
    page = browser.get(way(browser, "zebra").partition("#")[0])
    assert shown(page) == ["two", "a zebra", "four"]


def test_the_way_to_older_comments_names_no_note_to_whoever_may_read_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticket_texts, "ENTRIES_READ", 1)
    monkeypatch.setattr(ticket_texts, "FURTHER_ENTRIES", 2)
    number, acme = ticket(world, "one", "a zebra", "three", "note four", "five", "six"), world.tenants["acme"]
    index_all()
    vera = world.browser("vera")
    address = way(vera, "zebra")
    (cursor,) = parse_qs(urlsplit(address).query)["before"]
    (place,) = paging.load(cursor, tenant_id=acme.tenant_id, query=("activity", number))
    assert [one.body for one in history(world.context("bob", "acme"), number) if one.sk == place] == ["five"]
    assert shown(vera.get(address.partition("#")[0])) == ["one", "a zebra", "three"]


def test_entries_after_a_place_are_shown_once_in_order_however_many_parts_there_are(world: World) -> None:
    alice = world.context("alice", "acme")
    numbers = [ticket(world, title=title) for title in ("Paper", "Cables", "Toner")]
    for n in range(24):
        commenting.comment(alice, numbers[n % 5 % 3], body=str(n))
    for other in numbers[1:]:
        ticket_merging.merge(alice, other, into=numbers[0])
    keys = [entry.sk for entry in history(alice, numbers[0])]
    assert keys == sorted(set(keys))
    for at, key in enumerate(keys):
        page = timelines.ticket(alice, numbers[0], around=key)
        found = [entry.sk for entry in page.activity]
        assert found == keys[keys.index(found[0]) : keys.index(found[-1]) + 1]
        assert key in found
        assert page.later == (found[-1] != keys[-1])
        assert at == 0 or keys[at - 1] in found, stored.entry_reference(key)
        assert at == len(keys) - 1 or keys[at + 1] in found
