"""A person is all ids that an address has had: after a desk was brought in, or an account was made anew."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from portal.schema import registry
from tenants.audit_trail import recording
from tenants.audit_trail.recording import SYSTEM, Actor, AuditAction, AuditEntry
from tenants.membership import member_changes
from tenants.sign_in import accounts
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import Role
from tests.support import used_desk
from tests.support.commands import everything, run
from tests.support.operators import text_of
from tests.support.stored import unguarded
from tests.support.world import World
from tickets.desk import changing, commenting, creating
from tickets.ticket.stored import TICKETS

BOB = "bob@example.com"
PASSWORD = "a long enough password"


@pytest.fixture
def desk(world: World) -> World:
    """Alice's ticket 1 was Bob's for a while; he asked for ticket 2 and wrote in it, and has left Acme."""
    bob, alice = world.context("bob", "acme"), world.context("alice", "acme")
    creating.create(alice, title="The door")
    changing.assign(alice, 1, to=bob.user_id, version=1)
    changing.assign(alice, 1, to=alice.user_id, version=2)
    creating.create(bob, title="The lift")
    commenting.comment(bob, 2, body="Still stuck.")
    leave(world, bob.user_id)
    return world


def leave(world: World, user_id: str) -> None:
    by = Actor(world.users["alice"].id, "alice@example.com")
    member_changes.remove(user_id=user_id, tenant_id=world.tenants["acme"].tenant_id, by=by)


def forget_account(user_id: str) -> None:
    """Delete the account and what makes its address unique, as in an installation that never had them."""
    (users,) = [table for table in registry.tables() if table.name == "Platform.Users"]
    for item in everything(users):
        if user_id in repr(item) or BOB in repr(item):
            unguarded().dispatch("DeleteItem", {"TableName": users.full_name, "Key": {users.hash: item[users.hash]}})
    assert accounts.find_by_email(BOB) is None


def account_made(name: str = "Bob Example") -> str:
    return accounts.create(email=BOB, name=name, password=PASSWORD, by=SYSTEM).id


def tickets(slug: str = "acme") -> str:
    tenant_id = tenant_directory.find(slug).tenant_id
    return json.dumps([item for item in everything(TICKETS) if f"{tenant_id}|TICKET#" in item["pk"]["S"]])


def erased(slug: str = "acme") -> tuple[str, str]:
    """What a search counts, and what an erasure then has replaced."""
    found, ended = run("find_person", slug, BOB), run("erase_person", slug, BOB, "--texts")
    assert ended.status == 0, ended.err
    of_search = found.err.split("replaces ")[1].split(". The")[0]
    return of_search, ended.out.split("in place of ")[1].rstrip(".\n")


@pytest.mark.parametrize(("slug", "options"), [("acme", ()), ("copy", ("--new-id", "--as", "copy"))])
def test_who_left_a_desk_before_it_was_brought_in_is_found_handed_out_and_erased_where_they_have_another_account(
    desk: World, tmp_path: Path, slug: str, options: tuple[str, ...]
) -> None:
    former = desk.users["bob"].id
    assert run("export_tenant", "acme", tmp_path / "acme.zip").status == 0
    if not options:
        used_desk.remove(desk.tenants["acme"].tenant_id)
    forget_account(former)
    here = account_made()
    assert run("import_tenant", tmp_path / "acme.zip", *options).status == 0

    assert run("export_person", slug, BOB, tmp_path / "bob.json").status == 0
    told = json.loads((tmp_path / "bob.json").read_text())
    assert ([one["number"] for one in told["tickets"]], set(told["user_ids"])) == ([1, 2], {former, here})
    found, replaced = erased(slug)

    assert found == replaced == "the name 5 times, in 2 tickets"
    assert [text for text in (former, "Bob Example") if text in tickets(slug)] == []
    browser: Any = desk.browser("alice")
    browser.enter(tenant_directory.find(slug).tenant_id)
    page = browser.get(f"/{slug}/tickets/2/").content.decode()
    assert ("Erased person" in page, "Bob Example" in page) == (True, False)


def test_two_accounts_that_an_address_has_had_are_one_person_under_one_name(desk: World) -> None:
    former = desk.users["bob"].id
    forget_account(former)
    desk.users["bob"] = accounts.create(email=BOB, name="Robert Example", password=PASSWORD, by=SYSTEM)
    desk.join("bob", "acme", Role.AGENT)
    commenting.comment(desk.context("bob", "acme"), 2, body="Me again.")
    assert "This person is a member" in run("erase_person", "acme", BOB).err
    leave(desk, desk.users["bob"].id)

    found, replaced = erased()

    assert found == replaced == "the name 6 times, in 2 tickets"
    whole = tickets()
    assert [one for one in (former, desk.users["bob"].id, "Bob Example", "Robert Example") if one in whole] == []
    assert len({text[:4] for text in whole.split("Erased person ")[1:]}) == 1


def test_a_name_that_only_a_later_ticket_teaches_is_found_in_the_tickets_before_it(desk: World) -> None:
    forget_account(desk.users["bob"].id)
    for item in everything(TICKETS):  # as events were before they kept the former assignee's id
        if item.pop("former_resolver", None):
            unguarded().dispatch("PutItem", {"TableName": TICKETS.full_name, "Item": item})
    browser = desk.browser("alice", "acme")
    page: Any = browser.send("/desk/settings/person/", {"address": BOB})
    assert "0 of 2 tickets searched" in text_of(page), "the page begins once more"
    so_far = re.search(r'name="so_far" value="([^"]*)"', page.content.decode())
    assert so_far is not None
    page = browser.send("/desk/settings/person/", {"so_far": so_far[1]})
    assert "This desk has the name 5 times, in 2 tickets." in text_of(page)
    found, replaced = erased()
    assert found == replaced == "the name 5 times, in 2 tickets"
    assert "Bob Example" not in tickets()


def test_who_acted_on_somebody_or_in_their_place_is_not_that_person(desk: World, tmp_path: Path) -> None:
    acme, operator = desk.tenants["acme"].tenant_id, desk.users["charlie"].id
    recording.record(
        AuditEntry(acme, AuditAction.EXPORT_MADE, Actor(operator, f"root@example.com as {BOB}"), "export", "tickets"),
        AuditEntry(acme, AuditAction.MEMBER_INVITED, SYSTEM, "invitation", operator, BOB),
    )
    assert run("export_person", "acme", BOB, tmp_path / "bob.json").status == 0
    told = json.loads((tmp_path / "bob.json").read_text())
    assert told["user_ids"] == [desk.users["bob"].id]
    assert {row["action"] for row in told["audit_trail"]} == {"export.made", "member.invited", "member.removed"}
