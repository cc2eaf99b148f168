"""The page of results: its state is in its address, and each thing that can happen has its sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from portal import clock
from portal.streams import watermark
from tests.support.operators import text_of
from tests.support.searching import index_all
from tests.support.world import Browser, World
from tickets.desk import creating
from tickets.desk.filters import Days, TicketFilter
from tickets.search import ticket_search
from tickets.search.results import Found, Hit, Piece, Where
from tickets.search.search_query import Filters
from tickets.ticket import stored
from tickets.ticket.fields import UNRESOLVED, Priority, Status
from tickets.ticket.stored import TICKETS, SummaryItem

Answer = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def bob(world: World) -> Browser:
    world.tickets("acme", 2)
    return world.browser("bob")


@pytest.fixture
def finds(world: World, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """`finds(found)`: what a search finds from now on, in a list that is told how each was asked for."""

    def answer(
        *hits: Hit,
        further: str = "",
        explanations: tuple[str, ...] = (),
        about: int | None = None,
        nearly: tuple[Hit, ...] = (),
        **counts: Any,
    ) -> list[dict[str, Any]]:
        asked: list[dict[str, Any]] = []

        def find(tenant: object, text: str, **options: Any) -> Found:
            asked.append({"text": text, **options})
            return Found(hits, further, explanations, about, nearly, **counts)

        monkeypatch.setattr(ticket_search, "find", find)
        return asked

    return answer


def hit(world: World, number: int, title: str, snippet: str = "", where: Where = Where.COMMENT) -> Hit:
    """A ticket of Acme's; what stands between asterisks in a text was sought."""
    summary = world.context("bob", "acme").repository.get(SummaryItem, stored.ticket, number, sort=stored.SUMMARY)
    assert summary is not None
    return Hit(summary, _pieces(title), _pieces(snippet), where)


def _pieces(text: str) -> tuple[Piece, ...]:
    return tuple(Piece(part, n % 2 == 1) for n, part in enumerate(text.split("*")) if part)


def links(page: Any) -> dict[str, str]:
    """Where the links of a page lead, by their text."""
    found = re.findall(r'<a [^>]*href="([^"]*)"[^>]*>(.*?)</a>', page.content.decode(), re.DOTALL)
    return {" ".join(re.sub(r"<[^>]+>", " ", text).split()): unescape(url) for url, text in found}


# --- what is found ---


def test_a_hit_is_a_row_with_its_words_marked_and_says_where_they_stand(
    world: World, bob: Browser, finds: Answer
) -> None:
    finds(
        hit(world, 2, "The *printer* again", "it is the *printer* <b>of</b> the hall", Where.NOTE),
        nearly=(hit(world, 1, "Ticket 1", "", Where.TITLE),),
    )
    page = bob.get("/search/", {"q": '"paper jam" printer'})
    html, text = page.content.decode(), text_of(page)
    assert 'data-row-link dir="auto">The <mark>printer</mark> again</a>' in html
    assert '<span dir="auto">it is the <mark>printer</mark> &lt;b&gt;of&lt;/b&gt; the hall</span>' in html
    assert "Internal note: it is the printer" in text
    assert "1 ticket found" in text
    assert text.index("The printer again") < text.index("With some of the words") < text.rindex("Ticket 1")
    assert links(page)["The printer again"] == "/acme/tickets/2/"
    assert 'name="q" value="&#34;paper jam&#34; printer"' in html


def test_more_is_found_by_a_link_that_keeps_the_query_and_leads_back(world: World, bob: Browser, finds: Answer) -> None:
    left_out = ("“the” stands nearly everywhere.",)
    asked = finds(hit(world, 1, "Ticket *1*"), further="more", about=1240, is_counted=True, explanations=left_out)
    page = bob.get("/search/?q=ticket&order=newest&status=open")
    assert "1 of about 1,240 tickets" in text_of(page)
    assert left_out[0] in text_of(page)
    further = bob.get(links(page)["Search further"])
    assert [a["further"] for a in asked] == ["", "more"]
    assert asked[1] | {"further": ""} == asked[0]
    assert links(further)["Back to the first results"] == "/acme/search/?q=ticket&order=newest&status=open"


@pytest.mark.parametrize(
    ("hits", "counts", "says"),
    [
        (1, {"further": "more", "about": 53, "rest": 23}, "1 ticket so far; 23 more may match"),
        (0, {"further": "more", "rest": 1377}, "No match among the tickets looked at so far 1,377 more may match."),
        (0, {}, "No tickets match “zebra”."),
    ],
)
def test_the_page_says_how_many_were_found_and_how_many_may_be(
    world: World, bob: Browser, finds: Answer, hits: int, counts: dict[str, Any], says: str
) -> None:
    finds(*[hit(world, 1, "Ticket *1*")] * hits, **counts)
    page = bob.get("/search/?q=zebra")
    assert says in text_of(page)
    assert ("Search further" in links(page)) == ("further" in counts)
    assert "53" not in text_of(page)


# --- the state in the address ---


