"""Agents find, add, change and merge requesters on pages, and open tickets for them."""

from __future__ import annotations

from typing import Any

import pytest

from portal.dynamo import meter
from tenants.tenancy.context import TenantContext
from tests.desk.test_cost import _watching, spent
from tests.support.world import Browser, World, captured
from tickets.desk import changing, commenting, creating, lists
from tickets.requesters import bounced_addresses, requester_tickets, requesters
from tickets.requesters.requesters import Requester
from tickets.requesters.stored import id_of_request
from tickets.ticket.fields import Status

FORM = "f" * 32


@pytest.fixture
def bob(world: World) -> Browser:
    return world.browser("bob", "acme")


@pytest.fixture
def ada(alice: TenantContext) -> Requester:
    return requesters.ensure(alice, "ada@example.org", name="Ada Lovelace")


@pytest.fixture
def countess(alice: TenantContext) -> Requester:
    return requesters.ensure(alice, "countess@example.com", name="The Countess")


def text_of(answer: Any) -> str:
    return answer.content.decode()  # type: ignore[no-any-return]


def page_of(person: Requester) -> str:
    return f"/requesters/{person.id}/"


# --- finding ---


def test_the_list_begins_empty_and_then_names_people_in_order(alice: TenantContext, bob: Browser) -> None:
    assert "No requesters yet" in text_of(bob.get("/requesters/"))
    for name in ("Émile", "ada", "Grace"):
        requesters.ensure(alice, f"{name[0].lower()}x@example.org".replace("é", "e"), name=name)
    page = text_of(bob.get("/requesters/"))
    assert page.index(">ada<") < page.index(">Émile<") < page.index(">Grace<")


def test_a_long_list_has_pages_and_a_cursor_is_of_one_desk(world: World, alice: TenantContext, bob: Browser) -> None:
    for number in range(53):
        requesters.ensure(alice, f"{number:02}@example.org")
    first = text_of(bob.get("/requesters/"))
    cursor = captured(r'href="[^"]*\?after=([^"]+)"', first)
    second = text_of(bob.get(f"/requesters/?after={cursor}"))
    assert ("49@example.org" in first, "50@example.org" in first) == (True, False)
    assert ("49@example.org" in second, "52@example.org" in second) == (False, True)
    assert bob.get("/requesters/?after=nonsense").status_code == 400
    assert world.browser("charlie", "globex").get(f"/requesters/?after={cursor}").status_code == 400


def test_the_list_is_searched_by_the_beginning_of_a_name_or_an_address(
    ada: Requester, countess: Requester, bob: Browser
) -> None:
    for typed in ("ada", "LOVE", "ada@ex"):
        page = text_of(bob.get("/requesters/", {"q": typed}))
        assert "Ada Lovelace" in page
        assert "The Countess" not in page
    assert "Nobody found" in text_of(bob.get("/requesters/", {"q": "<b>zzz"}))
    assert "&lt;b&gt;zzz" in text_of(bob.get("/requesters/", {"q": "<b>zzz"}))


def test_people_are_offered_while_somebody_types_and_a_bounced_address_says_so(
    alice: TenantContext, ada: Requester, bob: Browser
) -> None:
    page = text_of(bob.get("/requesters/options/", {"requester": "ada"}))
    assert '<option value="Ada Lovelace &lt;ada@example.org&gt;">' in page
    assert "does not arrive" not in page
    bounced_addresses.note(alice, "ada@example.org", "The mailbox is full.")
    page = text_of(bob.get("/requesters/options/", {"requester": "Ada Lovelace <ada@example.org>"}))
    assert "Mail to ada@example.org does not arrive: The mailbox is full." in page
    bounced_addresses.note(alice, "ada@example.org", "")
    page = text_of(bob.get("/requesters/options/", {"other": "ada@example.org"}))
    assert "Ada Lovelace" in page
    assert "does not arrive" not in page
    assert "Nobody has this address yet" in text_of(bob.get("/requesters/options/", {"requester": "new@example.org"}))


# --- one person ---


