"""Filters of the queue over HTTP: addresses that combine, chips, the form, mixed lists, and what is refused."""

from __future__ import annotations

import re
from datetime import date
from html import unescape
from typing import Any

import pytest

from portal import clock
from portal.web import locales
from portal.web.locales import Locale
from tests.desk.test_tickets import selected, text
from tests.support.world import Browser, World
from tickets.desk import changing, lists, queue_presenters
from tickets.desk.filters import Days
from tickets.ticket import stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import SummaryItem

# Number, status, priority, tags, and what is known of when.
NOV_10, NOV_19 = "2026-11-10", "2026-11-19"
PILE: tuple[tuple[int, Status, Priority, list[str], dict[str, str]], ...] = (
    (1, Status.OPEN, Priority.HIGH, ["billing"], {"created": "2026-11-01", "updated": "2026-11-09"}),
    (2, Status.OPEN, Priority.LOW, ["billing", "fire"], {"created": "2026-11-07", "updated": "2026-11-08"}),
    (3, Status.PENDING, Priority.HIGH, [], {"created": "2026-11-08", "reopened": NOV_10, "updated": NOV_19}),
    (4, Status.RESOLVED, Priority.HIGH, ["billing"], {"created": "2026-10-01", "resolved": "2026-11-20"}),
    (5, Status.CLOSED, Priority.NORMAL, [], {"created": "2026-10-01", "resolved": NOV_19, "updated": "2026-11-21"}),
    (6, Status.OPEN, Priority.NORMAL, [], {"created": "2026-10-02", "commented": "2026-11-18"}),
)  # fmt: skip


def put(world: World, number: int, status: Status, priority: Priority, tags: list[str], days: dict[str, str]) -> None:
    tenant = world.context("alice", "acme")
    at = {name: f"{day}T12:00:00.{number:06}Z" for name, day in days.items()}
    moments = {f"{name}_at": moment for name, moment in at.items() if name != "updated"}
    derived = changing.derived(tenant, number, status=status.value, resolver="", updated_at=max(at.values()))
    item = SummaryItem(
        stored.ticket(tenant.tenant_id, number),
        stored.SUMMARY,
        number=number,
        title=f"Ticket {number}",
        priority=priority.value,
        tags=tags,
        requester_name="Somebody",
        **moments,
        **derived,
    )
    tenant.repository.put_all([item])


@pytest.fixture
def pile(world: World) -> World:
    for ticket in PILE:
        put(world, *ticket)
    return world


@pytest.fixture
def bob(pile: World) -> Browser:
    return pile.browser("bob")


def numbers(response: Any) -> list[int]:
    assert response.status_code == 200
    return [int(n) for n in re.findall(r'href="/[a-z]+/tickets/(\d+)/[^"]*" data-row-link', text(response))]


def labels(response: Any) -> list[str]:
    return [chip["label"] for chip in response.context["chips"]]


# --- what is listed ---


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("status=unresolved", [3, 6, 1, 2]),
        ("status=any", [5, 4, 3, 6, 1, 2]),
        ("status=any&priority=high", [4, 3, 1]),
        ("status=any&tag=billing", [4, 1, 2]),
        ("tag=billing&priority=high", [1]),
        ("created=2026-11-01..2026-11-07", [1, 2]),
        ("created=2026-11-07", [2]),
        ("created=..2026-11-01", [6, 1]),
        ("status=unresolved&created=2026-11-07..", [3, 2]),
        ("status=any&resolved=2026-11-20", [4]),
        ("status=any&resolved=2026-11-19..2026-11-20", [5, 4]),
        ("status=any&reopened=2026-11-10", [3]),
        ("status=any&commented=2026-11-18..", [6]),
        ("status=any&tag=BILLING&priority=high&created=..2026-10-31", [4]),
        ("status=any&resolver=none&tag=fire", [2]),
        ("status=any&resolver=me", []),
        ("priority=&tag=&created=&resolver=", [6, 1, 2]),
        ("colour=red", [6, 1, 2]),
    ],
)
def test_filters_of_the_address_combine(bob: Browser, query: str, wanted: list[int]) -> None:
    assert numbers(bob.get(f"/tickets/?{query}")) == wanted


