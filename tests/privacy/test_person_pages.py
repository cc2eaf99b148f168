"""Owners look for a person, take what the desk holds of them, and erase them, on a page of the settings."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from django.core import signing

from portal.load import tenant_limiter
from portal.schema import registry
from tenants.audit_trail.recording import Actor
from tenants.audit_trail.stored import AUDIT
from tenants.membership import member_changes
from tests.support.commands import everything
from tests.support.operators import calls, text_of
from tests.support.searching import index_all
from tests.support.world import Browser, World
from tickets.data import views
from tickets.desk import changing, commenting, creating

BOB = "bob@example.com"
PAGE = "/desk/settings/person/"


@pytest.fixture
def desk(world: World) -> World:
    """Bob asked for tickets 1 to 3 and wrote in one, had ticket 4, and is named in its title. He has left."""
    bob, alice = world.context("bob", "acme"), world.context("alice", "acme")
    for number in range(3):
        creating.create(bob, title=f"Lift {number}")
    commenting.comment(bob, 2, body="Still stuck.")
    creating.create(alice, title=f"Ask {BOB} again")
    changing.assign(alice, 4, to=bob.user_id, version=1)
    member_changes.remove(user_id=bob.user_id, tenant_id=bob.tenant_id, by=Actor(alice.user_id, "alice@example.com"))
    return world


def field(page: Any, name: str = "so_far") -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page.content.decode())
    assert found is not None, text_of(page)
    return found[1]


def searched(browser: Browser, address: str = BOB) -> Any:
    """The page on which a search has ended, as somebody without JavaScript gets there."""
    page: Any = browser.send(PAGE, {"address": address})
    while b"tickets searched" in page.content:
        page = browser.send(PAGE, {"so_far": field(page)})
    return page


def erased(browser: Browser, page: Any, **typed: str) -> Any:
    page = browser.send(f"{PAGE}erase/", {"so_far": field(page), "typed_address": BOB, **typed}, follow=True)
    while b"tickets are done" in page.content:
        page = browser.send(f"{PAGE}erase/", {"erasing": "yes", "so_far": field(page)}, follow=True)
    return page


def stored() -> str:
    return repr([everything(table) for table in registry.tables()])


def test_an_owner_sees_what_there_is_and_erases_it_in_as_many_requests_as_it_takes(
    desk: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "STEP", 1)
    alice, bob = desk.browser("alice", "acme"), desk.users["bob"]
    page = searched(alice, " Bob@Example.com ")
    told = text_of(page)
    for line in (
        "This desk has the name 9 times and the address in 1 text, in 4 tickets.",
        "Tickets they asked for 3", "Tickets assigned to them 1", "Comments 1",
        "Texts with the address 1", "Audit trail, 1 row", "#4 Ask bob@example.com again",
    ):  # fmt: skip
        assert line in told, told

    page = erased(alice, page, texts="on")

    told = text_of(page)
    assert re.search(
        r"Erased person \w{4} .* by alice@example.com, in place of the name 9 times and the address in 1 text, in 4",
        told,
    ), told
    tickets = repr([item for item in everything() if "TICKET#" in item["pk"]["S"]])
    assert [text for text in (bob.id, bob.name, BOB) if text in tickets] == []
    assert BOB not in told
    assert "erased from the desk" in text_of(alice.get("/desk/audit/"))


def test_what_is_held_is_downloaded_and_that_is_recorded_without_the_address(desk: World) -> None:
    alice = desk.browser("alice", "acme")
    answer: Any = alice.send(f"{PAGE}export/", {"so_far": field(searched(alice))})
    told = json.loads(b"".join(answer.streaming_content))
    assert 'filename="person-acme-' in answer["Content-Disposition"]
    assert [ticket["number"] for ticket in told["tickets"]] == [1, 2, 3, 4]
    assert [row["action"] for row in told["audit_trail"]] == ["member.removed"]
    trail = [item for item in everything(AUDIT) if item["action"]["S"] == "export.made"]
    assert [(item["actor_email"]["S"], BOB in repr(item)) for item in trail] == [("alice@example.com", False)]


def test_without_the_address_typed_again_nobody_is_erased(desk: World) -> None:
    alice = desk.browser("alice", "acme")
    page, before = searched(alice), stored()
    for typed in ("", "bob@example.org"):
        refused: Any = alice.send(f"{PAGE}erase/", {"so_far": field(page), "typed_address": typed})
        assert refused.status_code == 422
    assert stored() == before


def test_a_member_and_somebody_unknown_are_not_erased(desk: World) -> None:
    alice = desk.browser("alice", "acme")
    before = stored()
    for address, said in (("vera@example.com", "is a member"), ("charlie@example.com", "stores nothing about")):
        page = searched(alice, address)
        assert said in text_of(page)
        assert b"Erase this person" not in page.content
        if b'name="so_far"' in page.content:
            refused: Any = alice.send(f"{PAGE}erase/", {"so_far": field(page), "typed_address": address})
            assert (refused.status_code, said in text_of(refused)) == (422, True)
    assert stored() == before


def test_of_an_address_that_the_desk_does_not_know_nothing_is_exported(
    desk: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = desk.browser("alice", "acme")
    page: Any = alice.send(PAGE, {"address": "nobody@example.org"})
    before = stored()
    refused: Any = alice.send(f"{PAGE}export/", {"so_far": page.context["so_far"]})
    assert (refused.status_code, "stores nothing about" in text_of(refused)) == (400, True)
    monkeypatch.setattr(views, "STEP", 1)
    page = alice.send(PAGE, {"address": BOB})
    refused = alice.send(f"{PAGE}export/", {"so_far": field(page)})
    assert (refused.status_code, "has not ended" in text_of(refused)) == (400, True)
    assert stored() == before


def test_the_page_promises_what_becomes_of_names_in_texts_and_leads_to_them(desk: World) -> None:
    commenting.comment(desk.context("alice", "acme"), 1, body="Thanks, Bob!")
    index_all()
    alice = desk.browser("alice", "acme")
    page = searched(alice)
    assert "A name that somebody wrote in a title, a tag, a description or a comment stays" in text_of(page)
    links = re.findall(r'<a href="([^"]*/search/[?]q=[^"]*)">(.*?)</a>', page.content.decode())
    assert [text for _, text in links] == ["Bob Example", "Bob", "Example"]
    assert "Thanks, <mark>Bob</mark>!" in alice.get(links[1][0]).content.decode()
    told = text_of(erased(alice, page, texts="on"))
    assert "Names that people wrote in texts are still there." in told
    assert "Thanks, Bob!" in text_of(alice.get("/tickets/1/"))


def as_of_another_version(state: str, *, without: str = "", beside: str = "") -> str:
    """What was signed, as a version of the portal signs it that lacks one thing or has another one."""
    told = signing.loads(state, salt="tickets.privacy")
    for part in (told["state"], told["state"]["person"]):
        part.pop(without, None)
        if beside:
            part[beside] = ""
    return signing.dumps(told, salt="tickets.privacy", compress=True)


@pytest.mark.parametrize("other", [{"without": "trail_shown"}, {"without": "names"}, {"beside": "mood"}])
def test_what_another_version_of_the_portal_has_begun_is_to_be_begun_again(
    desk: World, monkeypatch: pytest.MonkeyPatch, other: dict[str, str]
) -> None:
    alice = desk.browser("alice", "acme")
    page = searched(alice)
    monkeypatch.setattr(views, "STEP", 1)
    half: Any = alice.send(f"{PAGE}erase/", {"so_far": field(page), "typed_address": BOB})
    before = stored()
    for path, sent in (
        ("", {"so_far": field(page)}),
        ("export/", {"so_far": field(page)}),
        ("erase/", {"so_far": field(page), "typed_address": BOB}),
        ("erase/", {"so_far": field(half), "erasing": "yes"}),
    ):
        sent["so_far"] = as_of_another_version(sent["so_far"], **other)
        answer: Any = alice.send(PAGE + path, sent)
        assert (answer.status_code, "Search for the person again." in text_of(answer)) == (400, True), path
    assert stored() == before


def test_it_is_for_owners_alone_and_what_was_found_is_good_in_no_other_desk(desk: World) -> None:
    state = field(searched(desk.browser("alice", "acme")))
    for person in ("vera", "charlie"):
        browser = desk.browser(person, "acme" if person == "vera" else "globex")
        for path in ("", "export/", "erase/"):
            answer: Any = browser.send(PAGE + path, {"so_far": state, "typed_address": BOB, "address": BOB})
            assert answer.status_code == (403 if person == "vera" else 400), (person, path)
    assert desk.browser("vera", "acme").get(PAGE).status_code == 403


def test_a_search_costs_a_query_for_each_ticket_and_a_handful_beside_them(desk: World) -> None:
    alice = desk.browser("alice", "acme")
    with calls() as made:
        alice.get(PAGE)
    assert Counter(call.operation for call in made) == {"BatchGetItem": 1, "Query": 1}
    with calls() as made:
        alice.send(PAGE, {"address": BOB})
    assert Counter(call.operation for call in made) == {"BatchGetItem": 1, "GetItem": 7, "Query": 9 + 8}


def test_it_counts_as_heavy_work(desk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = desk.browser("alice", "acme")
    state = field(searched(alice))
    monkeypatch.setattr(tenant_limiter.heavy, "enter", lambda tenant_id: False)
    for path in ("", "export/", "erase/"):
        answer: Any = alice.send(PAGE + path, {"so_far": state})
        assert answer.status_code == 429
