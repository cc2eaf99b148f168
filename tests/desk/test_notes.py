"""Internal notes are for agents: nothing that a viewer can open tells that there are any."""

from __future__ import annotations

import re
from random import Random
from urllib.parse import urlencode

import pytest

from portal import clock
from tests.support.world import Browser, World
from tickets.desk import changing, commenting, lists
from tickets.desk.timelines import ACTIVITY_PAGE
from tickets.ticket.fields import Status

SINCE_TODAY = f"{clock.stamp()[:10]}.."  # without an end: midnight may come before a test does
LISTS = (
    "", "status=any", "status=unresolved", "resolver=none", f"status=any&commented={SINCE_TODAY}",
    "status=any&commented=..2099-01-01", f"status=any&created={SINCE_TODAY}",
)  # fmt: skip


@pytest.fixture
def desk(world: World) -> World:
    """Three tickets, the first with a comment, the second with the latest change."""
    world.tickets("acme", 3)
    bob = world.context("bob", "acme")
    commenting.comment(bob, 1, body="for all")
    changing.assign(bob, 2, to=bob.user_id, version=1)
    return world


def note(desk: World, number: int, body: str = "between us") -> None:
    commenting.comment(desk.context("bob", "acme"), number, body=body, internal=True)


def answers(browser: Browser, *addresses: str) -> list[tuple[int, str]]:
    """Status and text of each page, without what is new in every answer."""
    found = [browser.get(address) for address in addresses]
    fresh = re.compile(r'(name="csrfmiddlewaretoken" value|"X-CSRFToken"|nonce|data-live)[=:] ?"[^"]*"|seen=[^"&]*')
    return [(one.status_code, fresh.sub("", one.content.decode())) for one in found]


def test_a_note_changes_nothing_that_a_viewer_can_open(desk: World) -> None:
    vera, seen = desk.browser("vera"), clock.stamp()
    addresses = [f"/tickets/?{query}" for query in LISTS]
    addresses += [f"/tickets/updates/?{query}&{urlencode({'seen': seen})}" for query in LISTS]
    addresses += [
        path for n in (1, 3) for path in (f"/tickets/{n}/", f"/tickets/{n}/updates/?{urlencode({'seen': seen})}")
    ]
    before = answers(vera, *addresses)
    note(desk, 1)
    note(desk, 3)
    assert answers(vera, *addresses) == before
    assert {status for status, _ in before} == {200, 204}


def test_a_comment_changes_what_a_note_does_not(desk: World) -> None:
    vera = desk.browser("vera")
    list_of_today = f"/tickets/?status=any&commented={SINCE_TODAY}"
    assert [row.number for row in vera.get(list_of_today).context["page"]["rows"]] == [1]
    note(desk, 3)
    assert [row.number for row in vera.get(list_of_today).context["page"]["rows"]] == [1]
    commenting.comment(desk.context("bob", "acme"), 3, body="for all")
    assert [row.number for row in vera.get(list_of_today).context["page"]["rows"]] == [3, 1]


def test_a_note_on_a_ticket_that_it_resolves_tells_of_the_status_alone(desk: World) -> None:
    commenting.comment(desk.context("bob", "acme"), 3, body="for us", internal=True, then=Status.RESOLVED)
    (row,) = lists.page(desk.context("vera", "acme"), status=Status.RESOLVED).rows
    assert (row.number, row.commented_at, row.comment_count) == (3, None, 0)


def test_a_long_ticket_shows_a_viewer_full_pages(desk: World) -> None:
    bob, vera = desk.context("bob", "acme"), desk.browser("vera")
    for n in range(ACTIVITY_PAGE + 5):
        commenting.comment(bob, 3, body=f"comment-{n:03}")
        note(desk, 3)
    latest = vera.get("/tickets/3/").context
    earlier = vera.get(latest["earlier_url"]).context
    assert (len(latest["activity"]), len(earlier["activity"])) == (ACTIVITY_PAGE, 6)
    shown = [e.body for page in (earlier, latest) for e in page["activity"] if e.kind == "comment"]
    assert shown == [f"comment-{n:03}" for n in range(ACTIVITY_PAGE + 5)]
    assert earlier["earlier_url"] is None


# --- an agent's lists ---