def test_a_person_is_a_filter_beside_the_others(pile: World) -> None:
    alice = pile.context("alice", "acme")
    for number in (1, 2):
        changing.assign(alice, number, to=alice.user_id, version=1)
    page = pile.browser("bob").get(f"/tickets/?status=any&resolver={alice.user_id}&priority=low&name=Al")
    assert numbers(page) == [2]
    assert [t["label"] for t in page.context["who_tabs"] if t["current"]] == ["Alice Example"]
    nothing = pile.browser("bob").get(f"/tickets/?status=closed&resolver={alice.user_id}&name=Al")
    assert [t["label"] for t in nothing.context["who_tabs"] if t["current"]] == ["Al"]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("status=lost", "There is no such status."),
        ("priority=huge", "There is no such priority."),
        ("tag=a%23b", "which tags cannot have"),
        ("tag=a,b", "one tag at a time"),
        ("tag=%00", "a character that cannot be stored"),
        ("tag=a%01b", "a character that cannot be stored"),
        ("created=yesterday", "“Opened” takes a day as 2026-11-20"),
        ("resolved=2026-11-31", "“Last resolved” takes a day"),
        ("reopened=..", "“Last reopened” takes a day"),
        ("commented=2026-11-07..2026-11-01", "end before they begin"),
        ("created_from=x&created_to=", "“Opened” takes a day"),
        ("resolver=somebody&tag=x", ""),
        ("after=%00", ""),
        ("after=" + "x" * 5000, ""),
    ],
)
def test_a_bad_filter_is_refused_with_a_sentence_that_is_shown(bob: Browser, query: str, says: str) -> None:
    response = bob.get(f"/tickets/?{query}")
    assert response.status_code == 400
    assert says in text(response)
    if says:
        assert bob.get(f"/tickets/people/?{query.replace('created_from', 'created')}").status_code == 400


def test_someone_else_s_tickets_stay_out_of_every_filter(pile: World) -> None:
    browser = pile.browser("charlie")
    for query in (
        "status=any",
        "status=any&tag=billing",
        "status=any&created=2026-01-01..",
        "status=any&resolver=none",
    ):
        assert numbers(browser.get(f"/tickets/?{query}")) == []


def test_a_filtered_list_pages_forwards_and_back_and_its_cursor_fits_no_other(world: World) -> None:
    for number in range(1, 161):
        priority = Priority.HIGH if number % 2 else Priority.LOW
        put(world, number, Status(["open", "pending"][number % 3 == 0]), priority, [], {"created": "2026-11-01"})
    browser = world.browser("bob")
    pages = [browser.get("/tickets/?status=unresolved&priority=high")]
    while url := pages[-1].context["page"]["next_url"]:
        pages.append(browser.get(url))
    assert [n for page in pages for n in numbers(page)] == list(range(159, 0, -2))
    assert [len(numbers(page)) for page in pages] == [49, 31]
    back = browser.get(pages[-1].context["page"]["prev_url"])
    assert numbers(back) == numbers(pages[0])
    assert back.context["page"]["first_url"] == "/acme/tickets/?status=unresolved&priority=high"
    url = pages[0].context["page"]["next_url"]
    for other in (
        url.replace("priority=high", "priority=low"),
        url.replace("priority=high", "tag=billing"),
        url.replace("&priority=high", ""),
        url.replace("unresolved", "any"),
        url.replace("unresolved", "open"),
        url + "&created=2026-11-01",
        url + "&resolver=none",
    ):
        assert browser.get(other).status_code == 400
    assert world.browser("alice", "globex").get(url.replace("/acme/", "/globex/")).status_code == 400


# --- what the page says ---