def test_a_person_has_a_page_with_their_tickets(alice: TenantContext, ada: Requester, bob: Browser) -> None:
    number = creating.create(alice, title="The engine <stops>", requester=ada)
    creating.create(alice, title="Of nobody")
    page = text_of(bob.get(page_of(ada)))
    assert "The engine &lt;stops&gt;" in page
    assert f"/acme/tickets/{number}/" in page
    assert "Of nobody" not in page
    for link in (f"/acme{page_of(ada)}merge/", f"/acme/tickets/new/?requester={ada.id}"):
        assert f'href="{link}"' in page
    assert bob.get(f"/requesters/rq_{'0' * 32}/").status_code == 404
    assert bob.get("/requesters/nonsense/").status_code == 404


def test_of_very_many_tickets_the_newest_are_shown(alice: TenantContext, ada: Requester, bob: Browser) -> None:
    for number in range(requester_tickets.SHOWN + 1):
        creating.create(alice, title=f"Number {number}.", requester=ada)
    page = text_of(bob.get(page_of(ada)))
    assert ("Number 1." in page, "Number 0." in page) == (True, False)
    assert "Search all their tickets" in page


def test_a_person_is_added_and_changed_by_forms(bob: Browser, alice: TenantContext) -> None:
    sent = {"name": "Ada Lovelace", "addresses": "ada@example.org\r\nADA@work.example", "request_id": FORM}
    answer = bob.send("/requesters/new/", {**sent, "language": "en", "organisation": "Engines", "notes": "A\r\nB"})
    assert (answer.status_code, answer["Location"]) == (302, f"/acme/requesters/{id_of_request(FORM)}/")
    assert bob.send("/requesters/new/", sent)["Location"] == answer["Location"], "sent twice, added once"
    made = requesters.by_address(alice, "ada@work.example")
    assert made is not None
    assert (made.name, made.organisation, made.notes, made.language) == ("Ada Lovelace", "Engines", "A\nB", "en")
    form = text_of(bob.get(f"{page_of(made)}edit/"))
    assert "ada@example.org\nada@work.example" in form
    version = captured(r'name="version" value="(\d+)"', form)
    answer = bob.send(f"{page_of(made)}edit/", {"name": "Ada", "addresses": "ada@example.org", "version": version})
    assert answer.status_code == 302
    assert requesters.find(alice, made.id).addresses == ("ada@example.org",)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"name": "", "addresses": ""}, "Enter a name or an address."),
        ({"addresses": "ada at example"}, "“ada at example” is no mail address."),
        ({"addresses": "ada@example.org"}, "ada@example.org belongs to Ada Lovelace already."),
        ({"language": "English please"}, "Enter a language as a code"),
        ({"notes": "x" * 4001}, "This text has 4,001 characters; 4,000 are allowed."),
        ({"name": "x" * 101}, "This text has 101 characters; 100 are allowed."),
    ],
)
def test_a_form_that_is_refused_says_why_and_keeps_what_was_typed(
    ada: Requester, countess: Requester, bob: Browser, values: dict[str, object], sentence: str
) -> None:
    typed = {"name": "The <Countess>", "addresses": "kept@example.com", "organisation": "Kept & Co", "version": 1}
    for path in ("/requesters/new/", f"{page_of(countess)}edit/"):
        answer = bob.send(path, {**typed, **values, "request_id": FORM})
        page = text_of(answer)
        assert (answer.status_code, sentence in page) == (422, True), path
        assert "Kept &amp; Co" in page
        assert ("kept@example.com" in page) == ("addresses" not in values)
    assert (page_of(ada) in page) == (values.get("addresses") == "ada@example.org")


def test_two_who_change_one_person_see_each_others_values(alice: TenantContext, ada: Requester, bob: Browser) -> None:
    sent = {"name": "Ada", "addresses": "ada@example.org", "version": 1}
    assert bob.send(f"{page_of(ada)}edit/", {**sent, "organisation": "Engines"}).status_code == 302
    answer = bob.send(f"{page_of(ada)}edit/", {**sent, "organisation": "Looms"})
    page = text_of(answer)
    assert answer.status_code == 409
    assert "Looms" in page
    assert "Engines" in page
    version = captured(r'name="version" value="(\d+)"', page)
    assert bob.send(f"{page_of(ada)}edit/", {**sent, "organisation": "Looms", "version": version}).status_code == 302
    assert requesters.find(alice, ada.id).organisation == "Looms"  # type: ignore[union-attr]


