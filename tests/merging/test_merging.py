"""A ticket is merged into another one and is one of its own again: what pages, lists, numbers, mail and the API say."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.dynamo import meter
from portal.errors import Conflict
from portal.objects import object_store
from tenants.tenancy.context import TenantContext
from tests.desk.test_cost import spent
from tests.requester_pages.conftest import Guest
from tests.support import letters_in, searching
from tests.support.api_client import api_client
from tests.support.folding import Follower, kept_counts, numbers, recounted
from tests.support.kills import Killed, killed_at
from tests.support.world import Browser, World
from tickets.attachments import attachments, downloads
from tickets.desk import changing, commenting, creating, lists, timelines
from tickets.desk.changing import Wishes
from tickets.merging import ticket_merging
from tickets.replies import mail_settings, reply_addresses, ticket_links
from tickets.requesters import requesters
from tickets.requesters.requesters import Requester
from tickets.ticket.fields import Channel, Priority, Status
from tickets.ticket.set_aside import SetAside
from tickets.ticket.stored import SummaryItem

ADA = "ada@example.org"


@pytest.fixture
def browser(world: World) -> Browser:
    return world.browser("bob", "acme")


@pytest.fixture
def ada(bob: TenantContext) -> Requester:
    return requesters.ensure(bob, ADA, name="Ada Lovelace")


@pytest.fixture
def two(bob: TenantContext, ada: Requester) -> None:
    """Ticket 1 and ticket 2, both Ada's, with a comment each."""
    for number, title in ((1, "The engine stops"), (2, "It still stops")):
        creating.create(bob, title=title, description=f"Words of {number}.", requester=ada, channel=Channel.MAIL)
        commenting.comment(bob, number, body=f"Answer to {number}.")


def said(tenant: TenantContext, number: int) -> list[str]:
    return [entry.body for entry in timelines.ticket(tenant, number).activity if entry.kind == "comment"]


def in_lists(tenant: TenantContext) -> set[int]:
    return {int(row.number) for row in lists.page(tenant, status=tuple(Status)).rows}


def stored(tenant: TenantContext, number: int) -> dict[str, Any]:
    """A summary but for what each change moves on."""
    values = changing.read(tenant, number).serialize()
    return {name: value for name, value in values.items() if name not in ("version", "updated_at", "resolver_updated")}


# --- pages ---


@pytest.mark.usefixtures("two")
def test_an_agent_sees_both_tickets_merges_them_and_takes_it_back(world: World, browser: Browser) -> None:
    assert "/tickets/2/merge/" in browser.get("/tickets/2/").content.decode()
    offered = browser.get("/tickets/2/merge/").content.decode()
    assert "?into=1" in offered, "the requester's other tickets are offered"
    preview = browser.get("/tickets/2/merge/?into=%231").content.decode()
    for shown in ("The engine stops", "It still stops", "Words of 1.", "Words of 2.", "Merge #2 into #1"):
        assert shown in preview
    answer = browser.send("/tickets/2/merge/", {"into": "1", "confirmed": "1"})
    assert answer["Location"].endswith("/tickets/1/")
    page = browser.get("/tickets/1/").content.decode()
    order = [page.index(text) for text in ("Words of 1.", "Answer to 1.", "Words of 2.", "Answer to 2.")]
    assert order == sorted(order)
    assert "From #2" in page
    assert "merged <ins>#2</ins> into this ticket" in page
    redirected = browser.get("/tickets/2/", follow=True)
    assert redirected.redirect_chain[-1][0].endswith("/tickets/1/")
    assert "Ticket #2 was merged into this one." in redirected.content.decode()
    browser.send("/tickets/2/separate/")
    assert "Words of 2." not in browser.get("/tickets/1/").content.decode()
    assert "took this ticket out of <del>#1</del> again" in browser.get("/tickets/2/").content.decode()


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("into", "sentence"),
    [
        ("", "Enter the number of a ticket."),
        ("one", "Enter a number, such as 12."),
        ("-1", "Enter a number, such as 12."),
        ("2", "A ticket cannot be merged into itself."),
        ("99", "There is no ticket 99."),
        ("3", "one would read what you write to the other"),
    ],
)
def test_what_cannot_be_merged_is_refused_at_its_field(
    bob: TenantContext, browser: Browser, into: str, sentence: str
) -> None:
    grace = requesters.ensure(bob, "grace@example.org", name="Grace Hopper")
    creating.create(bob, title="Another engine", requester=grace)
    answer = browser.get(f"/tickets/2/merge/?into={into}")
    assert (answer.status_code, sentence in answer.content.decode()) == (422, True)
    assert browser.send("/tickets/2/merge/", {"into": into, "confirmed": into}).status_code == 422
    assert in_lists(bob) == {1, 2, 3}


