"""A person is erased while others have the same tickets open, or erase somebody else in them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from portal.dynamo import meter
from portal.dynamo.meter import item_size
from portal.dynamo.store import ITEM_LIMIT
from portal.dynamo.tenant_reader import TenantReader
from portal.schema import holdings
from tenants.audit_trail.recording import SYSTEM
from tenants.membership import member_changes
from tests.moving.moves import POOL, ticket
from tests.support import archives
from tests.support.commands import Ended, everything, run
from tests.support.operators import text_of
from tests.support.stored import unguarded
from tests.support.world import World
from tickets.data import desk_person, exporting, person_erasing
from tickets.desk import changing, commenting, creating, lists
from tickets.desk.changing import EditConflict, read
from tickets.ticket import stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import TICKETS
from tickets.time_machine import whole_tickets

ANNA, BERT = "anna@example.net", "bert@example.net"


def erase(address: str) -> None:
    ended = run("erase_person", "acme", address, "--texts")
    assert ended.status == 0, ended.err


def told(world: World) -> str:
    return json.dumps(ticket(world, 1, POOL))


def test_a_form_from_before_an_erasure_meets_a_conflict_and_brings_no_address_back(world: World) -> None:
    alice = world.context("alice", "acme")
    title, description = f"Call {ANNA}", f"She is {ANNA}"
    creating.create(alice, title=title, description=description)
    # The latest entry tells of another field than the erasure replaces.
    changing.edit(alice, 1, priority=Priority.HIGH, version=1)
    erase(ANNA)
    form = {"version": 2, "title": title, "description": description, "priority": "high", "tags": ""}
    form |= {"request_id": "0123456789abcdef" * 2}
    answer = world.browser("alice", "acme").send("/tickets/1/edit/", form)
    assert answer.status_code == 409
    assert ANNA not in told(world)
    changing.edit(alice, 1, priority=Priority.LOW, version=3)
    assert read(alice, 1).version == 4


def test_an_erasure_in_a_comment_alone_is_a_version_too_and_the_ticket_adds_up(world: World) -> None:
    alice = world.context("alice", "acme")
    creating.create(alice, title="The door")
    commenting.comment(alice, 1, body=f"Ask {ANNA}.")
    erase(ANNA)
    whole = whole_tickets.read(alice, 1)
    assert whole is not None
    assert (int(whole.summary.version), whole.adds_up) == (2, True)
    assert exporting.ticket(whole.summary, "")["version"] == 1
    (exported,) = [one.export for one in holdings.holdings() if one.name == "tickets"]
    assert exported is not None
    with meter.measure() as bill:
        assert len(list(exported(TenantReader(alice.tenant_id)))) == 4
    assert len(bill.calls) == 2, "the counter, and the ticket once"
    with pytest.raises(EditConflict):
        changing.edit(alice, 1, priority=Priority.LOW, version=1)


def test_of_two_erasures_that_meet_in_a_ticket_none_undoes_the_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = world.context("alice", "acme")
    creating.create(alice, title=f"{ANNA} met {BERT}", tags=[ANNA, BERT])
    commenting.comment(alice, 1, body=f"{ANNA} and {BERT}.")
    items_of, erase_some = desk_person.items_of, person_erasing._erase_some

    def meanwhile(tenant: Any, number: int) -> Any:
        items = items_of(tenant, number)
        monkeypatch.setattr(desk_person, "items_of", items_of)
        erase(BERT)
        return items

    def overtaken(*ticket_and_person: Any) -> bool:
        monkeypatch.setattr(person_erasing, "_erase_some", erase_some)
        monkeypatch.setattr(desk_person, "items_of", meanwhile)
        return erase_some(*ticket_and_person)

    monkeypatch.setattr(person_erasing, "_erase_some", overtaken)
    erase(ANNA)
    assert [address for address in (ANNA, BERT) if address in told(world)] == []


@pytest.mark.parametrize(("bound", "most"), [("_MEMBERS", 2), ("_BYTES", 600)])
def test_a_ticket_with_more_entries_than_a_transaction_takes_is_erased_in_several(
    world: World, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(person_erasing, bound, most)
    alice = world.context("alice", "acme")
    creating.create(alice, title=f"Of {ANNA}")
    for _ in range(3):
        commenting.comment(alice, 1, body=f"Ask {ANNA}.")
    ended = run("erase_person", "acme", ANNA, "--texts")
    assert ("1 ticket" in ended.out, "4 texts" in ended.out) == (True, True), ended.out
    assert ANNA not in told(world)
    assert read(alice, 1).version == 3


def test_a_noted_ticket_of_somebody_who_is_erased_keeps_its_place_and_forgets_the_id(world: World) -> None:
    alice, bob = world.context("alice", "acme"), world.users["bob"]
    creating.create(alice, title="The door", resolver=bob.id)
    commenting.comment(alice, 1, body="between us", internal=True)
    member_changes.unseed_member(bob.id, world.tenants["acme"].tenant_id)
    ended = run("erase_person", "acme", bob.email)
    assert ended.status == 0, ended.err
    summary = read(alice, 1)
    assert bob.id not in json.dumps(summary.serialize())
    assert summary.resolver_raised == stored.resolver_updated(summary.resolver, summary.raised_at)
    assert [row.number for row in lists.page(alice, status=Status.OPEN, resolver=summary.resolver).rows] == [1]


# --- texts without room ---


BOB = "bob@example.com"


@pytest.fixture
def desk(world: World) -> World:
    """Bob has left Acme, and has no ticket."""
    tenant_id = world.tenants["acme"].tenant_id
    member_changes.remove(user_id=world.users["bob"].id, tenant_id=tenant_id, by=SYSTEM)
    return world


def erased() -> Ended:
    return run("erase_person", "acme", BOB, "--texts")


def descriptions() -> set[str]:
    return {item["description"]["S"] for item in everything(TICKETS) if "description" in item}


def test_a_text_without_room_for_the_name_has_a_shorter_one_and_loses_nothing_else(desk: World, tmp_path: Path) -> None:
    body = f"{BOB} wrote. " * 17_000
    assert archives.imported(archives.write(tmp_path / "a.json", archives.issue(1, body=body))).status == 0
    creating.create(desk.context("alice", "acme"), title="Behind it", description=f"Ask {BOB}.")
    alice = desk.browser("alice", "acme")
    page = alice.send("/desk/settings/person/", {"address": BOB})
    typed = {"so_far": page.context["so_far"], "typed_address": BOB, "texts": "on"}
    told = text_of(alice.send("/desk/settings/person/erase/", typed, follow=True))
    assert "Ticket 1 has a text without room for the whole name: a shorter one is in it." in told
    (short,) = {f"Erased {digits}" for digits in re.findall(r"Erased person (\w{4})", told)}
    name = short.replace("Erased", "Erased person")
    assert descriptions() == {f"Ask {name}.", body.replace(BOB, short).strip()}


def test_a_ticket_without_any_room_is_named_and_those_behind_it_are_done(desk: World) -> None:
    alice = desk.context("alice", "acme")
    for number in (1, 2):
        creating.create(alice, title=f"Ticket {number}")
        commenting.comment(alice, number, body="Me.")
    for item in everything(TICKETS):
        if "body" in item:
            item |= {"author": {"S": desk.users["bob"].id}, "author_name": {"S": "B"}}
            if "TICKET#1" in item["pk"]["S"]:
                item["body"]["S"] += "." * (ITEM_LIMIT - item_size(item))
            unguarded().dispatch("PutItem", {"TableName": TICKETS.full_name, "Item": item})
    ended = erased()
    assert (ended.status, ended.out) == (1, "")
    assert "Ticket 1 has no room left for the pseudonym. All others are done." in ended.err
    authors = {item["pk"]["S"][-1]: item["author_name"]["S"] for item in everything(TICKETS) if "body" in item}
    assert (authors["1"], authors["2"].startswith("Erased person")) == ("B", True)
    assert "was erased, but not to the end" in run("find_person", "acme", BOB).err