# --- merging ---


def test_two_people_are_merged_after_a_look_at_both_and_separated_again(
    alice: TenantContext, ada: Requester, countess: Requester, bob: Browser
) -> None:
    creating.create(alice, title="Of the countess", requester=countess)
    asked = bob.send(f"{page_of(ada)}merge/", {"other": "The Countess <countess@example.com>"})
    assert "Merge them" in text_of(asked)
    assert requesters.find(alice, ada.id) == ada, "nothing is merged before it is confirmed"
    answer = bob.send(f"{page_of(ada)}merge/", {"other": "countess@example.com", "confirmed": countess.id})
    assert (answer.status_code, answer["Location"]) == (302, f"/acme{page_of(ada)}")
    page = text_of(bob.get(page_of(ada)))
    assert "Of the countess" in page
    assert "Undo the merge" in page
    assert bob.get(page_of(countess))["Location"] == f"/acme{page_of(ada)}"
    assert bob.send(f"{page_of(countess)}separate/").status_code == 302
    assert "Of the countess" in text_of(bob.get(page_of(countess)))
    assert "Of the countess" not in text_of(bob.get(page_of(ada)))


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "Enter the address of the other person."),
        ("nobody@example.org", "There is no such requester."),
        ("Nobody", "Nobody is known by the name “Nobody”."),
        ("ada@example.org", "nobody can be merged into themselves"),
        ("ada at", "Nobody is known by the name “ada at”."),
        ("@@", "is no mail address"),
    ],
)
def test_a_merge_with_nobody_is_refused_at_its_field(ada: Requester, bob: Browser, typed: str, sentence: str) -> None:
    answer = bob.send(f"{page_of(ada)}merge/", {"other": typed})
    assert (answer.status_code, sentence in text_of(answer)) == (422, True)


# --- tickets for somebody ---


def new_ticket(browser: Browser, requester: str, **values: object) -> Any:
    return browser.send(
        "/tickets/new/", {"title": "Engine", "priority": "normal", "request_id": FORM, "requester": requester, **values}
    )


@pytest.mark.parametrize("typed", ["ada@example.org", "Ada L. <ADA@example.org>", "ada lovelace", "{id}"])
def test_an_agent_opens_a_ticket_for_somebody_known(
    alice: TenantContext, ada: Requester, bob: Browser, typed: str
) -> None:
    assert new_ticket(bob, typed.format(id=ada.id)).status_code == 302
    summary = changing.read(alice, 1)
    assert (summary.requester, summary.requester_name) == (ada.id, "Ada Lovelace")


def test_an_agent_opens_a_ticket_for_somebody_new_once(alice: TenantContext, bob: Browser) -> None:
    for _ in range(2):
        assert new_ticket(bob, "Grace Hopper <grace@example.org>").status_code == 302
    grace = requesters.by_address(alice, "grace@example.org")
    assert grace is not None
    assert [row.requester_name for row in lists.page(alice, status=Status.OPEN).rows] == ["Grace Hopper"]
    assert changing.read(alice, 1).requester == grace.id


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("Nobody", "Nobody is known by the name “Nobody”."),
        ("a@b@", "is no mail address"),
        ("Twin", "Several people are called “Twin”."),
        (f"rq_{'0' * 32}", "There is no such requester."),
        ("x" * 401, "at most 400 characters"),
    ],
)
def test_a_requester_who_cannot_be_is_refused_and_nothing_is_lost(
    alice: TenantContext, bob: Browser, typed: str, sentence: str
) -> None:
    for address in ("one@example.org", "two@example.org"):
        requesters.ensure(alice, address, name="Twin")
    answer = new_ticket(bob, typed, description="Kept & safe")
    page = text_of(answer)
    assert (answer.status_code, sentence in page) == (422, True)
    assert "Kept &amp; safe" in page
    assert not lists.page(alice, status=Status.OPEN).rows