def test_viewers_read_merged_comments_without_the_notes_and_merge_nothing(world: World, bob: TenantContext) -> None:
    world.tickets("acme", 2)
    commenting.comment(bob, 2, body="Aloud.")
    commenting.comment(bob, 2, body="Between us.", internal=True)
    vera = world.browser("vera", "acme")
    assert vera.send("/tickets/2/merge/", {"into": "1", "confirmed": "1"}).status_code == 403
    ticket_merging.merge(bob, 2, into=1)
    page = vera.get("/tickets/1/").content.decode()
    assert ("Aloud." in page, "Between us." in page, "/separate/" in page) == (True, False, False)
    assert vera.send("/tickets/2/separate/").status_code == 403


@pytest.mark.usefixtures("two")
def test_what_was_written_for_a_ticket_that_is_merged_meanwhile_is_kept_for_the_other_one(
    bob: TenantContext, browser: Browser
) -> None:
    ticket_merging.merge(bob, 2, into=1)
    answer = browser.send("/tickets/2/comment/", {"body": "Long thought.", "request_id": "a" * 32})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Long thought." in page
    assert "/tickets/1/comment/" in page
    assert "was merged into ticket 1" in page
    with pytest.raises(SetAside):
        changing.change(bob, 2, Wishes(priority=Priority.HIGH))
    answer = browser.send("/tickets/2/change/", {"priority": "high", "version": 2})
    assert answer["Location"].endswith("/tickets/2/")
    assert "Nothing was changed." in browser.get("/tickets/2/", follow=True).content.decode()


