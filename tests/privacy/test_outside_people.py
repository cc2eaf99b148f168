"""A requester is found by any of their addresses, handed out and forgotten, with those who were merged into them."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from tenants.audit_trail.recording import Actor
from tenants.audit_trail.stored import AUDIT
from tests.public_form.conftest import open_form
from tests.support.commands import everything, run
from tests.support.world import World, captured
from tickets.data import desk_person, person_erasing, person_finding
from tickets.desk import changing, commenting, creating, letter_texts
from tickets.desk.changing import Wishes
from tickets.desk.letter_texts import FromLetter
from tickets.public_form import challenges, receiving
from tickets.replies import mail_settings
from tickets.requesters import requester_changes, requesters
from tickets.requesters.requester_changes import Details
from tickets.requesters.requesters import Requester
from tickets.requesters.stored import REQUESTERS
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS

ADA, COUNTESS = "ada@example.org", "countess@example.org"
BY = Actor("d" * 32, "alice@example.com", "test")


@pytest.fixture
def ada(world: World) -> Requester:
    """Ada, into whom the Countess was merged. Each of the two asked for a ticket, and Grace asked for another one."""
    alice = world.context("alice", "acme")
    details = Details("Ada Lovelace", "Engines", "Calls in the mornings.", "en", (ADA,))
    made = requester_changes.create(alice, details, by=BY, request_id="form")
    countess = requesters.ensure(alice, COUNTESS, name="The Countess")
    creating.create(alice, title="The engine", requester=made)
    creating.create(alice, title="The title", requester=countess)
    commenting.comment(alice, 1, body=f"I wrote to {ADA}.", internal=True)
    grace = requesters.ensure(alice, "grace@example.org", name="Grace Hopper")
    creating.create(alice, title="The compiler", requester=grace)
    globex = world.context("charlie", "globex")
    creating.create(globex, title="Elsewhere", requester=requesters.ensure(globex, ADA, name="Ada at Globex"))
    return requester_changes.merge(alice, made.id, countess.id, by=BY)


def acmes(world: World, *tables: object) -> str:
    """What is stored of Acme in these tables."""
    tenant_id = world.tenants["acme"].tenant_id
    items = [item for table in tables for item in everything(table)]  # type: ignore[arg-type]
    return json.dumps([item for item in items if tenant_id in json.dumps(item)])


@pytest.mark.parametrize("address", [ADA, COUNTESS])
def test_each_place_is_found_by_each_address(world: World, ada: Requester, address: str) -> None:
    found = run("find_person", "acme", address).out.splitlines()
    assert {line for line in found if "text:" not in line and "audit" not in line} == {
        "ticket 1: requester",
        "ticket 2: requester",
        "requester, with name, organisation and notes: Ada Lovelace",
        f"address of the requester: {ADA}",
        f"address of the requester: {COUNTESS}",
        "requester, with name, organisation and notes: The Countess",
    }
    assert any(line.startswith("audit trail") for line in found)


def test_the_document_has_the_profile_and_the_tickets(world: World, ada: Requester, tmp_path: Path) -> None:
    path = tmp_path / "ada.json"
    assert run("export_person", "acme", ADA, path).status == 0
    told = json.loads(path.read_text())
    profile, merged = sorted(told["requester"], key=lambda one: str(one["name"]))
    assert (profile["name"], profile["addresses"]) == ("Ada Lovelace", [ADA, COUNTESS])
    assert (profile["organisation"], profile["notes"], profile["language"]) == (
        "Engines",
        "Calls in the mornings.",
        "en",
    )
    assert merged["name"] == "The Countess"
    assert [ticket["number"] for ticket in told["tickets"]] == [1, 2]
    assert "Grace" not in path.read_text()
    assert "Elsewhere" not in path.read_text()


def test_an_erased_requester_is_nowhere_but_in_the_trail(world: World, ada: Requester) -> None:
    assert ada.id in acmes(world, TICKETS)
    ended = run("erase_person", "acme", ADA, "--texts")
    assert ended.status == 0, ended.err
    left = acmes(world, TICKETS, REQUESTERS)
    for text in (*ada.ids, "Lovelace", "Countess", ADA, COUNTESS, "Engines", "mornings"):
        assert text not in left, text
    assert "Grace Hopper" in left
    assert ADA in acmes(world, AUDIT)
    assert "Lovelace" not in acmes(world, AUDIT)
    alice = world.context("alice", "acme")
    summary = changing.read(alice, 1)
    assert summary.requester_name.startswith("Erased person")
    assert summary.tenant_requester == stored.tenant_requester(alice.tenant_id, summary.requester)
    assert requesters.by_address(world.context("charlie", "globex"), ADA) is not None
    assert requesters.by_address(alice, COUNTESS) is None
    trail = world.browser("alice", "acme").get("/desk/audit/").content.decode()
    assert "added the requester" in trail
    assert ADA not in trail


def test_an_erasure_that_was_broken_off_finds_the_tickets_when_it_is_begun_again(world: World, ada: Requester) -> None:
    alice = world.context("alice", "acme")
    found = person_finding.begin(alice, desk_person.person_of(alice, ADA))
    assert [*person_finding.go_on(alice, found)]
    erasure = person_erasing.begin(alice, found)
    person_erasing.go_on(alice, erasure, most=1)
    assert requesters.by_address(alice, ADA) is not None
    assert run("erase_person", "acme", ADA).status == 0
    assert changing.read(alice, 2).requester_name.startswith("Erased person")
    assert requesters.by_address(alice, ADA) is None


def test_the_page_of_an_owner_erases_a_requester(world: World, ada: Requester) -> None:
    browser = world.browser("alice", "acme")
    page = browser.send("/desk/settings/person/", {"address": COUNTESS})
    assert "Address of the requester: ada@example.org" in page.content.decode()
    so_far = html.unescape(captured(r'name="so_far" value="([^"]+)"', page))
    browser.send("/desk/settings/person/erase/", {"so_far": so_far, "typed_address": COUNTESS})
    assert "Erased person" in browser.get("/tickets/2/").content.decode()
    assert browser.get(f"/requesters/{ada.id}/").status_code == 404


def test_an_address_that_got_a_copy_is_found_handed_out_and_forgotten(world: World, ada: Requester) -> None:
    bob = world.context("bob", "acme")
    commenting.comment(bob, 3, body="For both of you.", cc=["lin@example.org", ADA])
    found = run("find_person", "acme", "lin@example.org").out
    assert "copies of a letter" in found
    assert run("erase_person", "acme", "lin@example.org", "--texts").status == 0
    entry = bob.repository.query(stored.ActivityItem, stored.ticket, 3, begins_with=stored.ACTIVITY_PREFIX).items[-1]
    assert list(entry.cc) == [ADA]


def test_a_blocked_sender_is_found_and_stays_blocked(world: World, ada: Requester) -> None:
    alice = world.context("alice", "acme")
    mail_settings.change(alice, values={"blocked": [ADA]}, version=0, by=BY)
    assert "blocked sender of mail" in run("find_person", "acme", ADA).out
    assert run("erase_person", "acme", ADA, "--texts").status == 0
    assert mail_settings.read(alice).blocked == (ADA,)


def test_what_a_comment_keeps_of_its_letter_is_found_and_forgotten(world: World, ada: Requester) -> None:
    alice = world.context("alice", "acme")
    letter = FromLetter("d" * 32, folded=f"> {ADA} wrote: hello", marks=("forwarded-by=lin@x.example",), cc=(ADA,))
    commenting.comment(alice, 3, body="See below.", letter=letter)
    assert "text: letter, folded" in run("find_person", "acme", ADA).out
    assert run("erase_person", "acme", ADA, "--texts").status == 0
    entry = alice.repository.query(stored.ActivityItem, stored.ticket, 3, begins_with=stored.ACTIVITY_PREFIX).items[-1]
    kept = entry.letter.as_dict()
    assert ADA not in str(kept)
    assert "wrote: hello" in kept["folded"]
    assert kept["marks"] == ["forwarded-by=lin@x.example"]


@pytest.mark.parametrize("is_passed_on", [False, True])
def test_another_name_that_a_form_gave_is_forgotten(world: World, ada: Requester, is_passed_on: bool) -> None:
    open_form(world)
    alice, words = world.context("alice", "acme"), ("The engine again", "It stands still.")
    sent = receiving.SentForm(ADA, *words, name="Augusta King")
    number = receiving.receive(alice, sent, challenges.issue(alice, bits=16))
    if is_passed_on:
        grace = requesters.ensure(alice, "grace@example.org", name="Grace Hopper")
        changing.change(alice, number, Wishes(requester=grace))
    assert "Augusta King" in acmes(world, TICKETS)
    assert run("erase_person", "acme", ADA).status == 0
    assert "Augusta King" not in acmes(world, TICKETS)
    assert letter_texts.UNCONFIRMED in acmes(world, TICKETS), "what else is known of the form stays"
