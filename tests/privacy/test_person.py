"""What a desk knows of one person is found, handed out and forgotten."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from portal import clock
from portal.schema import registry
from tenants.audit_trail import browsing, recording
from tenants.audit_trail.browsing import TrailFilter
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import SYSTEM, Actor, AuditAction, AuditEntry
from tenants.audit_trail.stored import AUDIT
from tenants.impersonation.impersonating import ENTITY, READING
from tenants.membership import invitations, member_changes, past_roster
from tenants.tenancy.context import Role
from tests.privacy.test_person_pages import erased
from tests.privacy.test_person_pages import searched as searched_whole
from tests.support.api_client import api_client
from tests.support.commands import everything, run
from tests.support.folding import Follower, numbers
from tests.support.operators import text_of
from tests.support.searching import index_all
from tests.support.world import World
from tickets.data import person_erasing
from tickets.desk import changing, commenting, creating
from tickets.ticket.stored import TICKETS

BOB = "bob@example.com"


@pytest.fixture
def desk(world: World) -> World:
    """Bob asked for ticket 1 and wrote in it, had ticket 2, and is mentioned in 3. He has left Acme for Globex."""
    bob, alice = world.context("bob", "acme"), world.context("alice", "acme")
    creating.create(bob, title="The lift is stuck", description=f"Call me: {BOB.upper()}.")
    commenting.comment(bob, 1, body="Still stuck.")
    commenting.comment(alice, 1, body=f"I wrote to {BOB} twice.")
    creating.create(alice, title="The door")
    changing.assign(alice, 2, to=bob.user_id, version=1)
    changing.assign(alice, 2, to=alice.user_id, version=2)
    changing.assign(alice, 2, to=bob.user_id, version=3)
    creating.create(alice, title=f"{BOB} and notbob@example.community", description="Nothing.")
    creating.create(alice, title="Not his")
    world.join("bob", "globex", Role.AGENT)
    creating.create(world.context("bob", "globex"), title="Elsewhere")
    member_changes.remove(user_id=bob.user_id, tenant_id=bob.tenant_id, by=Actor(alice.user_id, "alice@example.com"))
    return world


def tickets(world: World, where: str = "acme") -> str:
    tenant_id = world.tenants[where].tenant_id
    return json.dumps([item for item in everything() if f"{tenant_id}|TICKET#" in item["pk"]["S"]])


def erase(*options: str) -> Any:
    return run("erase_person", "acme", BOB, *options)


def test_each_place_is_found(desk: World) -> None:
    before = tickets(desk)
    found = run("find_person", "acme", " Bob@Example.com ")
    assert found.out.splitlines() == [
        "ticket 1: author: event",
        "ticket 1: author: comment",
        "ticket 1: text: body: I wrote to bob@example.com twice.",
        "ticket 1: text: description: Call me: BOB@EXAMPLE.COM.",
        "ticket 1: requester",
        "ticket 2: new assignee",
        "ticket 2: former assignee",
        "ticket 2: new assignee",
        "ticket 2: assignee",
        "ticket 3: text: title: bob@example.com and notbob@example.community",
        "audit trail, 1 row",
    ]
    told = "An erasure replaces the name 7 times and the address in 3 texts, in 3 tickets."
    assert told in found.err
    assert tickets(desk) == before


def test_an_erased_person_is_nowhere_in_the_tickets_and_the_numbers_stay(desk: World) -> None:
    follower = Follower()
    follower.fold()
    index_all()
    acme, bob = desk.context("alice", "acme"), desk.users["bob"]
    before = numbers(acme)
    elsewhere = tickets(desk, "globex")

    ended = erase("--texts")

    assert ended.status == 0, ended.err
    whole = tickets(desk).replace(f"not{BOB}munity", "somebody else").casefold()
    assert [text for text in (bob.id, bob.name, BOB) if text.casefold() in whole] == []
    assert "somebody else" in whole
    name = ended.out.split(":")[0]
    assert name.startswith("Erased person ")
    page = desk.browser("alice", "acme").get("/tickets/1/").content.decode()
    assert (name in page, "Bob Example" in page) == (True, False)

    follower.fold()
    index_all()
    after = numbers(acme)
    assert without_people(after) == without_people(before)
    assert sum(of_people(after)) == sum(of_people(before)) > 0
    assert not [kind for kind in after if bob.id in kind]
    found = run("search", "--tenant", "acme", f'"{BOB}"')
    assert (found.out, found.err) == ("", "Nothing was found.\n")
    assert tickets(desk, "globex") == elsewhere


PEOPLE = ("r.", "p/")  # begin the counts of each person, now and by month


def without_people(counts: dict[str, int]) -> dict[str, int]:
    return {kind: many for kind, many in counts.items() if not kind.startswith(PEOPLE)}


def of_people(counts: dict[str, int]) -> list[int]:
    return [many for kind, many in counts.items() if kind.startswith(PEOPLE)]


def test_texts_stay_where_that_is_not_wished(desk: World) -> None:
    assert erase().out.endswith(": in place of the name 7 times, in 2 tickets.\n")
    whole = tickets(desk)
    assert f"I wrote to {BOB} twice." in whole
    assert desk.users["bob"].id not in whole


def test_a_record_stays_without_the_address_and_the_trail_shows_the_pseudonym(desk: World) -> None:
    erase()
    browser = desk.browser("alice", "acme")
    page = browser.get("/desk/audit/").content.decode()
    assert "erased from the desk" in page
    assert (BOB in page, "alice@example.com" in page) == (False, True)
    sheet: Any = browser.send("/desk/audit/export/")
    assert BOB.encode() not in b"".join(sheet.streaming_content)
    events = api_client(desk).ask("/audit-events").json()["data"]
    assert BOB not in json.dumps(events)
    (row,) = [event for event in events if event["action"] == "person.erased"]
    assert row["entity"]["name"].startswith("Erased person ")
    assert run("verify_audit", "--tenant", "acme").status == 0


def test_the_trail_shows_no_name_of_somebody_whose_tickets_were_handed_on(desk: World) -> None:
    bob, alice = desk.users["bob"].id, desk.browser("alice", "acme")
    alice.send(f"/tickets/handover/{bob}/", {"to": desk.users["alice"].id})
    assert BOB in alice.get("/desk/audit/").content.decode()
    erase()
    page = alice.get("/desk/audit/").content.decode()
    assert "reassigned the tickets of" in page
    assert (BOB in page, "Bob Example" in page) == (False, False)


def test_rows_of_an_operator_in_the_persons_place_show_the_pseudonym(desk: World) -> None:
    tenant_id = desk.tenants["acme"].tenant_id
    by = Actor(desk.users["charlie"].id, f"root@example.com as {BOB}")
    recording.record(AuditEntry(tenant_id, AuditAction.EXPORT_MADE, by, "export", "tickets", "tickets"))
    erase()
    alice = desk.context("alice", "acme")
    shown = browsing.everything(alice.repository, only=TrailFilter(), erased=ErasedPeople.parse(alice.erased))
    (actor,) = [row.actor for row in shown if row.action == AuditAction.EXPORT_MADE]
    assert actor.startswith("root@example.com as Erased person ")


def test_who_was_a_member_and_whom_an_operator_acted_as_is_told_without_the_address(desk: World) -> None:
    alice = desk.context("alice", "acme")
    told = AuditEntry(alice.tenant_id, AuditAction.IMPERSONATION_BEGUN, SYSTEM, *ENTITY, BOB)
    visit = {"visit": "1", "reason": "r", "rights": READING, "until": clock.stamp()}
    recording.record(replace(told, after=visit))
    erase()
    page = desk.browser("alice", "acme").get("/desk/settings/access/").content.decode()
    assert (BOB in page, "Erased person" in page) == (False, True)
    alice = desk.context("alice", "acme")
    then = past_roster.at(alice, changing.read(alice, 1).created_at)  # when Bob was a member
    assert BOB not in [one.email for one in then]
    (bob,) = [one for one in then if one.email.startswith("Erased person ")]
    assert (bob.name, bob.hindrance) == ("", "They were erased from the desk.")


def test_a_member_is_not_erased(desk: World) -> None:
    ended = run("erase_person", "globex", BOB)
    assert (ended.status, "Remove them from the desk first" in ended.err) == (1, True)
    assert desk.users["bob"].id in tickets(desk, "globex")


def test_an_erasure_that_was_broken_off_goes_on_under_the_same_name(
    desk: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase_in = person_erasing._erase_in

    def broken(tenant: Any, number: int, replacement: Any) -> None:
        if number == 2:
            raise KeyboardInterrupt
        erase_in(tenant, number, replacement)

    with monkeypatch.context() as patch:
        patch.setattr(person_erasing, "_erase_in", broken)
        assert erase().status == 130
    half = tickets(desk)
    assert ("Erased person" in half, desk.users["bob"].id in half) == (True, True)
    assert erase().status == 0
    whole = tickets(desk)
    assert desk.users["bob"].id not in whole
    assert len({text[:4] for text in whole.split("Erased person ")[1:]}) == 1


def test_whoever_had_a_ticket_for_a_while_and_nothing_else_is_in_its_history_no_more(world: World) -> None:
    bob, alice = world.context("bob", "acme"), world.context("alice", "acme")
    creating.create(alice, title="The door")
    changing.assign(alice, 1, to=bob.user_id, version=1)
    changing.assign(alice, 1, to=alice.user_id, version=2)
    member_changes.remove(user_id=bob.user_id, tenant_id=bob.tenant_id, by=Actor(alice.user_id, "alice@example.com"))
    assert world.users["bob"].name in tickets(world)
    assert erase().status == 0
    assert world.users["bob"].name not in tickets(world)


def test_somebody_who_was_only_invited_is_withdrawn(desk: World) -> None:
    alice = desk.context("alice", "acme")
    invitations.invite_all(alice, addresses=["nora@example.org"], role=Role.AGENT, by=SYSTEM)
    assert "invitation: " in run("find_person", "acme", "nora@example.org").out
    browser = desk.browser("alice", "acme")
    erased(browser, searched_whole(browser, "nora@example.org"), typed_address="nora@example.org")
    assert "invitation: " not in run("find_person", "acme", "nora@example.org").out


def test_an_address_that_nobody_here_has_is_refused_and_leaves_no_record(desk: World) -> None:
    before = {table.name: everything(table) for table in registry.tables()}
    for slip in (" ", "nora", "nora.example.org"):
        assert run("find_person", "acme", slip).status == 1
    for address, options in (("mistyped@example.org", ("--texts",)), ("charlie@example.com", ())):
        ended = run("erase_person", "acme", address, *options)
        assert (ended.status, ended.out) == (1, "")
        assert f"This desk stores nothing about the address {address}. Nothing was erased." in ended.err
    assert {table.name: everything(table) for table in registry.tables()} == before
    creating.create(desk.context("alice", "acme"), title="Ask mistyped@example.org")
    assert "occurs here in texts alone" in run("erase_person", "acme", "mistyped@example.org").err
    assert run("erase_person", "acme", "mistyped@example.org", "--texts").status == 0
    assert "mistyped" not in tickets(desk)


def test_what_is_held_of_a_person_is_handed_out_and_of_nobody_unknown_not_even_a_record(
    desk: World, tmp_path: Path
) -> None:
    before = {table.name: everything(table) for table in registry.tables()}
    for address in ("mistyped@example.org", "charlie@example.com"):
        ended = run("export_person", "acme", address, tmp_path / "nobody.json")
        assert (ended.status, ended.out) == (1, "")
        assert f"This desk stores nothing about the address {address}. Nothing was exported." in ended.err
    assert [*tmp_path.iterdir()] == []
    assert {table.name: everything(table) for table in registry.tables()} == before

    path = tmp_path / "bob.json"
    assert run("export_person", "acme", BOB, path).status == 0
    told = json.loads(path.read_text())
    assert (told["address"], told["membership"]) == (BOB, None)
    assert [ticket["number"] for ticket in told["tickets"]] == [1, 2, 3]
    bodies = [item["body"] for ticket in told["tickets"] for item in ticket["items"] if item.get("body")]
    assert bodies == ["Still stuck.", f"I wrote to {BOB} twice."]
    assert [row["action"] for row in told["audit_trail"]] == ["member.removed"]
    assert "Not his" not in path.read_text()

    assert run("export_person", "acme", "notbob@example.community", tmp_path / "one.json").status == 0
    assert [one["number"] for one in json.loads((tmp_path / "one.json").read_text())["tickets"]] == [3]
    erase("--texts")
    assert run("export_person", "acme", BOB, tmp_path / "two.json").status == 0


# --- erased already ---


PAGE = "/desk/settings/person/"
AT = r"was erased on \d+ \w+ \d{4}, \d\d:\d\d UTC ?, and is Erased person \w{4} in this desk\."


def searched(desk: World, address: str = BOB) -> Any:
    return desk.browser("alice", "acme").send(PAGE, {"address": address})


def test_of_somebody_erased_the_page_says_when_and_as_whom_and_what_little_is_left(desk: World) -> None:
    assert "was erased" not in text_of(searched(desk))
    run("erase_person", "acme", BOB, "--texts")
    page = searched(desk)
    told = text_of(page)
    assert re.search(AT, told), told
    assert "Nothing is left to be erased." in told
    assert "What stays; the audit trail shows the pseudonym: Audit trail, 1 row" in told
    assert b"Erase this person" not in page.content
    assert re.search(AT, run("find_person", "acme", BOB).err)
    nora = "nora@example.org"  # who stands in texts alone
    commenting.comment(desk.context("alice", "acme"), 1, body=f"Ask {nora}.")
    run("erase_person", "acme", nora, "--texts")
    told = text_of(searched(desk, nora))
    assert (bool(re.search(AT, told)), "stores nothing" in told, "What stays" in told) == (True, False, False), told


def test_an_erasure_where_nothing_is_left_is_refused_and_leaves_no_second_record(desk: World) -> None:
    run("erase_person", "acme", BOB, "--texts")
    before = repr([everything(AUDIT), everything(TICKETS)])
    ended = run("erase_person", "acme", BOB, "--texts")
    assert (ended.status, "Nothing is left to be erased." in ended.err) == (1, True)
    assert repr([everything(AUDIT), everything(TICKETS)]) == before
    assert text_of(desk.browser("alice", "acme").get(PAGE)).count("in place of the name") == 1


def test_what_an_erasure_has_left_or_somebody_wrote_since_can_be_erased_again(desk: World) -> None:
    run("erase_person", "acme", BOB)
    page = searched(desk)
    told = text_of(page)
    assert re.search(AT, told), told
    assert ("Nothing is left" in told, "Erase again" in told) == (False, True)
    assert "occurs here in texts alone" in run("erase_person", "acme", BOB).err
    assert run("erase_person", "acme", BOB, "--texts").status == 0
    assert BOB not in tickets(desk).replace(f"not{BOB}munity", "")


def test_an_erasure_that_was_not_ended_is_said_and_offered(desk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(person_erasing, "end", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run("erase_person", "acme", BOB, "--texts")
    told = text_of(searched(desk))
    assert ("was interrupted" in told, "Erase again" in told) == (True, True), told
    assert "not to the end" in run("find_person", "acme", BOB).err
    assert run("erase_person", "acme", BOB).status == 0
    assert re.search(AT, text_of(searched(desk)))