@pytest.mark.parametrize("most", [1000, 10])
def test_a_long_merged_history_is_paged_in_its_order(
    bob: TenantContext, world: World, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    read = timelines._collection

    def cut(tenant: TenantContext, number: int, limit: int, **how: Any) -> Any:
        """As a Query of long comments, which ends after a megabyte."""
        return read(tenant, number, min(limit, most) if number == 2 else limit, **how)

    monkeypatch.setattr(timelines, "_collection", cut)
    world.tickets("acme", 2)
    for n in range(140):
        commenting.comment(bob, 1 + n % 2, body=f"c{n}")
    ticket_merging.merge(bob, 2, into=1)
    found, cursor = list[str](), None
    while True:
        page = timelines.ticket(bob, 1, before=cursor)
        found = [entry.body for entry in page.activity if entry.kind == "comment"] + found
        cursor = page.earlier
        if cursor is None:
            break
    assert [body for body in found if body.startswith("c")] == [f"c{n}" for n in range(140)]
    assert found.count("It *broke*.") == 1, "the description of ticket 2 opens its part once"


# --- mail, files, search ---


@pytest.mark.usefixtures("two")
def test_letters_and_links_of_a_merged_ticket_lead_to_the_other_one(
    world: World, bob: TenantContext, ada: Requester
) -> None:
    settings = mail_settings.read(bob)
    link = ticket_links.ticket_link(bob, changing.read(bob, 2), ada, settings)
    to = reply_addresses.address_of(bob.tenant_id, 2, ada.id, is_agent=False)
    ticket_merging.merge(bob, 2, into=1)
    guest = Guest(link.token)
    page = guest.text()
    order = [page.index(text) for text in ("Words of 1.", "Answer to 1.", "Words of 2.", "Answer to 2.")]
    assert order == sorted(order)
    guest.send("answer", body="By the page.", request_id="b" * 32)
    with letters_in.mail():
        letters_in.come_in(letters_in.letter(sender=f"Ada <{ADA}>", body="By mail."), to, sender=ADA)
        (row,) = letters_in.rows(world)
    assert int(row.number) == 1
    assert said(bob, 1)[-2:] == ["By the page.", "By mail."]
    ticket_merging.separate(bob, 2)
    assert said(bob, 1)[-2:] == ["By the page.", "By mail."], "what came to the ticket that stays, stays"
    assert said(bob, 2) == ["Answer to 2."]
    assert "Words of 2." in guest.text()


@pytest.mark.usefixtures("two")
def test_a_link_shows_nothing_of_a_ticket_that_became_somebody_elses(bob: TenantContext, ada: Requester) -> None:
    link = ticket_links.ticket_link(bob, changing.read(bob, 2), ada, mail_settings.read(bob))
    ticket_merging.merge(bob, 2, into=1)
    grace = requesters.ensure(bob, "grace@example.org", name="Grace Hopper")
    changing.change(bob, 1, Wishes(requester=grace))
    assert Guest(link.token).get().status_code == 404


@pytest.mark.usefixtures("two")
def test_files_of_a_merged_ticket_are_had_from_both_pages(bob: TenantContext, ada: Requester) -> None:
    object_store.create_bucket()
    file = attachments.store(bob, "plan.txt", b"a plan")
    commenting.comment(bob, 2, body="See the plan.", files=[file])
    link = ticket_links.ticket_link(bob, changing.read(bob, 2), ada, mail_settings.read(bob))
    ticket_merging.merge(bob, 2, into=1)
    assert [one.name for one in downloads.files_of(bob, 1)] == ["plan.txt"]
    (line,) = [one for entry in timelines.ticket(bob, 1).activity for one in entry.files or ()]
    guest = Guest(link.token)
    assert "plan.txt" in guest.text()
    assert guest.client.get(reverse("tickets:r_file", args=[link.token, line.id])).status_code == 302
    assert downloads.address_of(bob, 2, line.id)


def test_search_finds_the_words_of_a_merged_ticket_and_leads_to_the_other(world: World, browser: Browser) -> None:
    bob = world.context("bob", "acme")
    creating.create(bob, title="The one that stays")
    creating.create(bob, title="The one that goes", description="A wombat.")
    ticket_merging.merge(bob, 2, into=1)
    searching.index_all()
    page = browser.get("/search/?q=wombat").content.decode()
    assert "The one that goes" in page
    assert "merged into #1" in page.lower()


# --- exactness ---


@pytest.mark.usefixtures("two")
def test_a_merged_ticket_leaves_lists_and_numbers_and_comes_back_as_it_was(bob: TenantContext, ada: Requester) -> None:
    follower = Follower()
    changing.change(bob, 2, Wishes(tags=["fire"], priority=Priority.URGENT, resolver=bob.user_id))
    follower.fold()
    before, counts = [stored(bob, n) for n in (1, 2)], numbers(bob)
    ticket_merging.merge(bob, 2, into=1)
    follower.fold()
    assert in_lists(bob) == {1}
    assert kept_counts(bob) == recounted(bob)
    merged = numbers(bob)
    assert {name for name in merged if "urgent" in name or "fire" in name or bob.user_id in name} == set()
    assert [n for name, n in merged.items() if name.endswith(" commented")] == [2], "the comments are in ticket 1 now"
    commenting.comment(bob, 1, body="Meanwhile.")
    ticket_merging.separate(bob, 2)
    follower.fold()
    after = [stored(bob, n) for n in (1, 2)]
    assert after[1] == before[1]
    moved = ("days", "commented_at", "comment_count")
    assert {n: v for n, v in after[0].items() if n not in moved} == {
        n: v for n, v in before[0].items() if n not in moved
    }
    assert in_lists(bob) == {1, 2}
    assert kept_counts(bob) == recounted(bob)
    assert {n: v for n, v in numbers(bob).items() if not n.endswith(" commented")} == {
        n: v for n, v in counts.items() if not n.endswith(" commented")
    }


@pytest.mark.usefixtures("two")
def test_a_kill_at_any_write_leaves_all_of_a_merge_or_nothing(
    bob: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    for act, done in ((lambda: ticket_merging.merge(bob, 2, into=1), 1), (lambda: ticket_merging.separate(bob, 2), 0)):
        for sent in (False, True):
            with pytest.raises(Killed), killed_at(monkeypatch, 1, sent=sent, writes_only=True):
                act()
            source, target = changing.read(bob, 2), changing.read(bob, 1)
            is_merged = bool(done) if sent else not done
            assert (bool(source.merged_into), list(target.merged or ())) == (is_merged, [2] if is_merged else [])
    ticket_merging.merge(bob, 2, into=1)
    ticket_merging.merge(bob, 2, into=1)
    assert [*changing.read(bob, 1).merged] == [2], "the same again changes nothing"


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("merge"), st.integers(0, 4), st.integers(0, 4)),
        st.tuples(st.just("separate"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("comment"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("overtaken merge"), st.integers(0, 4), st.integers(0, 4)),
    ),
    min_size=4,
    max_size=14,
)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=ACTS)
def test_any_sequence_of_merges_comments_and_ways_back_is_exact(
    bob: TenantContext, monkeypatch: pytest.MonkeyPatch, acts: list[tuple[str, int, int]]
) -> None:
    follower = Follower()
    tickets = [creating.create(bob, title=f"T{n}", description=f"d{n}", tags=[f"t{n}"]) for n in range(5)]
    into: dict[int, int] = {}
    own: dict[int, list[str]] = {n: [] for n in tickets}

    def below(number: int) -> list[int]:
        """The tickets that are shown in this one, at any depth."""
        return [one for one in tickets for target in [into.get(one)] if target == number] + [
            deeper for one in tickets if into.get(one) == number for deeper in below(one)
        ]

    for position, (act, first, second) in enumerate(acts):
        number, other = tickets[first], tickets[second]
        if act == "comment":
            body = f"said {position}"
            if number in into:
                with pytest.raises(SetAside):
                    commenting.comment(bob, number, body=body)
            else:
                commenting.comment(bob, number, body=body)
                own[number].append(body)
        elif act == "separate":
            if number in into and into[number] not in into:
                ticket_merging.separate(bob, number)
                del into[number]
            else:
                with pytest.raises(Conflict):
                    ticket_merging.separate(bob, number)
        else:
            may = number != other and number not in into and other not in into
            if act == "overtaken merge" and may:
                _overtaken(bob, monkeypatch, number, own)
            if may or into.get(number) == other:
                ticket_merging.merge(bob, number, into=other)
                into[number] = other
            else:
                with pytest.raises(Conflict):
                    ticket_merging.merge(bob, number, into=other)
            monkeypatch.undo()
        follower.fold()
        assert kept_counts(bob) == recounted(bob)
    for number in tickets:
        shown = sorted(text for one in (number, *below(number)) for text in own[one])
        openings = sorted(f"d{tickets.index(one)}" for one in below(number))
        assert sorted(said(bob, number)) == sorted(shown + openings)
        summary = changing.read(bob, number)
        assert sorted(map(int, summary.merged or ())) == sorted(below(number))
        assert int(summary.merged_into or 0) == into.get(number, 0)
    assert in_lists(bob) & set(tickets) == {n for n in tickets if n not in into}