def test_each_filter_is_a_chip_that_leads_to_the_list_without_it(bob: Browser) -> None:
    page = bob.get("/tickets/?status=any&resolver=none&priority=high&tag=billing&created=2026-11-01..2026-11-07")
    assert [label.removesuffix(" 2026") for label in labels(page)] == [
        "priority: high",
        "tag: billing",
        "opened 1 to 7 Nov",
    ]
    without = [chip["url"] for chip in page.context["chips"]]
    assert without[0] == "/acme/tickets/?status=any&resolver=none&tag=billing&created=2026-11-01..2026-11-07"
    assert without[2] == "/acme/tickets/?status=any&resolver=none&priority=high&tag=billing"
    assert page.context["without_url"] == "/acme/tickets/?status=any&resolver=none"
    assert all(f'href="{url}"'.replace("&", "&amp;") in page.content.decode() for url in without)


def test_a_list_of_last_events_says_that_it_is_one(bob: Browser) -> None:
    page = bob.get("/tickets/?status=any&resolved=2026-11-20")
    assert labels(page)[0].startswith("last resolved on 20 Nov")
    assert "Each ticket is listed by the last day it was resolved, in UTC" in text(page)
    assert "Only tickets last resolved on 20 Nov" in page.context["chips"][0]["title"]
    assert "listed by the last day" not in text(bob.get("/tickets/?created=2026-11-07"))


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2026-11-20", "2026-11-20", "on 20 Nov"),
        ("2026-11-01", "2026-11-07", "1 to 7 Nov"),
        ("2026-10-28", "2026-11-03", "28 Oct to 3 Nov"),
        ("2025-11-01", "2025-11-07", "1 to 7 Nov 2025"),
        ("2025-10-28", "2025-11-03", "28 Oct to 3 Nov 2025"),
        ("2025-12-28", "2026-01-03", "28 Dec 2025 to 3 Jan"),
        ("", "2026-11-20", "up to 20 Nov"),
        ("2025-11-01", "", "from 1 Nov 2025"),
    ],
)
def test_days_are_said_as_a_person_says_them(first: str, last: str, words: str) -> None:
    assert queue_presenters.in_words(Days(first, last), clock.parse("2026-11-21T00:00:00Z").date()) == words


def test_days_are_written_in_the_form_of_the_reader() -> None:
    with locales.shown_in(Locale(date_form="dots")):
        said = queue_presenters.in_words(Days("2026-11-01", "2026-11-07"), date(2026, 11, 21))
    assert said == "01.11. to 07.11."


def test_tabs_keep_the_filters(bob: Browser) -> None:
    page = bob.get("/tickets/?status=unresolved&resolver=none&tag=billing")
    tabs = {tab["value"]: tab["url"] for tab in page.context["status_tabs"]}
    assert list(tabs) == ["open", "pending", "resolved", "closed", "unresolved", "any"]
    assert tabs["closed"] == "/acme/tickets/?status=closed&resolver=none&tag=billing"
    assert [t["url"] for t in page.context["who_tabs"]][1] == "/acme/tickets/?status=unresolved&resolver=me&tag=billing"
    people = bob.get(page.context["people_url"])
    link = re.search(r'href="([^"]+name=Bob[^"]*)"', text(people))
    assert link is not None
    assert numbers(bob.get(link[1])) == []
    assert bob.get(link[1]).context["tag_url"].startswith("/acme/tickets/?status=unresolved&resolver=")


def test_a_tag_in_a_row_leads_to_the_tickets_that_have_it(pile: World) -> None:
    put(pile, 7, Status.OPEN, Priority.LOW, ["c++&co"], {"created": "2026-11-02"})
    browser = pile.browser("bob")
    page = browser.get("/tickets/?priority=low&tag=fire")
    link = re.search(r'class="tag" href="([^"]+)"[^>]*>billing<', page.content.decode())
    assert link is not None
    assert unescape(link[1]) == "/acme/tickets/?status=open&priority=low&tag=billing"
    odd = re.search(r'class="tag" href="([^"]+)"[^>]*>c\+\+', browser.get("/tickets/").content.decode())
    assert odd is not None
    assert numbers(browser.get(unescape(odd[1]))) == [7]