def test_the_address_says_order_and_filters(world: World, bob: Browser, finds: Answer) -> None:
    asked = finds(hit(world, 1, "Ticket *1*"))
    page = bob.get("/search/?q=x")
    assert links(page)["Highest number first"] == "/acme/search/?q=x&order=newest"
    bob.get("/search/?q=x&order=newest&status=unresolved&resolver=me&priority=high&tag=billing&created=2026-01-01..")
    assert [a["newest_first"] for a in asked] == [False, True]
    mine = world.users["bob"].id
    only = TicketFilter(priority=Priority.HIGH, tag="billing", created=Days("2026-01-01", ""))
    assert [a["within"] for a in asked] == [None, Filters(UNRESOLVED, mine, only)]


@pytest.mark.parametrize(
    ("label", "gone"),
    [
        ("Remove “tag: any”", "tag"),
        ("Remove “priority: high”", "priority"),
        ("Search in any status", "status"),
        ("Search everyone’s tickets", "resolver"),
    ],
)
def test_each_filter_can_be_taken_off_and_the_text_stays(bob: Browser, finds: Answer, label: str, gone: str) -> None:
    finds()
    asked = {"q": "any", "status": "open", "resolver": "me", "tag": "any", "priority": "high"}
    left = parse_qs(urlsplit(links(bob.get("/search/", asked))[label]).query)
    assert left == {name: [value] for name, value in asked.items() if name != gone}


def test_the_box_sends_the_filters_of_the_page_along_and_knows_where_its_list_is(bob: Browser, finds: Answer) -> None:
    finds()
    html = bob.get("/search/?q=x&order=newest&status=open&tag=billing").content.decode()
    kept = re.findall(r'<input type="hidden" form="search-form" name="(\w+)" value="(\w+)">', html)
    assert kept == [("order", "newest"), ("status", "open"), ("tag", "billing")]
    (scope,) = re.findall(r'<a href="([^"]*)" data-search-scope hidden>', html)
    assert unescape(scope) == "/acme/search/?order=newest&status=open&tag=billing"
    assert "data-search-scope hidden" not in bob.get("/search/?q=x&order=newest").content.decode()


def test_the_form_of_filters_leads_to_the_address_that_it_means(bob: Browser) -> None:
    days = {"created_from": "2026-03-01", "created_to": "2026-02-01"}
    answer = bob.get("/search/", {"q": "x", "order": "newest", "status": "any", "tag": "", **days})
    assert answer["Location"] == "/acme/search/?q=x&order=newest&created=2026-02-01..2026-03-01"


def test_the_queue_leads_to_a_search_in_its_list(world: World, bob: Browser, finds: Answer) -> None:
    asked = finds()
    assert links(bob.get("/tickets/"))["Search in this list"] == "/acme/search/?status=open"
    queue = bob.get("/tickets/?status=pending&resolver=me&tag=billing")
    scope = links(queue)["Search in this list"]
    assert parse_qs(urlsplit(scope).query) == {"status": ["pending"], "resolver": ["me"], "tag": ["billing"]}
    assert "Search in this list" in text_of(bob.get(scope))
    assert asked == []
    bob.get(f"{scope}&q=x")
    assert asked[0]["within"] == Filters((Status.PENDING,), world.users["bob"].id, TicketFilter(tag="billing"))


# --- nothing, and why ---


def test_without_a_text_the_page_says_how_to_search(world: World, bob: Browser, finds: Answer) -> None:
    asked = finds()
    page = bob.get("/search/?q=+")
    assert "Type what you are looking for" in text_of(page)
    assert "How to search" in text_of(page)
    assert 'id="search-box"' in page.content.decode()
    assert " autofocus>" in page.content.decode()
    assert "internal notes" in text_of(page)
    assert "internal note" not in text_of(world.browser("vera").get("/search/"))
    assert asked == []


def test_where_no_ticket_has_all_words_the_page_says_so_and_help_makes_room(
    world: World, bob: Browser, finds: Answer
) -> None:
    finds(nearly=(hit(world, 1, "The *printer*"),))
    page = bob.get("/search/?q=printer+zebra")
    assert "No tickets match all of “printer zebra”. Those below have some of the words." in text_of(page)
    assert '<details class="disclosure search-help">' in page.content.decode()


def test_a_desk_of_before_that_was_never_indexed_says_so(bob: Browser) -> None:
    text = text_of(bob.get("/search/?q=zebra"))
    assert "This desk cannot be searched yet" in text
    assert ticket_search.NOTHING_INDEXED not in text  # once is enough


def test_what_cannot_be_searched_for_is_explained_and_kept(bob: Browser) -> None:
    page = bob.get("/search/?q=tag:&status=open")
    assert page.status_code == 400
    assert "Write behind tag: a tag." in text_of(page)
    assert 'name="q" value="tag:"' in page.content.decode()
    assert 'name="status" value="open"' in page.content.decode()


