"""A ticket gets another requester: by the form and by the API, with its history, its letters and its privacy."""

from __future__ import annotations

from typing import Any

import pytest

from portal import clock
from portal.dynamo import meter
from tenants.audit_trail.recording import Actor
from tests.support import letters_in
from tests.support.api_client import api_client
from tests.support.commands import run
from tests.support.world import Browser, World
from tickets.data import desk_person, person_finding
from tickets.desk import changing, creating, timelines
from tickets.desk.changing import Wishes
from tickets.letters import ledger
from tickets.replies import reply_addresses
from tickets.requesters import requester_changes, requester_tickets, requesters
from tickets.requesters.requesters import Requester
from tickets.time_machine import past_tickets

BY = Actor("d" * 32, "alice@example.com", "test")
ADA, GRACE = "ada@example.org", "grace@example.org"


@pytest.fixture
def ada(world: World) -> Requester:
    """Ada, who asked for ticket 1."""
    alice = world.context("alice", "acme")
    made = requesters.ensure(alice, ADA, name="Ada Lovelace")
    creating.create(alice, title="The engine", requester=made)
    return made


@pytest.fixture
def grace(world: World) -> Requester:
    return requesters.ensure(world.context("alice", "acme"), GRACE, name="Grace Hopper")


@pytest.fixture
def bob(world: World) -> Browser:
    return world.browser("bob", "acme")


def ask(browser: Browser, requester: str, version: int = 1) -> Any:
    return browser.send("/tickets/1/requester/", {"requester": requester, "version": version})


def tickets_of(world: World, person: Requester) -> list[int]:
    _, rows = requester_tickets.with_person(world.context("bob", "acme"), person.id, limit=10)
    return [int(row.number) for row in rows]


def test_an_agent_gives_a_ticket_to_another_person_and_back(
    world: World, bob: Browser, ada: Requester, grace: Requester
) -> None:
    page = bob.get("/tickets/1/").content.decode()
    assert "/tickets/1/requester/" in page
    form = bob.get("/tickets/1/requester/").content.decode()
    assert "Ada Lovelace" in form
    assert "or somebody new by name and address." in form
    assert "all earlier public messages and files" in form, "somebody else will read them"
    began = clock.stamp()
    assert ask(bob, GRACE).status_code == 302
    assert (tickets_of(world, ada), tickets_of(world, grace)) == ([], [1])
    assert "Grace Hopper" in bob.get("/tickets/1/").content.decode()
    (entry, _) = timelines.ticket(world.context("bob", "acme"), 1).activity[::-1]
    assert [(c.field, c.before, c.after) for c in entry.changes] == [("requester", "Ada Lovelace", "Grace Hopper")]
    assert past_tickets.read(world.context("bob", "acme"), 1, began).then.requester_name == "Ada Lovelace"
    assert ask(bob, f"Ada Lovelace <{ADA}>", version=2).status_code == 302
    assert (tickets_of(world, ada), tickets_of(world, grace)) == ([1], [])


def test_somebody_new_and_a_ticket_of_a_member(world: World, bob: Browser) -> None:
    world.tickets("acme", 1)
    assert ask(bob, "New <new@example.org>").status_code == 302
    assert changing.read(world.context("bob", "acme"), 1).requester_name == "New"
    assert tickets_of(world, requesters.by_address(world.context("bob", "acme"), "new@example.org")) == [1]


@pytest.mark.parametrize(
    ("typed", "version", "status", "sentence"),
    [
        ("", 1, 422, "This field is required."),
        ("Nobody at all", 1, 422, "Nobody is known by the name"),
        ("not@an@address", 1, 422, "not@an@address"),
        (GRACE, 1, 409, "Somebody else has changed the requester meanwhile."),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence_and_stays_in_its_field(
    world: World, bob: Browser, ada: Requester, grace: Requester, typed: str, version: int, status: int, sentence: str
) -> None:
    if status == 409:
        third = requesters.ensure(world.context("alice", "acme"), "third@example.org")
        changing.change(world.context("alice", "acme"), 1, Wishes(requester=third), version=1)
    answer = ask(bob, typed, version)
    page = answer.content.decode()
    assert (answer.status_code, sentence in page, typed in page) == (status, True, True)
    assert grace.id != changing.read(world.context("bob", "acme"), 1).requester
    if status == 409:
        assert ask(bob, typed, version=2).status_code == 302


def test_an_api_key_gives_a_ticket_to_another_person_with_other_fields(
    world: World, ada: Requester, grace: Requester
) -> None:
    client = api_client(world, name="Billing")
    answer = client.call("PATCH", "/tickets/1", {"requester": GRACE, "priority": "high"})
    told = answer.json()
    assert (told["requester_id"], told["requester_name"], told["priority"]) == (grace.id, "Grace Hopper", "high")
    assert client.call("PATCH", "/tickets/1", {"requester": grace.id}).json()["version"] == told["version"]
    assert client.call("PATCH", "/tickets/1", {"requester": "Nobody"}).status_code == 422


def test_it_costs_one_transaction(world: World, ada: Requester, grace: Requester) -> None:
    bob = world.context("bob", "acme")
    with meter.measure() as bill:
        changing.change(bob, 1, Wishes(requester=grace), version=1)
    assert [call.operation for call in bill.calls] == ["GetItem", "TransactWriteItems"]
    assert bill.write_units <= 10


@pytest.mark.parametrize("case", ["former", "new", "merged"])
def test_the_reply_addresses_of_the_former_requester_lead_to_the_ticket_no_more(
    world: World, ada: Requester, grace: Requester, case: str
) -> None:
    bob, tenant_id = world.context("bob", "acme"), world.tenants["acme"].tenant_id
    to, sender = reply_addresses.address_of(tenant_id, 1, ada.id, is_agent=False), ADA
    if case == "merged":
        requester_changes.merge(bob, grace.id, ada.id, by=BY)
    else:
        changing.change(bob, 1, Wishes(requester=grace), version=1)
    if case == "new":
        to, sender = reply_addresses.address_of(tenant_id, 1, grace.id, is_agent=False), GRACE
    with letters_in.mail():
        letters_in.come_in(letters_in.letter(sender=f"Somebody <{sender}>"), to, sender=sender)
        (row,) = letters_in.rows(world)
    assert (row.state, int(row.number)) == (ledger.FILED, 2 if case == "former" else 1)


def test_a_former_requester_is_found_and_forgotten(world: World, ada: Requester, grace: Requester) -> None:
    alice = world.context("alice", "acme")
    changing.change(alice, 1, Wishes(requester=grace), version=1)
    found = person_finding.begin(alice, desk_person.person_of(alice, ADA))
    assert [*person_finding.go_on(alice, found)]
    assert "former requester" in found.kinds
    assert run("erase_person", "acme", ADA).status == 0
    entry = timelines.ticket(alice, 1).activity[-1]
    (change,) = entry.changes
    assert change.before.startswith("Erased person")
    assert (change.after, entry.former_requester in (ada.id, None)) == ("Grace Hopper", False)