def test_a_list_of_several_statuses_says_each_ticket_s_own(bob: Browser) -> None:
    for query, shown in (("status=any", 6), ("status=unresolved&tag=billing", 2), ("status=open", 0)):
        page = text(bob.get(f"/tickets/?{query}"))
        assert page.count('<td class="cell-status"') == shown
        assert (">Status</th>" in page) == bool(shown)


# --- nothing, and not yet ---


def test_an_empty_list_names_each_filter_that_can_be_dropped(bob: Browser) -> None:
    page = bob.get("/tickets/?status=closed&priority=high&tag=billing")
    assert numbers(page) == []
    ways = {action["label"]: action["url"] for action in page.context["empty"]["actions"]}
    assert ways == {
        "Remove “priority: high”": "/acme/tickets/?status=closed&tag=billing",
        "Remove “tag: billing”": "/acme/tickets/?status=closed&priority=high",
        "Search in any status": "/acme/tickets/?status=any&priority=high&tag=billing",
    }
    assert all(label in text(page) for label in ways)


def test_an_impossible_list_says_why_it_is_empty(bob: Browser) -> None:
    assert "Open tickets are not resolved." in text(bob.get("/tickets/?resolved=2026-11-20"))


def test_a_page_that_stopped_reading_says_how_far_it_came_and_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "READ_LIMIT", 60)
    for number in range(1, 131):
        tags = ["rare"] if number in (5, 100) else []
        put(world, number, Status.OPEN, Priority.LOW, tags, {"created": "2026-11-01"})
    browser = world.browser("bob")
    first = browser.get("/tickets/?tag=rare")
    assert numbers(first) == [100]
    assert "1 of the 59 tickets searched so far matches." in text(first)
    second = browser.get(first.context["page"]["next_url"])
    assert numbers(second) == []
    assert "No match among the latest 59 tickets" in text(second)
    (way,) = second.context["empty"]["actions"]
    third = browser.get(way["url"])
    assert numbers(third) == [5]
    assert "Read " not in text(third)
    assert third.context["page"]["next_url"] is None
    assert numbers(browser.get(third.context["page"]["prev_url"])) == []


# --- the form ---


def test_the_form_of_filters_leads_to_a_short_address(bob: Browser) -> None:
    sent = "/tickets/?resolver=none&status=any&priority=&tag=Billing&created_from=2026-11-01&created_to="
    response = bob.get(sent, follow=True)
    wanted = "/acme/tickets/?status=any&resolver=none&tag=billing&created=2026-11-01.."
    assert response.redirect_chain == [(wanted, 302)]
    assert numbers(response) == [1, 2]
    page = text(response)
    for shown in ('value="billing"', 'name="created_from" value="2026-11-01"', '<option value="any" selected>'):
        assert shown in page


def test_the_form_sends_along_what_it_does_not_show(bob: Browser) -> None:
    form = bob.get("/tickets/?status=any&resolver=none&resolved=2026-11-20&tag=x").context["filter_form"]
    assert dict(form["hidden"]) == {"resolver": "none", "resolved": "2026-11-20"}


# --- changing many on a mixed list ---


def test_a_mixed_selection_moves_to_what_all_of_it_can_become(pile: World, bob: Browser) -> None:
    address = "/acme/tickets/?status=unresolved&created=2026-11-01.."
    page = bob.get(address)
    assert [t["value"] for t in page.context["bulk_targets"]] == ["open", "pending", "resolved", "closed"]
    assert f'name="back" value="{address}"' in text(page)
    response = bob.send("/tickets/bulk/", {"tickets": selected(page), "to": "resolved", "back": address}, follow=True)
    assert response.request["QUERY_STRING"] == address.partition("?")[2]
    assert sorted(numbers(bob.get("/tickets/?status=resolved"))) == [1, 2, 3, 4]