def _overtaken(bob: TenantContext, monkeypatch: pytest.MonkeyPatch, number: int, own: dict[int, list[str]]) -> None:
    """Somebody comments on the ticket and changes it between the read of the next merge and its write."""
    read, meanwhile = changing.read, [True]

    def overtaken(tenant: TenantContext, which: int, **how: Any) -> SummaryItem:
        found = read(tenant, which, **how)
        if which == number and meanwhile:
            meanwhile.clear()
            own[number].append(f"between {len(own[number])}")
            commenting.comment(bob, number, body=own[number][-1])
            to = Priority.HIGH if found.priority == Priority.LOW else Priority.LOW
            changing.change(bob, number, Wishes(priority=to))
        return found

    monkeypatch.setattr(changing, "read", overtaken)


def test_up_to_five_tickets_are_merged_into_one_and_into_no_merged_one(world: World, bob: TenantContext) -> None:
    world.tickets("acme", 8)
    ticket_merging.merge(bob, 2, into=1)
    with pytest.raises(Conflict, match="Choose ticket 1"):
        ticket_merging.merge(bob, 3, into=2)
    ticket_merging.merge(bob, 1, into=3)
    assert sorted(map(int, changing.read(bob, 3).merged)) == [1, 2]
    with pytest.raises(Conflict, match="Take that back first"):
        ticket_merging.separate(bob, 2)
    for number in (4, 5, 6):
        ticket_merging.merge(bob, number, into=3)
    with pytest.raises(Conflict, match="Up to 5"):
        ticket_merging.merge(bob, 7, into=3)
    ticket_merging.separate(bob, 1)
    assert [*map(int, changing.read(bob, 1).merged)] == [2]