def test_the_form_of_a_ticket_begins_with_the_person_whose_page_led_to_it(ada: Requester, bob: Browser) -> None:
    assert "Ada Lovelace &lt;ada@example.org&gt;" in text_of(bob.get("/tickets/new/", {"requester": ada.id}))
    assert bob.get("/tickets/new/", {"requester": "nonsense"}).status_code == 200


def test_beside_a_ticket_stand_its_requester_and_their_other_tickets(
    world: World, alice: TenantContext, ada: Requester, bob: Browser
) -> None:
    here, other = (creating.create(alice, title=title, requester=ada) for title in ("This one", "Another"))
    page = text_of(bob.get(f"/tickets/{here}/"))
    beside = captured(r'id="requester" hx-get="([^"]+)"', page)
    assert "Another" not in page
    loaded = text_of(bob.get(beside, HTTP_HX_REQUEST="true"))
    assert f"/acme/tickets/{other}/" in loaded
    assert "This one" not in loaded
    assert bob.get(beside)["Location"] == f"/acme{page_of(ada)}", "it works as a link"
    of_viewer = text_of(world.browser("vera").get(f"/tickets/{here}/"))
    assert "Ada Lovelace" in of_viewer
    assert ada.id not in of_viewer


def test_a_ticket_of_a_member_has_no_requester_beside_it(alice: TenantContext, bob: Browser) -> None:
    number = creating.create(alice, title="Mine")
    assert 'id="requester"' not in text_of(bob.get(f"/tickets/{number}/"))


def test_the_comment_form_learns_that_mail_does_not_reach_the_requester(
    alice: TenantContext, ada: Requester, bob: Browser
) -> None:
    creating.create(alice, title="First", requester=ada)
    page = bob.get(f"{page_of(ada)}beside/1/", HTTP_HX_REQUEST="true").content.decode()
    assert "not</b> mailed" not in page
    for address in ada.addresses:
        bounced_addresses.note(alice, address, "Nobody has this mailbox.")
    page = bob.get(f"{page_of(ada)}beside/1/", HTTP_HX_REQUEST="true").content.decode()
    assert 'id="letter-to" hx-swap-oob="true"' in page
    assert "not</b> mailed" in page
    assert "Nobody has this mailbox." in page
    assert 'id="letter-to"' in bob.get(bob.at_desk("/tickets/1/")).content.decode()


# --- costs ---


def test_pages_cost_the_same_for_many_people_and_tickets(alice: TenantContext, ada: Requester, bob: Browser) -> None:
    def trips() -> list[int]:
        paths = (
            "/requesters/",
            "/requesters/?q=ada",
            "/requesters/options/?requester=ada",
            page_of(ada),
            f"{page_of(ada)}edit/",
            "/tickets/1/",
        )
        with _watching() as bills:
            bob.get(f"{page_of(ada)}beside/1/", HTTP_HX_REQUEST="true")
        return [*(spent(bob, bob.at_desk(path)).trips for path in paths), bills[0].trips]

    creating.create(alice, title="First", requester=ada)
    before = trips()
    for number in range(60):
        requesters.ensure(alice, f"ada{number}@example.org", name="Ada")
        creating.create(alice, title="More", requester=ada)
    assert trips() == before == [2, 2, 2, 2, 2, 2, 2]


def test_a_note_and_an_assignment_cost_the_same_on_a_ticket_of_somebody_outside(
    alice: TenantContext, ada: Requester, bill: meter.Meter
) -> None:
    costs = []
    for number in (creating.create(alice, title="Mine"), creating.create(alice, title="Hers", requester=ada)):
        before = bill.write_units
        commenting.comment(alice, number, body="Done.", internal=True)
        changing.assign(alice, number, to=alice.user_id, version=1)
        costs.append(bill.write_units - before)
    assert costs[0] == costs[1] > 0