def test_a_mixed_selection_is_refused_for_what_some_of_it_cannot_become(bob: Browser) -> None:
    chosen = selected(bob.get("/tickets/?status=any"))
    response = bob.send("/tickets/bulk/", {"tickets": chosen, "to": "pending"})
    assert response.status_code == 409
    page = text(response)
    assert "is resolved and cannot become pending" in page
    assert "is closed and cannot become pending" in page
    assert "is already pending" in page
    assert len(selected(response)) == 3


def test_only_what_some_row_can_become_is_offered(bob: Browser) -> None:
    for query, offered in (
        ("status=any&resolved=2026-11-19", ["open"]),
        ("status=any&resolved=2026-11-19..", ["open", "closed"]),
        ("status=open", ["pending", "resolved", "closed"]),
    ):
        targets = bob.get(f"/tickets/?{query}").context["bulk_targets"]
        assert [t["value"] for t in targets] == offered


# --- orders, columns and density ---


def listed_numbers(page: Any) -> list[int]:
    return [int(n) for n in re.findall(r'href="/acme/tickets/(\d+)/[^"]*" data-row-link', page.content.decode())]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("", [5, 4, 3, 6, 1, 2]),
        ("-updated", [5, 4, 3, 6, 1, 2]),
        ("updated", [2, 1, 6, 3, 4, 5]),
        ("created", [4, 5, 6, 1, 2, 3]),
        ("-created", [3, 2, 1, 6, 5, 4]),
        ("-priority", [4, 1, 3, 5, 6, 2]),
        ("priority", [2, 6, 5, 3, 1, 4]),
        ("requester", [4, 5, 6, 1, 2, 3]),
    ],
)
def test_the_queue_is_in_the_order_that_its_address_asks_for(bob: Browser, sort: str, expected: list[int]) -> None:
    page = bob.get(f"/acme/tickets/?status=any&sort={sort}")
    assert listed_numbers(page) == expected


def test_the_order_stays_while_one_filters_and_turns_pages(bob: Browser) -> None:
    page = bob.get("/acme/tickets/?status=any&sort=created").content.decode()
    for name in ("status-open", "who-2", "sort-by-priority"):
        (url,) = re.findall(rf'id="{name}" href="([^"]*)"', page)
        assert ("sort=created" in url) == (name != "sort-by-priority")
    assert 'aria-sort="ascending"' in page
    assert 'name="sort" value="created"' in page  # of the form of filters


def test_an_order_that_does_not_exist_is_refused_with_the_way_on(bob: Browser) -> None:
    page = bob.get("/acme/tickets/?sort=mood")
    assert page.status_code == 400
    assert "There is no such order of tickets." in text(page)


def test_a_browser_keeps_which_columns_and_how_dense(bob: Browser) -> None:
    before = bob.get("/acme/tickets/").content.decode()
    assert "cell-created" not in before
    back = "/acme/tickets/?status=any"
    chosen = bob.send(
        "/acme/tickets/display/", {"column": ["created", "priority", "bad"], "density": "compact", "back": back}
    )
    assert (chosen.status_code, chosen["Location"]) == (302, back)
    page = bob.get(back).content.decode()
    (classes,) = re.findall(r'<table class="([^"]*)"', page)
    assert {"compact", "without-channel", "without-updated", "without-tags"} <= {*classes.split()}
    assert not {"without-priority", "without-created"} & {*classes.split()}
    assert page.count('<td class="cell-created"') == len(PILE)


def test_the_column_of_the_order_is_shown_whatever_was_chosen(bob: Browser) -> None:
    bob.send("/acme/tickets/display/", {"density": "comfortable"})
    page = bob.get("/acme/tickets/?status=any&sort=created").content.decode()
    (classes,) = re.findall(r'<table class="([^"]*)"', page)
    assert "without-created" not in classes
    assert "without-updated" in classes
    assert page.count('<td class="cell-created"') == len(PILE)