@pytest.mark.parametrize(
    ("text", "here", "queue"),
    [
        ("status:open", "", "status=open"),
        ("status:open,pending", "", "status=unresolved"),
        ("assignee:me priority:high", "", "status=any&resolver=me&priority=high"),
        ("assignee:nobody", "status=pending&tag=billing", "status=pending&resolver=none&tag=billing"),
        ("after:2026 before:2026-02", "", "status=any&created=2026-01-01..2026-01-31"),
        ("status:open,closed", "", None),
        ("assignee:carol", "", None),
    ],
)
def test_filters_alone_lead_to_the_queue_where_it_has_them(bob: Browser, text: str, here: str, queue: str) -> None:
    page = bob.get(f"/search/?q={text}&{here}")
    assert "Add a word to search for" in text_of(page)
    way = links(page).get("Show these tickets in the queue")
    assert (way and parse_qs(urlsplit(way).query)) == (queue and parse_qs(queue))
    assert way is None or bob.get(way).status_code == 200


@pytest.mark.parametrize(
    ("asked", "way", "leads_to"),
    [
        *((f"&{one}", "Search without this filter", "") for one in ("created=yesterday", "status=lost", "tag=a,b")),
        ("&priority=some", "Search without this filter", ""),
        ("&after=forged", "Back to the first results", ""),
        ("&order=newest&after=forged", "Back to the first results", "&order=newest"),
    ],
)
def test_a_filter_or_cursor_that_means_nothing_is_refused_with_the_way_back(
    bob: Browser, asked: str, way: str, leads_to: str
) -> None:
    page = bob.get(f"/search/?q=ticket{asked}")
    assert page.status_code == 400
    assert links(page)[way] == f"/acme/search/?q=ticket{leads_to}"


# --- how fresh ---


@pytest.mark.parametrize(
    ("minutes", "written", "says"),
    [(0, 0, ""), (5, 0, "Search is 5 minutes behind"), (5, 5, "Search takes in no changes at the moment")],
)
def test_the_page_says_where_the_index_is_behind(
    world: World, bob: Browser, finds: Answer, monkeypatch: pytest.MonkeyPatch, minutes: int, written: int, says: str
) -> None:
    finds(hit(world, 1, "Ticket *1*"))
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now - timedelta(minutes=written))
    as_of = now - timedelta(minutes=minutes)
    watermark.write(TICKETS, clock.stamp(as_of))
    monkeypatch.setattr(clock, "now", lambda: now)
    text = text_of(bob.get("/search/?q=ticket"))
    assert says in text if says else "Search is" not in text and "takes in no" not in text


# --- the box ---


def test_every_page_of_a_desk_has_the_box_and_no_other_has(world: World, bob: Browser) -> None:
    for path in ("/tickets/", "/tickets/1/", "/tickets/new/", "/account/", "/tenants/"):
        assert 'id="search-form"' in bob.get(path).content.decode()
    nobody = Browser()
    assert 'id="search-form"' not in nobody.get("/login/").content.decode()


def test_an_address_without_the_desks_name_leads_to_the_pinned_desks(world: World) -> None:
    client = world.browser("bob")
    answer = super(Browser, client).generic("GET", "/search/", QUERY_STRING="q=printer")
    assert answer["Location"] == "/acme/search/?q=printer"


def test_a_text_of_ten_thousand_characters_is_answered_and_makes_no_page_of_many_times_its_size(bob: Browser) -> None:
    page = bob.get("/search/", {"q": "printer " * 1_250})
    assert page.status_code == 200
    assert "Only the first 2,000 characters were searched for." in text_of(page)
    assert len(page.content) < 100_000


# --- what was meant ---


def test_a_page_without_hits_asks_whether_a_near_word_was_meant(world: World) -> None:
    creating.create(world.context("alice", "acme"), title="Certificate expired")
    index_all()
    page = world.browser("bob").get("/search/?q=certifcate")
    assert links(page)["certificate"] == "/acme/search/?q=certificate"
    assert "Did you mean" not in text_of(world.browser("bob").get("/search/?q=certificate"))
    assert "Did you mean" not in text_of(world.browser("bob").get("/search/?q=xyzzy"))
    # Nor in a list that the better word finds nothing in.
    assert "Did you mean" not in text_of(world.browser("bob").get("/search/?q=certifcate&status=closed"))


@pytest.mark.parametrize(
    ("asked", "leads_to"),
    [
        ("q=printer+status:closed&status=open", "q=printer+status%3Aclosed&status=closed"),
        ("q=printer+status:closed&status=unresolved&tag=vip", "q=printer+status%3Aclosed&status=closed&tag=vip"),
        ("q=printer+assignee:none&resolver=me", "q=printer+assignee%3Anone&resolver=none"),
        ("q=status:open&status=closed", "q=status%3Aopen&status=open"),
        ("q=printer+status:open&status=unresolved", None),
        ("q=printer+status:open", None),
        ("q=printer&status=open&resolver=me", None),
    ],
)
def test_a_filter_that_contradicts_the_tab_takes_the_tab_along(
    bob: Browser, finds: Answer, asked: str, leads_to: str | None
) -> None:
    finds()
    response = bob.get(f"/search/?{asked}")
    if leads_to is None:
        assert response.status_code == 200
    else:
        assert (response.status_code, response["Location"]) == (302, f"/acme/search/?{leads_to}")