def queue(browser: Browser, query: str = "status=any") -> list[int]:
    return [row.number for row in browser.get(f"/tickets/?{query}").context["page"]["rows"]]


def test_a_note_moves_the_ticket_up_for_agents_alone(desk: World) -> None:
    alice, vera = desk.browser("alice", "acme"), desk.browser("vera")
    assert queue(alice) == queue(vera) == [2, 1, 3]
    before = {row.number: row.updated_at for row in vera.get("/tickets/?status=any").context["page"]["rows"]}
    note(desk, 3)
    noted = clock.parse(changing.read(desk.context("alice", "acme"), 3).noted_at or "")
    for query in ("status=any", "status=open", "status=unresolved", f"status=any&created={SINCE_TODAY}"):
        assert (queue(alice, query), queue(vera, query)) == ([3, 2, 1], [2, 1, 3]), query
    assert (queue(alice, "resolver=none"), queue(vera, "resolver=none")) == ([3, 1], [1, 3])
    shown = alice.get("/tickets/").context["page"]["rows"][0]
    assert (shown.updated_at, alice.get("/tickets/3/").context["ticket"].updated_at) == (noted, noted)
    assert vera.get("/tickets/3/").context["ticket"].updated_at == before[3]
    note(desk, 1)
    assert (queue(alice), queue(vera)) == ([1, 3, 2], [2, 1, 3])


def test_what_changes_a_ticket_after_a_note_counts_for_all(desk: World) -> None:
    bob, alice, vera = desk.context("bob", "acme"), desk.browser("alice", "acme"), desk.browser("vera")
    note(desk, 3)
    note(desk, 1)
    changing.assign(bob, 3, to=bob.user_id, version=1)
    assert (queue(alice), queue(vera)) == ([3, 1, 2], [3, 2, 1])
    assert queue(alice, f"resolver={bob.user_id}") == queue(vera, f"resolver={bob.user_id}") == [3, 2]
    commenting.comment(bob, 1, body="for us", internal=True, then=Status.PENDING)
    assert queue(alice) == queue(vera) == [1, 3, 2]
    assert "raised_at" not in changing.read(bob, 1).serialize()


def test_an_agents_open_list_learns_of_a_note(desk: World) -> None:
    alice = desk.browser("alice", "acme")
    url = alice.get("/tickets/").context["updates_url"]
    note(desk, 3)
    assert "1 ticket in this list has been updated." in alice.get(url).content.decode()
    assert alice.get(alice.get("/tickets/").context["updates_url"]).status_code == 204


@pytest.mark.parametrize("shards", [1, 3])
def test_pages_of_noted_tickets_show_each_once_in_the_order_of_their_updates(engine: None, shards: int) -> None:
    world = World.create(shards=shards)
    bob, vera = world.context("bob", "acme"), world.context("vera", "acme")
    count, random = 40, Random(7)  # noqa: S311  # the same each time
    expected = world.tickets("acme", count)
    public = expected[::-1]
    for number in [*random.sample(expected, 25), *random.choices(expected, k=10)]:
        commenting.comment(bob, number, body="between us", internal=True)
        expected = [*(n for n in expected if n != number), number]
    for reader, wanted in ((bob, expected[::-1]), (vera, public)):
        for resolver in (None, ""):
            pages = [lists.page(reader, status=Status.OPEN, resolver=resolver, size=6)]
            while after := pages[-1].next:
                pages.append(lists.page(reader, status=Status.OPEN, resolver=resolver, size=6, after=after))
            assert [row.number for page in pages for row in page.rows] == wanted
            assert all(page.rows for page in pages)
            back = pages[-1]
            seen = [row.number for row in back.rows]
            while after := back.previous:
                back = lists.page(reader, status=Status.OPEN, resolver=resolver, size=6, after=after)
                seen = [*(row.number for row in back.rows), *seen]
            assert seen == wanted


def test_a_note_changes_nothing_of_a_ticket_but_what_agents_sort_by(desk: World) -> None:
    alice = desk.context("alice", "acme")
    before = changing.read(alice, 3).serialize()
    note(desk, 3)
    after = changing.read(alice, 3).serialize()
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"noted_at", "raised_at", "resolver_raised"}