# --- the API ---


def test_the_api_merges_says_where_a_ticket_went_and_takes_it_back(world: World) -> None:
    world.tickets("acme", 2)
    client = api_client(world)
    merged = client.call("PUT", "/tickets/2/merge", {"number": 1})
    assert (merged.status_code, merged.json()["merged_into"]) == (200, 1)
    assert client.call("GET", "/tickets/2").json()["merged_into"] == 1
    assert client.call("GET", "/tickets/1").json()["merged"] == [2]
    assert [one["number"] for one in client.call("GET", "/tickets").json()["data"]] == [1]
    entries = client.call("GET", "/tickets/1/activity").json()["data"]
    assert [one["body"] for one in entries if one["ticket"] == 2 and one["kind"] == "comment"] == ["It *broke*."]
    refused = client.call("POST", "/tickets/2/comments", {"body": "Hello"})
    assert (refused.status_code, refused.json()["code"]) == (409, "ticket_set_aside")
    assert client.call("PUT", "/tickets/2/merge", {"number": 2}).status_code == 409
    assert client.call("DELETE", "/tickets/2/merge").json()["merged_into"] is None
    assert client.call("DELETE", "/tickets/2/merge").status_code == 409


# --- costs ---


def test_a_merge_costs_one_transaction_however_long_the_tickets_are(world: World, bob: TenantContext) -> None:
    world.tickets("acme", 2)
    for n in range(30):
        commenting.comment(bob, 2, body=f"c{n}")
    for act, reads in ((lambda: ticket_merging.merge(bob, 2, into=1), 2), (lambda: ticket_merging.separate(bob, 2), 2)):
        with meter.measure() as bill:
            act()
        assert [call.operation for call in bill.calls] == ["GetItem"] * reads + ["TransactWriteItems"]
        assert bill.write_units <= 30


def test_the_page_of_merged_tickets_takes_two_trips_and_one_query_for_each(world: World, bob: TenantContext) -> None:
    browser = world.browser("bob", "acme")
    world.tickets("acme", 3)
    spent(browser, "/tickets/1/")
    plain = spent(browser, "/tickets/1/")
    for number in (2, 3):
        ticket_merging.merge(bob, number, into=1)
    first = spent(browser, "/tickets/1/")
    assert (first.trips, len(first.calls)) == (plain.trips + 1, len(plain.calls) + 2), "a process learns of the merge"
    again = spent(browser, "/tickets/1/")
    assert (again.trips, len(again.calls)) == (plain.trips, len(plain.calls) + 2)
    assert plain.trips == 2
